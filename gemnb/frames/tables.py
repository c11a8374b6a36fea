"""The tables: sessions, messages, tool calls, usage. Rows are gathered by `gemnb.tables`, which knows where from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gemnb.errors import FrameError
from gemnb.frames.columns import Column, to_frame
from gemnb.model.records import Message, Tokens, ToolCall
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import prompts
from gemnb.store.replay import parse_time

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("input", "cached", "output", "thoughts", "tool", "total")
PERIODS = {"hour": "h", "day": "D", "week": "W-SUN", "month": "M"}
GROUPS = (*PERIODS, "model", "project", "session", "kind")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session, whole, with where it is from."""

    info: SessionInfo
    session: Session
    project: str
    root: str | None


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message: live in the talk, or only paid for."""

    owner: SessionRow
    message: Message
    live: bool
    turn: int | None
    at: datetime | None
    cost: Any
    """A `services.prices.Cost`, or None."""
    outcome: str | None


@dataclass(frozen=True, slots=True)
class CallRow:
    """One tool call of a message."""

    row: MessageRow
    call: ToolCall


def message_rows(sessions: Iterable[SessionRow], price: Any) -> Iterator[MessageRow]:
    """The live messages of each session in the order of the talk, then those that were only paid for."""
    for owner in sessions:
        asked = {message.id for message in prompts(owner.session.messages)}
        turn = 0
        live = owner.session.messages
        for number, message in enumerate(live):
            turn += message.id in asked
            follower = live[number + 1] if number + 1 < len(live) else None
            yield _message_row(owner, message, price, live=True, turn=turn, follower=follower)
        held = {message.id for message in live}
        for id, message in owner.session.usage.items():
            if id not in held:
                yield _message_row(owner, message, price, live=False, turn=None, follower=None)


def _message_row(
    owner: SessionRow, message: Message, price: Any, *, live: bool, turn: int | None, follower: Message | None
) -> MessageRow:
    at = parse_time(message.timestamp)
    tokens = message.tokens
    cost = price(message.model, tokens, at) if tokens is not None else None
    ended = follower is not None and follower.type in ("info", "error") and message.type == "gemini"
    outcome = (follower.type if ended and follower else "completed") if message.type == "gemini" and live else None
    return MessageRow(owner, message, live, turn, at, cost, outcome)


def _tokens(name: str) -> Any:
    return lambda row: getattr(row.message.tokens, name) if row.message.tokens else None


def _cost(name: str) -> Any:
    return lambda row: getattr(row.cost, name) if row.cost else None


def mismatch(tokens: Tokens | None) -> bool | None:
    """Whether the reported total is not the sum of its parts; None where one of them is unknown."""
    if tokens is None or tokens.total is None or tokens.input is None:
        return None
    parts = (tokens.input, tokens.output, tokens.thoughts, tokens.tool)
    return tokens.total != sum(part or 0 for part in parts)


def _spent(name: str) -> Any:
    return lambda row: sum(getattr(m.tokens, name) or 0 for m in row.session.usage.values() if m.tokens)


def _calls(row: SessionRow) -> list[ToolCall]:
    return [call for message in row.session.messages for call in message.tool_calls]


def _last_prompt(row: SessionRow) -> int | None:
    told = [m.tokens.input for m in row.session.messages if m.tokens and m.tokens.input is not None]
    return told[-1] if told else None


def sessions_columns(price: Any) -> tuple[Column[SessionRow], ...]:
    """The columns of `sessions_df`; `price` works out the cost."""

    def costs(row: SessionRow) -> list[Any]:
        told = [(m, parse_time(m.timestamp)) for m in row.session.usage.values() if m.tokens]
        return [price(m.model, m.tokens, at) for m, at in told]

    def summed(found: list[Any]) -> float | None:
        known = [cost.total for cost in found if cost]
        return sum(known) if known or not found else None

    return (
        Column("session_id", "str", "Full id.", lambda r: r.info.id),
        Column("index", "Int64", "Number in the listing; NA where hidden.", lambda r: r.info.index),
        Column("project", "str", "Name of the project's folder in the store.", lambda r: r.project),
        Column("root", "str", "The project's folder.", lambda r: r.root),
        Column("title", "str", "Summary, else first prompt.", lambda r: r.info.title),
        Column("kind", "category", "`main` or `subagent`.", lambda r: r.info.kind),
        Column(
            "state",
            "category",
            "`ok`, `at_risk`, `recovered`, `empty`, `subagent`, `duplicate`.",
            lambda r: r.info.state,
        ),
        Column("started_at", "datetime64[us, UTC]", "First record.", lambda r: r.info.started_at),
        Column("last_updated", "datetime64[us, UTC]", "Last change.", lambda r: r.info.last_updated),
        Column("duration_s", "Float64", "Seconds from start to last change.", _duration),
        Column("messages", "Int64", "Distinct live messages.", lambda r: r.info.message_count),
        Column("user_turns", "Int64", "Prompts of the person in the live talk.", lambda r: r.info.user_turns),
        Column("model_turns", "Int64", "Live answers.", lambda r: sum(m.type == "gemini" for m in r.session.messages)),
        Column("tool_calls", "Int64", "Live tool calls.", lambda r: len(_calls(r))),
        Column(
            "tool_errors",
            "Int64",
            "Of these, with status `error`.",
            lambda r: sum(c.status == "error" for c in _calls(r)),
        ),
        *(Column(n, "Int64", f"Tokens spent: {n}; rewound and compressed answers too.", _spent(n)) for n in KINDS),
        Column("visible", "Int64", "Total tokens of the answers still in the talk.", _visible),
        Column("context_tokens", "Int64", "Tokens of the last prompt.", _last_prompt),
        Column(
            "models",
            "str",
            "Models that answered, comma-separated.",
            lambda r: ", ".join(sorted({m.model for m in r.session.usage.values() if m.model})),
        ),
        Column(
            "cost_usd", "Float64", "US dollars, of the priced answers; NA where none is.", lambda r: summed(costs(r))
        ),
        Column("unpriced", "Int64", "Answers whose price is unknown.", lambda r: sum(c is None for c in costs(r))),
        Column("rewound", "Int64", "Rewinds.", lambda r: sum(s.kind == "rewind" for s in r.session.history)),
        Column("compressions", "Int64", "Times that a summary replaced the talk's start.", _compressions),
        Column("size_bytes", "Int64", "Size of the file, bytes.", lambda r: r.info.size_bytes),
        Column("damage", "Int64", "Lines that could not be read.", lambda r: r.info.damage_count),
        Column("hidden_because", "str", "Why it is not listed; NA where it is.", lambda r: r.info.hidden_because),
    )


def _duration(row: SessionRow) -> float | None:
    info = row.info
    return (info.last_updated - info.started_at).total_seconds() if info.last_updated and info.started_at else None


def _visible(row: SessionRow) -> int:
    return sum(m.tokens.total or 0 for m in row.session.messages if m.tokens)


def _compressions(row: SessionRow) -> int:
    """Replacements that begin with a state snapshot which the talk before did not begin with."""
    known: set[str] = set()
    count = 0
    for step in row.session.history:
        known.update(step.before)
        if step.kind == "replace" and step.after and step.after[0] not in known:
            first = next((m for m in row.session.messages if m.id == step.after[0]), None)
            count += first is not None and "<state_snapshot>" in first.text
    return count


MESSAGES: tuple[Column[MessageRow], ...] = (
    Column("session_id", "str", "Session that it is in.", lambda r: r.owner.info.id),
    Column("project", "str", "Name of the project's folder in the store.", lambda r: r.owner.project),
    Column("kind", "category", "`main`, or `subagent` for a sub-agent's talk.", lambda r: r.owner.info.kind),
    Column("message_id", "str", "Its id.", lambda r: r.message.id),
    Column(
        "turn",
        "Int64",
        "Number of the prompt that it belongs to, from 1; NA where it is no longer in the talk.",
        lambda r: r.turn,
    ),
    Column("at", "datetime64[us, UTC]", "When it was recorded; NA where the file tells no time.", lambda r: r.at),
    Column("type", "category", "`user`, `gemini`, `info`, `error`, `warning`.", lambda r: r.message.type),
    Column("model", "category", "Model that answered.", lambda r: r.message.model),
    Column("text", "str", "Its text parts, joined.", lambda r: r.message.text),
    Column("chars", "Int64", "Characters of the text.", lambda r: len(r.message.text)),
    Column("input", "Int64", "Prompt tokens, cached ones included.", _tokens("input")),
    Column("cached", "Int64", "Tokens of the prompt that came from the cache.", _tokens("cached")),
    Column("output", "Int64", "Tokens of the answer.", _tokens("output")),
    Column("thoughts", "Int64", "Tokens of the thoughts.", _tokens("thoughts")),
    Column("tool", "Int64", "Tokens of tool prompts.", _tokens("tool")),
    Column("total", "Int64", "Total as the service reported it.", _tokens("total")),
    Column(
        "token_mismatch",
        "boolean",
        "Whether the total is not the sum of its parts.",
        lambda r: mismatch(r.message.tokens),
    ),
    Column("cost_usd", "Float64", "US dollars by the list price of its day; NA where unpriced.", _cost("total")),
    Column("cost_input_usd", "Float64", "Of it, for prompt tokens that were not cached.", _cost("input")),
    Column("cost_cached_usd", "Float64", "Of it, for cached tokens.", _cost("cached")),
    Column("cost_output_usd", "Float64", "Of it, for the answer.", _cost("output")),
    Column("cost_thoughts_usd", "Float64", "Of it, for thoughts.", _cost("thoughts")),
    Column("live", "boolean", "Whether it is still in the talk; else it was only paid for.", lambda r: r.live),
    Column(
        "outcome",
        "category",
        "`completed`, or the kind of note that follows a live answer; NA for others.",
        lambda r: r.outcome,
    ),
)


def _took(row: CallRow) -> float | None:
    end = parse_time(row.call.timestamp)
    seconds = (end - row.row.at).total_seconds() if end and row.row.at else None
    return seconds if seconds is not None and seconds >= 0 else None


TOOL_CALLS: tuple[Column[CallRow], ...] = (
    Column("session_id", "str", "Session that it is in.", lambda r: r.row.owner.info.id),
    Column("message_id", "str", "Answer that made the call.", lambda r: r.row.message.id),
    Column("call_id", "str", "Its id.", lambda r: r.call.id),
    Column("at", "datetime64[us, UTC]", "When its result was recorded.", lambda r: parse_time(r.call.timestamp)),
    Column("name", "str", "The tool.", lambda r: r.call.name),
    Column("status", "category", "`success`, `error`, `cancelled`, …", lambda r: r.call.status or None),
    Column("args_chars", "Int64", "Characters of its arguments as JSON.", lambda r: _chars(r.call.args)),
    Column(
        "result_chars", "Int64", "Characters of its result as JSON; NA without one.", lambda r: _chars(r.call.result)
    ),
    Column("duration_s", "Float64", "Seconds from the answer to the result, where both are known.", _took),
    Column("error", "str", "What went wrong, for a failed call.", lambda r: _error(r.call)),
    Column("live", "boolean", "Whether its answer is still in the talk.", lambda r: r.row.live),
)


def _chars(value: object) -> int | None:
    import json

    return None if value is None else len(json.dumps(value, ensure_ascii=False))


def _error(call: ToolCall) -> str | None:
    results = call.result if isinstance(call.result, list) else [call.result]
    for part in results:
        response = part.get("functionResponse", {}) if isinstance(part, dict) else {}
        told = response.get("response") if isinstance(response, dict) else None
        if isinstance(told, dict) and "error" in told:
            return str(told["error"])
    return None


def messages_frame(rows: Iterable[MessageRow], facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a message, in session order then message order; columns as in `MESSAGES`."""
    return _told(to_frame(rows, MESSAGES), facts)


