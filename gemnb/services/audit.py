"""What a summary lost of the talk that it stands for, measured without a model."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from gemnb.model.shown import clean_line
from gemnb.model.turns import Turn
from gemnb.services.audit_facts import KINDS, NEGATION, Fact, facts_of, normal, sentences

FLOOR: Mapping[str, float] = {"constraint": 1.0}
"""Recall by kind below which a compression is not done: by default, no stated rule may be lost."""
ENOUGH = 0.6
"""Part of a sentence's words that one place of the summary must hold for it to be kept."""
SHOWN = 40
"""Lost facts that the account shows; the rest is counted."""

_WORD = re.compile(r"[a-z0-9][\w./:-]*[a-z0-9]|[a-z0-9]", re.A)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々]+")
_NAME = re.compile(r"[^\W\d]{2,}?(?=s?\b|[是为はを\s=:#])")
_STOP = frozenset(
    """
    a an and are as at be been but by can do does for from has have i if in into is it its me my of on or our please
    so that the their them then there these they this those to too up us was we were will with would you your must
    never not dont always should may no only make sure ensure use used using keep also just all any ever
    here now again
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact and whether the summary has it."""

    fact: Fact
    kept: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """The account of a summary; str() and HTML for a person, `rows()` for a DataFrame."""

    findings: tuple[Finding, ...] = ()

    @property
    def lost(self) -> list[Fact]:
        """What the summary does not have, worst first."""
        gone = [f.fact for f in self.findings if not f.kept]
        return sorted(gone, key=lambda fact: KINDS.index(fact.kind))

    @property
    def recall(self) -> dict[str, float]:
        """Part of the facts that was kept, by kind; kinds without a fact are left out."""
        told = Counter(f.fact.kind for f in self.findings)
        kept = Counter(f.fact.kind for f in self.findings if f.kept)
        return {kind: kept[kind] / told[kind] for kind in KINDS if told[kind]}

    def below(self, floor: Mapping[str, float]) -> list[str]:
        """The kinds whose recall is below `floor`."""
        return [kind for kind, share in self.recall.items() if share < floor.get(kind, 0.0)]

    def rows(self) -> list[dict[str, object]]:
        """One row for each fact, as a DataFrame takes them."""
        return [
            {"kind": f.fact.kind, "text": f.fact.text, "kept": f.kept, "turn_id": f.fact.turn_id} for f in self.findings
        ]

    def __str__(self) -> str:
        if not self.findings:
            return "No checkable facts in the part that goes."
        lines = [self._head()]
        lines += [f"  lost {fact.kind}: {clean_line(fact.text)}" for fact in self.lost[:SHOWN]]
        if len(self.lost) > SHOWN:
            lines.append(f"  and {len(self.lost) - SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td>{escape(fact.kind)}</td><td dir="auto">{escape(clean_line(fact.text))}</td></tr>'
            for fact in self.lost[:SHOWN]
        )
        more = f"<p>and {len(self.lost) - SHOWN} more</p>" if len(self.lost) > SHOWN else ""
        table = f"<table><tr><th>lost</th><th>as it was said</th></tr>{rows}</table>{more}" if rows else ""
        return f"<p>{escape(self._head())}</p>{table}"

    def _head(self) -> str:
        kept = sum(f.kept for f in self.findings)
        by_kind = ", ".join(f"{kind} {share:.0%}" for kind, share in self.recall.items())
        return f"{kept} of {len(self.findings)} facts kept: {by_kind}."


NO_FACTS = Audit()


def audit(turns: Iterable[Turn], summary: str) -> Audit:
    """Say of each fact in `turns` whether `summary` has it."""
    snapshot = Snapshot(summary)
    return Audit(tuple(Finding(fact, snapshot.has(fact)) for fact in facts_of(turns)))


class Snapshot:
    """A summary, made ready to be asked what it has."""

    def __init__(self, summary: str) -> None:
        self._text = normal(summary)
        told = sentences(summary)
        places = [*told, *map(" ".join, itertools.pairwise(told))]
        self._places = [(normal(place), _words(place)) for place in places]

    def has(self, fact: Fact) -> bool:
        """Whether the fact is there: word for word, or for a sentence most of its words in one place."""
        wanted = normal(fact.text)
        if _found(wanted, self._text):
            return True
        if fact.kind == "number":
            return self._has_number(wanted)
        if fact.kind in ("constraint", "decision", "todo", "error"):
            return self._has_sentence(fact)
        return False

    def _has_number(self, wanted: str) -> bool:
        """The same figure and unit with or without a blank; a named figure beside its name."""
        figure = re.search(r"\d+(?:\.\d+)?", wanted)
        if figure is None:
            return False
        unit, name = wanted[figure.end() :].strip(), _NAME.match(wanted)
        if unit and re.search(rf"(?<![\d.,]){re.escape(figure[0])}\s?{re.escape(unit)}(?![a-z0-9])", self._text):
            return True
        return name is not None and any(_found(figure[0], place) and name[0] in place for place, _ in self._places)

    def _has_sentence(self, fact: Fact) -> bool:
        words = _words(fact.text)
        if not words:
            return False
        hard = {word for word in words if any(c.isdigit() for c in word) or "_" in word or "/" in word}
        denied = fact.kind == "constraint" and bool(NEGATION.search(fact.text))
        for place, there in self._places:
            if denied and not NEGATION.search(place):
                continue
            if len(words & there) >= ENOUGH * len(words) and hard <= there:
                return True
        return False


def _found(wanted: str, text: str) -> bool:
    """Whether `wanted` stands in `text`, not inside a longer word or number."""
    start = 0
    while (at := text.find(wanted, start)) >= 0:
        before, after = text[at - 1 : at], text[at + len(wanted) : at + len(wanted) + 2]
        if not (_joins(before) and _joins(wanted[:1])) and not (
            _joins(wanted[-1:]) and (_joins(after[:1]) or (after[:1] == "." and after[1:].isdigit()))
        ):
            return True
        start = at + 1
    return False


def _joins(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _words(text: str) -> set[str]:
    """The words that carry a sentence, stripped of endings; pairs of signs where words are not spaced."""
    told = re.sub(r"(?<=\d)(?=[a-z])", " ", normal(text))
    words = {_stem(word) for word in _WORD.findall(told) if word not in _STOP}
    for run in _CJK.findall(told):
        words |= {run[i : i + 2] for i in range(len(run) - 1)} or {run}
    return words


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.isalpha() and word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def with_pins(summary: str, pins: Sequence[str]) -> str:
    """`summary` with every pinned fact in it, appended where the model left it out."""
    text = normal(summary)
    missing = [pin for pin in pins if pin.strip() and not _found(normal(pin), text)]
    if not missing:
        return summary
    told = "\n".join(f"- {pin.strip()}" for pin in missing)
    body, end, rest = summary.rpartition("</state_snapshot>")
    return (
        f"{body}\nTo be kept word for word:\n{told}\n{end}{rest}"
        if end
        else f"{summary}\nTo be kept word for word:\n{told}"
    )
