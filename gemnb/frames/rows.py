"""What one row of a table stands for: a session, a message, a tool call; and what a session was billed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gemnb.model.cost import Cost, Price
from gemnb.model.outcome import NOTED
from gemnb.model.records import Message, Tokens, ToolCall, as_count
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import prompts
from gemnb.store.replay import parse_time

KINDS = ("input", "cached", "output", "thoughts", "tool", "total")


@dataclass(frozen=True, slots=True)
class Bill:
    """What one or more sessions were billed for, rewound and compressed answers included."""

    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    cost_usd: float | None = None
    """Of the priced answers; None where there is none."""
    answers: int = 0
    unpriced: int = 0
    """Answers whose price is unknown."""

    def __add__(self, other: Bill) -> Bill:
        tokens = {kind: self.tokens[kind] + other.tokens[kind] for kind in KINDS}
        costs = [bill.cost_usd for bill in (self, other) if bill.cost_usd is not None]
        cost = sum(costs) if costs else None
        return Bill(tokens, cost, self.answers + other.answers, self.unpriced + other.unpriced)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session, whole, with where it is from."""

    info: SessionInfo
    session: Session
    project: str
    root: str | None
    parent: str | None = None
    """Id of the session that this sub-agent worked for, the topmost one."""
    bill: Bill = Bill()
    agents: Bill = Bill()
    """Of its sub-agents."""


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message: live in the talk, or only paid for."""

    owner: SessionRow
    message: Message
    live: bool
    turn: int | None
    at: datetime | None
    cost: Cost | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class CallRow:
    """One tool call of a message."""

    row: MessageRow
    call: ToolCall


def bill_of(session: Session, price: Price) -> Bill:
    """What `session` was billed for, each message at its own date."""
    billed = [(m, m.tokens) for m in session.usage.values() if m.tokens is not None]
    costs = [price(message.model, tokens, parse_time(message.timestamp)) for message, tokens in billed]
    known = [cost.total for cost in costs if cost is not None]
    return Bill(
        tokens={kind: sum(as_count(getattr(tokens, kind)) or 0 for _, tokens in billed) for kind in KINDS},
        cost_usd=sum(known) if known else None,
        answers=len(billed),
        unpriced=len(costs) - len(known),
    )


def message_rows(sessions: Iterable[SessionRow], price: Price) -> Iterator[MessageRow]:
    """The live messages of each session in the order of the talk, then those that were only paid for."""
    for owner in sessions:
        live = owner.session.messages
        asked = {message.id for message in prompts(live)}
        ended = _outcomes(live, asked)
        turn = 0
        for message in live:
            turn += message.id in asked
            yield _row(owner, message, price, live=True, turn=turn or None, outcome=ended.get(message.id))
        held = {message.id for message in live}
        for id, message in owner.session.usage.items():
            if id not in held:
                yield _row(owner, message, price, live=False, turn=None, outcome=None)


def call_rows(messages: Iterable[MessageRow]) -> Iterator[CallRow]:
    """The tool calls of each message."""
    return (CallRow(row, call) for row in messages for call in row.message.tool_calls)


def token_value(message: Message, kind: str) -> object:
    """The count of `kind` in `message`; where that is none, what the file has in its place."""
    count = getattr(message.tokens, kind) if message.tokens is not None else None
    if count is not None:
        return count
    raw = message.extra.get("tokens")
    return raw.get(kind) if isinstance(raw, dict) else raw


def mismatch(tokens: Tokens | None) -> bool | None:
    """Whether the counts contradict each other: a total that is not the sum of its parts, more cached than input.

    None where input or total is unknown.
    """
    if tokens is None or as_count(tokens.total) is None or as_count(tokens.input) is None:
        return None
    parts = (tokens.input, tokens.output, tokens.thoughts, tokens.tool)
    input, cached = (as_count(count) or 0 for count in (tokens.input, tokens.cached))
    return tokens.total != sum(as_count(part) or 0 for part in parts) or cached > input


def _row(
    owner: SessionRow, message: Message, price: Price, *, live: bool, turn: int | None, outcome: str | None
) -> MessageRow:
    at = parse_time(message.timestamp)
    cost = price(message.model, message.tokens, at) if message.tokens is not None else None
    return MessageRow(owner, message, live, turn, at, cost, outcome)


def _outcomes(live: Sequence[Message], asked: Collection[str]) -> dict[str, str]:
    """How each answer ended, by the note after it; and each prompt that has a note and no answer."""
    found: dict[str, str] = {}
    note: str | None = None
    for message in reversed(live):
        if message.type in ("info", "error"):
            note = str(NOTED.get(message.text, message.type))
        elif message.type == "gemini":
            found[message.id], note = note or "completed", None
        elif message.id in asked:
            found |= {message.id: note} if note else {}
            note = None
    return found
