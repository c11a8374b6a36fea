"""What tables need of a session: each message with its place in the talk, what was paid for, what was cut."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from gemnb.model.outcome import NOTED
from gemnb.model.records import JsonObject, Tokens, text_of
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


class Call(NamedTuple):
    """A tool call as far as tables need it; what it held is measured."""

    id: str | None
    name: str
    status: str
    timestamp: str | None
    args_chars: int | None
    result_chars: int | None
    error: str | None


class Entry(NamedTuple):
    """A message as far as tables need it. There are many: a tuple is made in a third of a frozen class's time."""

    id: str
    type: str | None
    timestamp: str | None
    model: str | None
    text: str
    tokens: Tokens | None
    calls: Sequence[Ended]
    extra: JsonObject
    """What the file has in place of a type, a model or tokens that are none."""
    live: bool
    """Whether it is in the talk; else it was only paid for."""
    turn: int | None
    outcome: str | None


class Ledger(NamedTuple):
    """A session as far as tables need it."""

    entries: Sequence[Entry]
    """The talk in its order, then what was only paid for."""
    rewound: int
    """Rewinds."""
    compressions: int

    @property
    def billed(self) -> Iterable[Entry]:
        """The messages that were paid for."""
        return (entry for entry in self.entries if entry.tokens)


M = TypeVar("M", bound=Told)
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
    ended = _outcomes(live, asked)
    entries = []
    turn = 0
    for message in live:
        turn += message.id in asked
        entries.append(_entry(message, True, turn or None, ended.get(message.id), calls))
    held = {message.id for message in live}
    entries += [
        _entry(message, False, None, None, calls) for message in known if message.id not in held and message.tokens
    ]
    rewound = sum(kind == "rewind" for kind, _, _ in cuts)
    return Ledger(entries, rewound, _compressions(cuts, live))


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


def _entry(message: Told, live: bool, turn: int | None, outcome: str | None, calls: bool) -> Entry:
    made: Sequence[Any] = message.tool_calls or ()
    return Entry(
        message.id,
        message.type or None,
        message.timestamp,
        message.model,
        text_of(message.content),
        message.tokens or None,
        [call if isinstance(call, Call) else measured(call) for call in made] if calls else made,
        message.extra,
        live,
        turn,
        outcome,
    )


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
