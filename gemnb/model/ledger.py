"""What tables need of a session: each message with its place in the talk, what was paid for, what was cut."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gemnb.model.outcome import NOTED
from gemnb.model.records import LARGEST_COUNT, TOKEN_KINDS, JsonObject, Tokens, parse_time, text_of
from gemnb.model.session import Session
from gemnb.model.talk import SNAPSHOT, Spoken, prompts


class Ended(Protocol):
    """A tool call of which only the end counts."""

    @property
    def status(self) -> str | None:
        """See `ToolCall`."""


class Made(Ended, Protocol):
    """A tool call, whole: a `ToolCall`, or a record that was read with fewer fields."""

    # ruff: noqa: D102 - the names are those of `ToolCall`
    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def args(self) -> object: ...
    @property
    def result(self) -> object: ...
    @property
    def timestamp(self) -> str | None: ...
    @property
    def result_display(self) -> object: ...


class Told(Spoken, Protocol):
    """A message: a `Message`, or a record that was read with fewer fields."""

    @property
    def id(self) -> str: ...
    @property
    def timestamp(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def tokens(self) -> Tokens | None: ...
    @property
    def tool_calls(self) -> Sequence[Ended] | None: ...
    @property
    def extra(self) -> JsonObject: ...


if TYPE_CHECKING:
    Counts = array[int]
else:
    Counts = array  # Python 3.11 has no `array[int]` at run time
ABSENT, ODD = -1, -2
"""Stand among counts, which are never less than nothing, for one that is not there and for something that is none."""


class Call(NamedTuple):
    """A tool call as far as tables need it; what it held is measured."""

    id: str | None
    name: str
    status: str
    timestamp: str | None
    args_chars: int | None
    result_chars: int | None
    error: str | None


@dataclass(slots=True, kw_only=True)
class Ledger:
    """A session as far as tables need it.

    A column for each thing that they tell of a message: those of the talk in its order, then those that were only paid
    for. There are many messages, and a list of one thing takes a fraction of the time and memory of objects.
    """

    ids: list[str]
    types: list[str | None]
    times: list[datetime | None]
    models: list[str | None]
    texts: list[str]
    outcomes: list[str | None]
    turns: Counts
    """Like any count of a ledger, `ABSENT` where there is none."""
    counts: dict[str, Counts]
    """Of each kind of token; `ODD` where the file has something else."""
    paid: list[int]
    """Places of the messages that were paid for: their file tells a count."""
    live: int
    """How many are in the talk."""
    odd: dict[str, list[int]]
    """Places of messages that have something else where a type or a model should be."""
    tool_calls: int
    """In the talk."""
    tool_errors: int
    """Of these, with status `error`."""
    calls: list[tuple[int, Call]] | None
    """Each with the place of its message; None where they were not asked for."""
    rewound: int
    """Rewinds."""
    compressions: int


Cut = tuple[str, Collection[str], Sequence[str]]
"""`rewind` or `replace`, the ids of the talk before it and after it."""


def ledger_of(session: Session, *, calls: bool = False) -> Ledger:
    """The ledger of a session that was loaded; with `calls` each tool call is measured."""
    cuts = [(step.kind, step.before, step.after) for step in session.history]
    asked = {message.id for message in prompts(session.messages)}
    return make_ledger(session.messages, session.usage.values(), asked=asked, cuts=cuts, calls=calls)


def make_ledger(
    live: Sequence[Told], known: Iterable[Told], *, asked: Collection[str], cuts: Sequence[Cut], calls: bool = False
) -> Ledger:
    """The ledger of the talk `live`.

    Args:
        live: the messages of the talk.
        known: every message ever seen; those without tokens do not count.
        asked: ids of the prompts.
        cuts: what took messages out of the talk.
        calls: measure the tool calls that are not.
    """
    held = {message.id for message in live}
    told = [*live, *(message for message in known if message.id not in held and message.tokens)]
    gone = len(told) - len(live)
    turns = [turn or ABSENT for turn in accumulate(int(message.id in asked) for message in live)]
    ended = _outcomes(live, asked)
    made = [call.status for message in live for call in message.tool_calls or ()]
    odd = {place: message.extra for place, message in enumerate(told) if message.extra}
    types = [message.type or None for message in told]
    models = [message.model for message in told]
    tokens = [message.tokens for message in told]
    return Ledger(
        ids=[message.id for message in told],
        types=types,
        times=[parse_time(message.timestamp) for message in told],
        models=models,
        texts=[text_of(message.content) for message in told],
        outcomes=[*(ended.get(message.id) for message in live), *[None] * gone],
        turns=array("q", turns + [ABSENT] * gone),
        counts={kind: _counts(tokens, odd, kind) for kind in TOKEN_KINDS},
        paid=[place for place, one in enumerate(tokens) if one],
        live=len(live),
        odd={"type": _odd(types, odd, "type"), "model": _odd(models, odd, "model")},
        tool_calls=len(made),
        tool_errors=made.count("error"),
        calls=[(place, _measured(call)) for place, message in enumerate(told) for call in message.tool_calls or ()]
        if calls
        else None,
        rewound=sum(kind == "rewind" for kind, _, _ in cuts),
        compressions=_compressions(cuts, live),
    )


def measured(call: Made) -> Call:
    """`call` as far as tables need it."""
    return Call(
        call.id,
        call.name or "",
        call.status or "",
        call.timestamp,
        _chars(call.args),
        _chars(call.result),
        _error(call),
    )


def _measured(call: Any) -> Call:
    return call if isinstance(call, Call) else measured(call)


def _counts(told: Sequence[Tokens | None], odd: Mapping[int, JsonObject], kind: str) -> Counts:
    get = attrgetter(kind)
    counts = [None if tokens is None else get(tokens) for tokens in told]
    found = [ABSENT if count is None else count if 0 <= count <= LARGEST_COUNT else ODD for count in counts]
    for place, extra in odd.items():
        raw = extra.get("tokens")
        if found[place] == ABSENT and (raw.get(kind) if isinstance(raw, dict) else raw) is not None:
            found[place] = ODD
    return array("q", found)


def _odd(values: Sequence[str | None], odd: Mapping[int, JsonObject], name: str) -> list[int]:
    """Places that have no `name`, and in the file something in its place that is no text."""
    return [place for place, extra in odd.items() if not values[place] and not isinstance(extra.get(name), str | None)]


def _outcomes(live: Sequence[Told], asked: Collection[str]) -> Mapping[str, str]:
    """How each answer ended, by the note after it; and each prompt that has a note and no answer."""
    found: dict[str, str] = {}
    note: str | None = None
    for message in reversed(live):
        if message.type == "gemini":
            found[message.id], note = note or "completed", None
        elif message.type in ("info", "error"):
            note = str(NOTED.get(text_of(message.content), message.type))
        elif message.id in asked:
            if note:
                found[message.id] = note
            note = None
    return found


def _compressions(cuts: Iterable[Cut], live: Sequence[Told]) -> int:
    """Replacements that begin with a state snapshot which the talk before did not begin with."""
    known: set[str] = set()
    count = 0
    for kind, before, after in cuts:
        known.update(before)
        if kind == "replace" and after and after[0] not in known:
            first = next((message for message in live if message.id == after[0]), None)
            count += first is not None and SNAPSHOT in text_of(first.content)
    return count


def _chars(value: object) -> int | None:
    return None if value is None else len(json.dumps(value, ensure_ascii=False))


def _error(call: Made) -> str | None:
    for part in call.result if isinstance(call.result, list) else [call.result]:
        response = part.get("functionResponse", {}) if isinstance(part, dict) else {}
        told = response.get("response") if isinstance(response, dict) else None
        if isinstance(told, dict) and "error" in told:
            return str(told["error"])
    return call.result_display if call.status == "error" and isinstance(call.result_display, str) else None
