"""A model asked for facts worth keeping: it picks among what was said and words it; it adds nothing of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gemnb.errors import LlmError
from gemnb.model.session import Session
from gemnb.model.shown import clean_line
from gemnb.model.talk import prompts, typed_text
from gemnb.model.turns import Turn
from gemnb.services.llm import Llm
from gemnb.services.memory_propose import Source, Suggestion
from gemnb.services.redaction import Redactor

MOST_CHARACTERS = 60_000
"""Of the statements that a model is shown; the prompts that were said last come first."""
LONGEST_PROMPT = 400
ASK = (
    "Below are numbered statements from past talks of a person with an assistant about one project. Find those that"
    " state a lasting command, convention or preference, which a new talk should know from its start. Leave out tasks,"
    " questions and what was true only then. Write one line for each in the form `number. statement`, or"
    " `number, number. statement` where several say the same; short, general, in the person's language, and with"
    " commands, names and paths exactly as they stand. Write `none` if there is none, and nothing else in any case."
)
_LINE = re.compile(r"^[ \t]*(?:[-*][ \t]+)?([0-9]{1,6}(?:[ \t]*[,、][ \t]*[0-9]{1,6})*)[.:)][ \t]+(.+)$", re.MULTILINE)
_NAMES = re.compile(r"(?<![\w-])--?\w[\w-]*|[\w./\\=~-]*[\d/\\_=][\w./\\=~-]*|\w+(?:\.\w+)+|(?<=`)[^`]+(?=`)")

_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def ask(
    found: Sequence[Suggestion],
    sessions: Sequence[Session],
    llm: Llm,
    *,
    redactor: Redactor,
    may_be_kept: Callable[[str], bool],
) -> list[Suggestion]:
    """The facts that `llm` finds in the prompts of `sessions` and in what was `found` by counting, in its words.

    Each keeps the messages that it comes from. What these do not say is left out: a command, a path or a number that
    stands in none of them, or other words altogether. So is what may not be kept. Secrets are not sent, those that
    `redactor` has met among them.

    Raises:
        LlmError: the service failed, or its answer is none.
    """
    shown = list(_statements(found, sessions, redactor))
    listed = "\n".join(f"{number}. {statement.fact}" for number, statement in enumerate(shown, 1))
    told = _answer(llm, f"{ASK}\n\n{listed}")
    if told.strip().strip("`.*").casefold() == "none":
        return []
    taken: dict[str, Suggestion] = {}
    for numbers, wording in _LINE.findall(told):
        picked = [int(n) - 1 for n in re.findall("[0-9]+", numbers)]
        fact = clean_line(wording).strip("* ")
        if all(0 <= n < len(shown) for n in picked) and may_be_kept(fact):
            meant = [shown[n] for n in picked]
            if _is_said(fact, " ".join(one.fact for one in meant)):
                sources = dict.fromkeys(source for one in meant for source in one.sources)
                taken.setdefault(fact.casefold(), Suggestion(fact, meant[0].kind, tuple(sources)))
    if not taken:
        raise LlmError(f"{llm.name} answered, but told no fact that stands in the talks")
    return list(taken.values())


def _statements(found: Sequence[Suggestion], sessions: Sequence[Session], redactor: Redactor) -> Iterator[Suggestion]:
    """What was found, then the other prompts, those that were said last first, without secrets."""
    left = MOST_CHARACTERS
    told = {source for one in found for source in one.sources}
    said = [
        (message.timestamp or "", Suggestion(redactor.text(clean_line(typed_text(message))), "model", (source,)))
        for session in sessions
        for message in prompts(session.messages)
        if (source := Source(session.id, message.id)) not in told
    ]
    for one in [*found, *(one for _, one in sorted(said, key=lambda row: str(row[0]), reverse=True))]:
        left -= min(len(one.fact), LONGEST_PROMPT)
        if left < 0:
            return
        yield Suggestion(redactor.known(one.fact)[:LONGEST_PROMPT], one.kind, one.sources)


def _answer(llm: Llm, asked: str) -> str:
    told = ""
    for chunk in llm.stream([Turn.prompt(asked)]):
        told += chunk.text
        if chunk.blocked or chunk.finish not in (None, "STOP"):
            raise LlmError(f"{llm.name} did not answer to the end ({chunk.blocked or chunk.finish})")
    return told


def _is_said(fact: str, said: str) -> bool:
    """Whether every command, path, name and number of `fact` stands in `said`, and a third of its words or more."""
    held = said.casefold()
    words = _stems(fact)
    shared = words & _stems(said)
    names = [name.strip(".:,;").casefold() for name in _NAMES.findall(fact)]
    return all(name in held for name in names) and len(shared) * 3 >= len(words) > 0


def _stems(text: str) -> set[str]:
    """The beginnings of its words; pairs of characters where a script has no spaces."""
    stems = set()
    for word in re.findall(r"\w+", text.casefold()):
        if word.isascii() or not _IDEOGRAPHS.search(word):
            stems.add(word[:4])
        else:
            stems |= {word[n : n + 2] for n in range(max(len(word) - 1, 1))}
    return stems
