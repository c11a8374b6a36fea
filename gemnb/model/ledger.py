"""What tables need of a session: each message with its place in the talk, what was paid for, what was cut."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gemnb.model.outcome import NOTED
from gemnb.model.records import LARGEST_COUNT, TOKEN_KINDS, JsonObject, Tokens, encoded, parse_time, text_of
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
NO_TIME = -(2**63)
"""Stands among times for one that cannot be read; NumPy's NaT."""
NUMBERS = ("at", "type", "model", "outcome", "turn", "paid", "chars", "id_bytes", "text_bytes", *TOKEN_KINDS)
"""What a ledger tells of each message in numbers. `at` is microseconds since 1970; type, model and outcome are places
among its names; like the turn and the tokens, they are `ABSENT` or `ODD` where there is none.
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNTOLD = (ABSENT,) * len(TOKEN_KINDS)
_told_counts = attrgetter(*TOKEN_KINDS)


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
    """A session as far as tables need it: the messages of its talk in their order, then those that were only paid for.

    There are many messages, and a few long values take a fraction of the time and memory of objects.
    """

    numbers: Counts
    """All of the first of `NUMBERS`, then all of the next."""
    names: list[str]
    """Of types, models and outcomes."""
    ids: bytes
    """UTF-8, one after another; without half characters, as everything here."""
    texts: bytes
    live: int
    """How many messages are in the talk."""
    tool_calls: int
    """In the talk."""
    tool_errors: int
    """Of these, with status `error`."""
    calls: list[tuple[int, Call]] | None
    """Each with the place of its message; None where they were not asked for."""
    rewound: int
    """Rewinds."""
    compressions: int

    @property
    def count(self) -> int:
        """How many messages it has."""
        return len(self.numbers) // len(NUMBERS)

    def column(self, name: str) -> Counts:
        """One of `NUMBERS`, of every message."""
        start = NUMBERS.index(name) * self.count
        return self.numbers[start : start + self.count]

    def named(self, name: str) -> list[str | None]:
        """The type, the model or the outcome of every message; None where there is none."""
        return [None if code < 0 else self.names[code] for code in self.column(name)]


def parted(joined: bytes, sizes: Iterable[int]) -> Iterator[str]:
    """Texts of these sizes that stand one after another."""
    start = 0
    for size in sizes:
        yield joined[start : start + size].decode()
        start += size


def moment(at: int) -> datetime | None:
    """A time of a ledger."""
    return None if at == NO_TIME else _EPOCH + timedelta(microseconds=at)


def ledger_of(session: Session, *, calls: bool = False) -> Ledger:
    """The ledger of a session that was loaded; with `calls` each tool call is measured."""
    known: set[str] = set()
    anew = []
    for step in session.history:
        known.update(step.before)
        if step.kind == "replace" and step.after and step.after[0] not in known:
            anew.append(step.after[0])
    return make_ledger(
        session.messages,
        session.usage.values(),
        asked={message.id for message in prompts(session.messages)},
        rewound=sum(step.kind == "rewind" for step in session.history),
        anew=anew,
        calls=calls,
    )


def make_ledger(
    live: Sequence[Told],
    known: Iterable[Told],
    *,
    asked: Collection[str],
    rewound: int,
    anew: Collection[str],
    calls: bool = False,
) -> Ledger:
    """The ledger of the talk `live`.

    Args:
        live: the messages of the talk.
        known: every message ever seen; those without tokens do not count.
        asked: ids of the prompts.
        rewound: how often the talk was rewound.
        anew: of each time that the talk was replaced by one that begins with a new message, the id of that.
        calls: measure the tool calls that are not.
    """
    held = {message.id for message in live}
    told = [*live, *(message for message in known if message.id not in held and message.tokens)]
    odd = {place: message.extra for place, message in enumerate(told) if message.extra}
    texts = [text_of(message.content) for message in told]
    ids, words = [encoded(message.id) for message in told], [*map(encoded, texts)]
    names: dict[str, int] = {}
    columns = (
        [_since_epoch(message.timestamp) for message in told],
        _codes([message.type or None for message in told], names, odd, "type"),
        _codes([message.model for message in told], names, odd, "model"),
        _codes(_outcomes(live, asked) + [None] * (len(told) - len(live)), names, {}, "outcome"),
        _turns(live, asked) + [ABSENT] * (len(told) - len(live)),
        [1 if message.tokens else 0 for message in told],
        [*map(len, texts)],
        [*map(len, ids)],
        [*map(len, words)],
        *_counts([message.tokens for message in told], odd),
    )
    made = [call.status for message in live for call in message.tool_calls or ()]
    return Ledger(
        numbers=array("q", [*chain.from_iterable(columns)]),
        names=[encoded(name).decode() for name in names],
        ids=b"".join(ids),
        texts=b"".join(words),
        live=len(live),
        tool_calls=len(made),
        tool_errors=made.count("error"),
        calls=[(place, _measured(call)) for place, message in enumerate(told) for call in message.tool_calls or ()]
        if calls
        else None,
        rewound=rewound,
        compressions=sum(message.id in anew and SNAPSHOT in text_of(message.content) for message in live)
        if anew
        else 0,
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


def _since_epoch(text: object) -> int:
    at = parse_time(text)
    return NO_TIME if at is None else (at - _EPOCH) // _MICROSECOND


def _codes(values: Sequence[str | None], names: dict[str, int], odd: Mapping[int, JsonObject], name: str) -> list[int]:
    """The places of `values` among `names`; `ODD` where the file has something that is no text in the place of one."""
    codes = [ABSENT if value is None else names.setdefault(value, len(names)) for value in values]
    for place, extra in odd.items():
        if not values[place] and not isinstance(extra.get(name), str | None):
            codes[place] = ODD
    return codes


def _turns(live: Iterable[Told], asked: Collection[str]) -> list[int]:
    return [turn or ABSENT for turn in accumulate(int(message.id in asked) for message in live)]


def _counts(tokens: Sequence[Tokens | None], odd: Mapping[int, JsonObject]) -> list[list[int]]:
    """The tokens of each kind, of every message."""
    found = [_told_counts(one) for one in tokens if one is not None]
    values = {*chain.from_iterable(found)}
    if None in values or (values and (min(values) < 0 or max(values) > LARGEST_COUNT)):
        found = [tuple(map(_count, counts)) for counts in found]
    told = iter(found)
    columns = [[*column] for column in zip(*(_UNTOLD if one is None else next(told) for one in tokens), strict=True)]
    for place, extra in odd.items():
        raw = extra.get("tokens")
        for kind, column in zip(TOKEN_KINDS, columns, strict=True):
            if column[place] == ABSENT and (raw.get(kind) if isinstance(raw, dict) else raw) is not None:
                column[place] = ODD
    return columns


def _count(told: int | None) -> int:
    return ABSENT if told is None else told if 0 <= told <= LARGEST_COUNT else ODD


def _outcomes(live: Sequence[Told], asked: Collection[str]) -> list[str | None]:
    """How each answer ended, by the note after it; and each prompt that has a note and no answer."""
    found: list[str | None] = []
    note: str | None = None
    for message in reversed(live):
        ended = None
        if message.type == "gemini":
            ended, note = note or "completed", None
        elif message.type in ("info", "error"):
            note = str(NOTED.get(text_of(message.content), message.type))
        elif message.id in asked:
            ended, note = note, None
        found.append(ended)
    return found[::-1]


def _chars(value: object) -> int | None:
    return None if value is None else len(json.dumps(value, ensure_ascii=False))


def _error(call: Made) -> str | None:
    for part in call.result if isinstance(call.result, list) else [call.result]:
        response = part.get("functionResponse", {}) if isinstance(part, dict) else {}
        told = response.get("response") if isinstance(response, dict) else None
        if isinstance(told, dict) and "error" in told:
            return str(told["error"])
    return call.result_display if call.status == "error" and isinstance(call.result_display, str) else None