def sessions_frame(rows: Iterable[SessionRow], price: Any, facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a session; columns as `sessions_columns` has them."""
    return _told(to_frame(rows, sessions_columns(price)), facts)


def tool_calls_frame(rows: Iterable[MessageRow], facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a tool call; columns as in `TOOL_CALLS`."""
    calls = (CallRow(row, call) for row in rows for call in row.message.tool_calls)
    return _told(to_frame(calls, TOOL_CALLS), facts)


def usage_frame(
    rows: Iterable[MessageRow], *, by: Sequence[str], zone: str, dedupe: bool, facts: Mapping[str, object]
) -> pd.DataFrame:
    """One row for each group of `by`: tokens spent and visible, cost, answers, and how many are unpriced.

    Raises:
        FrameError: `by` names something that cannot be grouped by, or `zone` is no time zone.
    """
    import pandas as pd

    by = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in by if name not in GROUPS]
    if unknown or not by:
        raise FrameError(f"Usage by {unknown or by!r} is not to be had: give some of {', '.join(GROUPS)}.")
    billed = [row for row in rows if row.message.tokens is not None]
    if dedupe:
        billed = _once(billed)
    frame = messages_frame(billed, facts)
    keys = pd.DataFrame({name: _key(name, frame, zone) for name in by})
    values = frame[[*KINDS, "cost_usd"]].assign(
        answers=1, visible=frame["total"].where(frame["live"], 0), unpriced=frame["cost_usd"].isna()
    )
    whole = ["answers", "visible", "unpriced", *KINDS]
    values = values.astype(dict.fromkeys(whole, "Int64")).fillna(dict.fromkeys((*KINDS, "visible"), 0))
    # a group without a single price has no cost: NA, not zero
    groups = pd.concat([keys, values], axis=1).groupby(by, dropna=False, observed=True, sort=True)
    unpriced = sorted({str(row.message.model) for row in billed if row.cost is None})
    return _told(groups.sum(min_count=1).reset_index(), {**facts, "tz": zone, "unpriced_models": unpriced})


def _once(rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Each message once, whatever files it was copied to; the one still in a talk rather than one that is not."""
    best: dict[str, MessageRow] = {}
    for row in rows:
        held = best.get(row.message.id)
        if held is None or (row.live and not held.live):
            best[row.message.id] = row
    return list(best.values())


def _key(name: str, frame: pd.DataFrame, zone: str) -> pd.Series:
    if name in ("model", "kind"):
        return frame[name].astype("str")
    if name == "project":
        return frame["project"]
    if name == "session":
        return frame["session_id"]
    local: pd.Series[Any] = frame["at"].dt.tz_convert(zone)
    if name == "hour":
        hours: pd.Series[Any] = local.dt.tz_convert("UTC").dt.floor("h").dt.tz_convert(zone)
        return hours
    naive = local.dt.tz_localize(None)
    starts: pd.Series[Any] = naive.dt.to_period(PERIODS[name]).dt.start_time.astype("datetime64[us]")
    return starts


def _told(frame: pd.DataFrame, facts: Mapping[str, object]) -> pd.DataFrame:
    frame.attrs["gemnb"] = {**facts, "na": {c: int(n) for c, n in frame.isna().sum().items() if n}}
    return frame
