"""What one row of a table stands for: a session, a message, a tool call; and what a session was billed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import compress, islice
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from gemnb.frames.columns import Repeated
from gemnb.frames.costs import UNKNOWN, costs_of
from gemnb.frames.joined import joined
from gemnb.model.cost import Price
from gemnb.model.ledger import Ledger, moment, parted
from gemnb.model.measures import Call
from gemnb.model.records import TOKEN_KINDS
from gemnb.model.session import SessionInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Bill:
    """What one or more sessions were billed for, rewound and compressed answers included."""

    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOKEN_KINDS, 0))
    cost_usd: float | None = None
    """Of the priced answers; None where there is none."""
    answers: int = 0
    unpriced: int = 0
    """Answers whose price is unknown."""

    def __add__(self, other: Bill) -> Bill:
        tokens = {kind: self.tokens[kind] + other.tokens[kind] for kind in TOKEN_KINDS}
        costs = [bill.cost_usd for bill in (self, other) if bill.cost_usd is not None]
        cost = sum(costs) if costs else None
        return Bill(tokens, cost, self.answers + other.answers, self.unpriced + other.unpriced)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session with where it is from."""

    info: SessionInfo
    ledger: Ledger
    project: str
    root: str | None
    parent: str | None = None
    """Id of the session that this sub-agent worked for, the topmost one."""
    bill: Bill = Bill()
    agents: Bill = Bill()
    """Of its sub-agents."""


class Owner(NamedTuple):
    """A session as far as its messages tell of it."""

    info: SessionInfo
    project: str
    parent: str | None
    live: int
    messages: int


class Messages:
    """The messages of sessions, a column at a time: the talk of each in its order, then what was only paid for.

    It keeps no ledger: what they hold is in the columns.
    """

    def __init__(self, sessions: Iterable[SessionRow], price: Price) -> None:
        rows = [row for row in sessions if row.ledger.count]
        ledgers = [row.ledger for row in rows]
        self._owners = [Owner(row.info, row.project, row.parent, row.ledger.live, row.ledger.count) for row in rows]
        self._price = price
        self.told = joined(ledgers)
        self.ids = self.told.words([ledger.ids for ledger in ledgers], "id_bytes")
        self.texts = self.told.words([ledger.texts for ledger in ledgers], "text_bytes")

    def each(self, value: Callable[[Owner], object]) -> Repeated:
        """What is the same of all messages of a session."""
        return Repeated([value(owner) for owner in self._owners], self.told.counts)

    @property
    def live(self) -> NDArray[Any]:
        """Whether each is in the talk."""
        import numpy as np

        parts = [n for owner in self._owners for n in (owner.live, owner.messages - owner.live)]
        return np.repeat(np.resize([True, False], len(parts)), parts)

    @cached_property
    def costs(self) -> NDArray[Any]:
        """US dollars as `Cost` has them, a row each; NaN where they are unknown."""
        import numpy as np

        paid = self.told.numbers["paid"] == 1
        found = np.full((len(paid), len(UNKNOWN)), UNKNOWN)
        found[paid] = costs_of(self.told, self._price)
        return found


class Answer(NamedTuple):
    """One message that was paid for, with the session that it is in."""

    owner: SessionRow
    id: str
    at: datetime | None
    model: str | None
    counts: Mapping[str, int]
    """See `Ledger`."""
    live: bool
    cost_usd: float | None


class CallRow(NamedTuple):
    """One tool call with the session that it is in, and its message."""

    owner: SessionRow
    message_id: str
    at: datetime | None
    live: bool
    call: Call


def bills_of(ledgers: Sequence[Ledger], price: Price) -> Iterator[Bill]:
    """What each session was billed for, each message at its own date."""
    totals = iter(costs_of(joined(ledgers), price).sum(axis=1).tolist())
    for ledger in ledgers:
        paid = ledger.column("paid")
        known = [cost for cost in islice(totals, sum(paid)) if not isnan(cost)]
        yield Bill(
            tokens={kind: sum(max(n, 0) for n in compress(ledger.column(kind), paid)) for kind in TOKEN_KINDS},
            cost_usd=sum(known) if known else None,
            answers=sum(paid),
            unpriced=sum(paid) - len(known),
        )


def answers(sessions: Iterable[SessionRow], price: Price) -> Iterator[Answer]:
    """The messages of each session that were paid for: those of the talk in its order, then the others."""
    rows = list(sessions)
    costs = iter(costs_of(joined([row.ledger for row in rows]), price).sum(axis=1).tolist())
    for row in rows:
        ledger = row.ledger
        ids = parted(ledger.ids, ledger.column("id_bytes"))
        columns = zip(ids, ledger.column("at"), ledger.named("model"), *map(ledger.column, TOKEN_KINDS), strict=True)
        for place, (id, at, model, *counts) in compress(enumerate(columns), ledger.column("paid")):
            cost = next(costs)
            told = dict(zip(TOKEN_KINDS, counts, strict=True))
            cost_usd = None if isnan(cost) else cost
            yield Answer(row, id, moment(at), model, told, place < ledger.live, cost_usd)


def call_rows(sessions: Iterable[SessionRow]) -> Iterator[CallRow]:
    """The tool calls of each session; they were measured."""
    for row in sessions:
        ledger = row.ledger
        if ledger.calls:
            ids, times = [*parted(ledger.ids, ledger.column("id_bytes"))], ledger.column("at")
            for place, call in ledger.calls:
                yield CallRow(row, ids[place], moment(times[place]), place < ledger.live, call)
