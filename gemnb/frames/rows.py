"""What one row of a table stands for: a session, a message, a tool call; and what a session was billed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gemnb.model.cost import Cost, Price
from gemnb.model.ledger import Call, Entry, Ledger
from gemnb.model.records import TOKEN_KINDS, Tokens, as_count
from gemnb.model.session import SessionInfo
from gemnb.store.replay import parse_time


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


class MessageRow(NamedTuple):
    """One message with the session that it is in."""

    owner: SessionRow
    message: Entry
    at: datetime | None
    cost: Cost | None


class CallRow(NamedTuple):
    """One tool call of a message."""

    row: MessageRow
    call: Call


def bill_of(ledger: Ledger, price: Price) -> Bill:
    """What a session was billed for, each message at its own date."""
    billed = [(entry, entry.tokens) for entry in ledger.entries if entry.tokens]
    costs = [price(entry.model, tokens, parse_time(entry.timestamp)) for entry, tokens in billed]
    known = [cost.total for cost in costs if cost is not None]
    return Bill(
        tokens={kind: sum(as_count(getattr(tokens, kind)) or 0 for _, tokens in billed) for kind in TOKEN_KINDS},
        cost_usd=sum(known) if known else None,
        answers=len(billed),
        unpriced=len(costs) - len(known),
    )


def message_rows(sessions: Iterable[SessionRow], price: Price) -> Iterator[MessageRow]:
    """The live messages of each session in the order of the talk, then those that were only paid for."""
    for owner in sessions:
        for entry in owner.ledger.entries:
            at = parse_time(entry.timestamp)
            yield MessageRow(
                owner, entry, at, price(entry.model, entry.tokens, at) if entry.tokens is not None else None
            )


def call_rows(messages: Iterable[MessageRow]) -> Iterator[CallRow]:
    """The tool calls of each message; they were measured."""
    return (CallRow(row, call) for row in messages for call in row.message.calls if isinstance(call, Call))


def token_value(message: Entry, kind: str) -> object:
    """The count of `kind` in `message`; where that is none, what the file has in its place."""
    count = getattr(message.tokens, kind) if message.tokens is not None else None
    if count is not None or not message.extra:
        return count
    raw = message.extra.get("tokens")
    return raw.get(kind) if isinstance(raw, dict) else raw


def mismatch(tokens: Tokens | None) -> bool | None:
    """Whether the counts contradict each other: a total that is not the sum of its parts, more cached than input.

    None where input or total is unknown.
    """
    if tokens is None or as_count(tokens.total) is None or (input := as_count(tokens.input)) is None:
        return None
    parts = [as_count(tokens.output) or 0, as_count(tokens.thoughts) or 0, as_count(tokens.tool) or 0]
    return tokens.total != input + sum(parts) or (as_count(tokens.cached) or 0) > input
