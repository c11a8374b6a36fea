"""What one row of a table stands for: a session, a message, a tool call; and what a session was billed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain, islice
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from gemnb.frames.columns import ODD_VALUE, Repeated
from gemnb.frames.costs import UNKNOWN, costs_of, joined, paid_places
from gemnb.model.cost import Price
from gemnb.model.ledger import Call, Ledger
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


class Messages:
    """The messages of sessions, a column at a time: the talk of each in its order, then what was only paid for."""

    def __init__(self, sessions: Iterable[SessionRow], price: Price) -> None:
        self._sessions = [row for row in sessions if row.ledger.ids]
        self._ledgers = [row.ledger for row in self._sessions]
        self._price = price

    def told(self, name: str) -> list[Any]:
        """A column of the ledgers."""
        return [*chain.from_iterable(getattr(ledger, name) for ledger in self._ledgers)]

    def each(self, value: Callable[[SessionRow], object]) -> Repeated:
        """What is the same of all messages of a session."""
        return Repeated([value(row) for row in self._sessions], [len(ledger.ids) for ledger in self._ledgers])

    def or_odd(self, name: str, column: str) -> list[Any]:
        """A column of the ledgers, with a mark where the file has something else than a `name`."""
        found: list[Any] = []
        for ledger in self._ledgers:
            odd = ledger.odd.get(name, ())
            values = getattr(ledger, column)
            found += [ODD_VALUE if place in odd else value for place, value in enumerate(values)] if odd else values
        return found

    def counts(self, kind: str) -> NDArray[Any]:
        """Tokens of a kind."""
        return joined(ledger.counts[kind] for ledger in self._ledgers)

    @property
    def turns(self) -> NDArray[Any]:
        """The number of the prompt that each belongs to."""
        return joined(ledger.turns for ledger in self._ledgers)

    @property
    def live(self) -> list[bool]:
        """Whether each is in the talk."""
        return [place < ledger.live for ledger in self._ledgers for place in range(len(ledger.ids))]

    @cached_property
    def costs(self) -> NDArray[Any]:
        """US dollars as `Cost` has them, a row each; NaN where they are unknown."""
        import numpy as np

        found = np.full((sum(len(ledger.ids) for ledger in self._ledgers), len(UNKNOWN)), UNKNOWN)
        found[paid_places(self._ledgers)] = costs_of(self._ledgers, self._price)
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
    totals = iter(costs_of(ledgers, price).sum(axis=1).tolist())
    for ledger in ledgers:
        known = [cost for cost in islice(totals, len(ledger.paid)) if not isnan(cost)]
        yield Bill(
            tokens={kind: sum(max(ledger.counts[kind][place], 0) for place in ledger.paid) for kind in TOKEN_KINDS},
            cost_usd=sum(known) if known else None,
            answers=len(ledger.paid),
            unpriced=len(ledger.paid) - len(known),
        )


def answers(sessions: Iterable[SessionRow], price: Price) -> Iterator[Answer]:
    """The messages of each session that were paid for: those of the talk in its order, then the others."""
    rows = list(sessions)
    costs = iter(costs_of([row.ledger for row in rows], price).sum(axis=1).tolist())
    for row in rows:
        ledger = row.ledger
        for place, cost in zip(ledger.paid, costs, strict=False):
            counts = {kind: ledger.counts[kind][place] for kind in TOKEN_KINDS}
            at, live = ledger.times[place], place < ledger.live
            cost_usd = None if isnan(cost) else cost
            yield Answer(row, ledger.ids[place], at, ledger.models[place], counts, live, cost_usd)


def call_rows(sessions: Iterable[SessionRow]) -> Iterator[CallRow]:
    """The tool calls of each session; they were measured."""
    for row in sessions:
        ledger = row.ledger
        for place, call in ledger.calls or ():
            yield CallRow(row, ledger.ids[place], ledger.times[place], place < ledger.live, call)
