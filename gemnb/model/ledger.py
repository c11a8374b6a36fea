"""What tables need of a session: each message with its place in the talk, what was paid for, what was cut."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from gemnb.model.measures import Call, Ended, measured
from gemnb.model.outcome import NOTED
from gemnb.model.records import LARGEST_COUNT, TOKEN_KINDS, JsonObject, Tokens, encoded, parse_time, text_of
from gemnb.model.session import Session
from gemnb.model.talk import SNAPSHOT, Spoken, prompts


class Told(Spoken, Protocol):
    """A message: a `Message`, or a record that was read with fewer fields."""

    # ruff: noqa: D102 - the names are those of `Message`
    @property
    def id(self) -> str: ...
    @property
    def timestamp(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def tokens(self) -> Tokens | tuple[int, ...] | None:
        """Or the counts as a `Ledger` has them, in the order of `TOKEN_KINDS`."""

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
NUMBERS = ("at", "type", "model", "outcome", "turn", "paid", *TOKEN_KINDS, "id_bytes", "chars", "text_bytes")
"""What a ledger tells of each message in numbers. `at` is microseconds since 1970; type, model and outcome are places
among its names; like the turn and the tokens, they are `ABSENT` or `ODD` where there is none.
"""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNTOLD = (ABSENT,) * len(TOKEN_KINDS)
_told_counts = attrgetter(*TOKEN_KINDS)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """A session as far as tables need it: the messages of its talk in their order, then those that were only paid for.

    There are many messages, and a few long values take a fraction of the time and memory of objects.
    """

    numbers: Counts
    """All of the first of `NUMBERS`, then all of the next."""
    names: list[str]
    """Of types, models and outcomes."""
    ids: bytearray
    """UTF-8, one after another; without half characters, as everything here."""
    texts: bytearray
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


def parted(joined: bytes | bytearray, sizes: Iterable[int]) -> Iterator[str]:
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
    live = {message.id for message in session.messages}
    return make_ledger(
        [*session.messages, *(one for one in session.usage.values() if one.id not in live and one.tokens)],
        live=len(session.messages),
        asked={message.id for message in prompts(session.messages)},
        rewound=sum(step.kind == "rewind" for step in session.history),
        anew=anew,
        calls=calls,
    )


def make_ledger(
    told: list[Told], *, live: int, asked: Collection[str], rewound: int, anew: Iterable[str], calls: bool = False
) -> Ledger:
    """The ledger of a talk.

    Args:
        told: the messages of the talk, then those that were only paid for. The list is emptied: of a long talk, the
            messages and their texts once more would be most of the memory.
        live: how many are in the talk.
        asked: ids of the prompts.
        rewound: how often the talk was rewound.
        anew: of each time that the talk was replaced by one that begins with a new message, the id of that.
        calls: measure the tool calls that are not.
    """
    ids = [message.id for message in told]
    ended = [call.status for message in told[:live] for call in message.tool_calls or ()]
    made = [(place, call) for place, message in enumerate(told) for call in message.tool_calls or ()] if calls else None
    names: dict[str | None, int] = {None: ABSENT}
    numbers: list[int] = []
    for column in _columns(told, live, asked, names):
        numbers += column
    joined_ids, _, sizes = _joined(ids)
    numbers += sizes
    compressions = sum(SNAPSHOT in text_of(told[ids.index(id)].content) for id in anew if id in ids[:live])
    told.reverse()
    texts, chars, sizes = _joined(text_of(told.pop().content) for _ in ids)
    return Ledger(
        numbers=array("q", numbers + chars + sizes),
        names=[encoded(name).decode() for name in names if name is not None],
        ids=joined_ids,
        texts=texts,
        live=live,
        tool_calls=len(ended),
        tool_errors=ended.count("error"),
        calls=None if made is None else [(place, measured(call)) for place, call in made],
        rewound=rewound,
        compressions=compressions,
    )


def _columns(
    told: Sequence[Told], live: int, asked: Collection[str], names: dict[str | None, int]
) -> Iterator[list[int]]:
    """The first of `NUMBERS`, up to the tokens."""
    odd = {place: message.extra for place, message in enumerate(told) if message.extra}
    times = map(parse_time, [message.timestamp for message in told])
    yield [NO_TIME if at is None else (at - _EPOCH) // _MICROSECOND for at in times]
    yield _codes([message.type or None for message in told], names, odd, "type")
    yield _codes([message.model for message in told], names, odd, "model")
    yield _codes(_outcomes(told, live, asked), names, {}, "outcome")
    turns = accumulate(message.id in asked for message in told[:live])
    yield [turn or ABSENT for turn in turns] + [ABSENT] * (len(told) - live)
    yield [1 if message.tokens else 0 for message in told]
    yield from _counts([message.tokens for message in told], odd)


def _joined(texts: Iterable[str]) -> tuple[bytearray, list[int], list[int]]:
    """`texts` as UTF-8, one after another; how many characters and how many bytes each has."""
    joined, chars, sizes = bytearray(), [], []
    for text in texts:
        part = text.encode() if text.isascii() else encoded(text)
        joined += part
        chars.append(len(text))
        sizes.append(len(part))
    return joined, chars, sizes


def _codes(
    values: Sequence[str | None], names: dict[str | None, int], odd: Mapping[int, JsonObject], name: str
) -> list[int]:
    """The places of `values` among `names`; `ODD` where the file has something that is no text in the place of one."""
    for value in dict.fromkeys(values):
        names.setdefault(value, len(names) - 1)
    codes = [names[value] for value in values]
    for place, extra in odd.items():
        if not values[place] and not isinstance(extra.get(name), str | None):
            codes[place] = ODD
    return codes


def _counts(tokens: Sequence[Tokens | tuple[int, ...] | None], odd: Mapping[int, JsonObject]) -> list[list[int]]:
    """The tokens of each kind, of every message."""
    told = [_UNTOLD if one is None else one if isinstance(one, tuple) else _counted(one) for one in tokens]
    columns = [[*column] for column in zip(*told, strict=True)]
    for place, extra in odd.items():
        raw = extra.get("tokens")
        for kind, column in zip(TOKEN_KINDS, columns, strict=True):
            if column[place] == ABSENT and (raw.get(kind) if isinstance(raw, dict) else raw) is not None:
                column[place] = ODD
    return columns


def _counted(tokens: Tokens) -> tuple[int, ...]:
    return tuple(ABSENT if n is None else n if 0 <= n <= LARGEST_COUNT else ODD for n in _told_counts(tokens))


def _outcomes(told: Sequence[Told], live: int, asked: Collection[str]) -> list[str | None]:
    """How each answer ended, by the note after it; and each prompt that has a note and no answer."""
    found: list[str | None] = [None] * len(told)
    note: str | None = None
    for place in range(live - 1, -1, -1):
        message = told[place]
        if message.type == "gemini":
            found[place], note = note or "completed", None
        elif message.type in ("info", "error"):
            note = str(NOTED.get(text_of(message.content), message.type))
        elif message.id in asked:
            found[place], note = note, None
    return found
