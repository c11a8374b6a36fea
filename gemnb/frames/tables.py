"""The tables of sessions, messages and tool calls. Rows are gathered by `gemnb.tables`, which knows where from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from typing import TYPE_CHECKING

from gemnb.frames.columns import Column, column_frame, to_frame
from gemnb.frames.rows import CallRow, Messages, SessionRow, call_rows
from gemnb.model.cost import Cost
from gemnb.model.records import TOKEN_KINDS, parse_time

if TYPE_CHECKING:
    import pandas as pd

UTC_TIME = "datetime64[us, UTC]"


def _last_prompt(row: SessionRow) -> int | None:
    return next((count for count in reversed(row.ledger.column("input")[: row.ledger.live]) if count >= 0), None)


def _models(row: SessionRow) -> str:
    models = compress(row.ledger.named("model"), row.ledger.column("paid"))
    return ", ".join(sorted({model for model in models if model}))


def _spent(kind: str) -> Callable[[SessionRow], int]:
    return lambda row: row.bill.tokens[kind]


def _duration(row: SessionRow) -> float | None:
    info = row.info
    return (info.last_updated - info.started_at).total_seconds() if info.last_updated and info.started_at else None


def _visible(row: SessionRow) -> int:
    return sum(max(count, 0) for count in row.ledger.column("total")[: row.ledger.live])


SESSIONS: tuple[Column[SessionRow], ...] = (
    Column("session_id", "str", "Full id.", lambda r: r.info.id),
    Column("index", "Int64", "Number in the listing; NA where hidden.", lambda r: r.info.index),
    Column("project", "str", "Name of the project's folder in the store.", lambda r: r.project),
    Column("root", "str", "The project's folder.", lambda r: r.root),
    Column("title", "str", "Summary, else first prompt.", lambda r: r.info.title),
    Column("kind", "category", "`main` or `subagent`.", lambda r: r.info.kind),
    Column("parent_id", "str", "Session that a sub-agent worked for; NA for others.", lambda r: r.parent),
    Column(
        "state",
        "category",
        "`ok`, `at_risk`, `recovered`, `empty`, `subagent`, `duplicate`.",
        lambda r: r.info.state,
    ),
    Column("started_at", UTC_TIME, "First record.", lambda r: r.info.started_at),
    Column("last_updated", UTC_TIME, "Last change.", lambda r: r.info.last_updated),
    Column("duration_s", "Float64", "Seconds from start to last change.", _duration),
    Column("messages", "Int64", "Distinct live messages.", lambda r: r.info.message_count),
    Column("user_turns", "Int64", "Prompts of the person in the live talk.", lambda r: r.info.user_turns),
    Column("model_turns", "Int64", "Live answers.", lambda r: r.ledger.named("type")[: r.ledger.live].count("gemini")),
    Column("tool_calls", "Int64", "Live tool calls.", lambda r: r.ledger.tool_calls),
    Column("tool_errors", "Int64", "Of these, with status `error`.", lambda r: r.ledger.tool_errors),
    *(Column(n, "Int64", f"Tokens spent: {n}; rewound and compressed answers too.", _spent(n)) for n in TOKEN_KINDS),
    Column("visible", "Int64", "Total tokens of the answers still in the talk.", _visible),
    Column("context_tokens", "Int64", "Tokens of the last prompt that was sent.", _last_prompt),
    Column("models", "str", "Models that answered, comma-separated.", _models),
    Column("cost_usd", "Float64", "US dollars, of the priced answers; NA where none is.", lambda r: r.bill.cost_usd),
    Column("unpriced", "Int64", "Answers whose price is unknown.", lambda r: r.bill.unpriced),
    Column(
        "agents_total", "Int64", "Tokens that its sub-agents spent, beside its own.", lambda r: r.agents.tokens["total"]
    ),
    Column(
        "agents_cost_usd",
        "Float64",
        "US dollars of these, where priced; NA where there are none.",
        lambda r: r.agents.cost_usd,
    ),
    Column("rewound", "Int64", "Rewinds.", lambda r: r.ledger.rewound),
    Column("compressions", "Int64", "Times that a summary replaced the talk's start.", lambda r: r.ledger.compressions),
    Column("size_bytes", "Int64", "Size of the file, bytes.", lambda r: r.info.size_bytes),
    Column("damage", "Int64", "Lines that could not be read.", lambda r: r.info.damage_count),
    Column("hidden_because", "str", "Why it is not listed; NA where it is.", lambda r: r.info.hidden_because),
)


def _tokens(kind: str) -> Callable[[Messages], object]:
    return lambda m: m.told.numbers[kind]


def _cost(kind: str) -> Callable[[Messages], object]:
    return lambda m: m.costs[:, Cost._fields.index(kind)]


def _mismatch(m: Messages) -> object:
    """NA where input or total is unknown."""
    import numpy as np
    import pandas as pd

    counts = m.told.numbers
    input, cached, output, thoughts, tool, total = (np.maximum(counts[kind], 0) for kind in TOKEN_KINDS)
    wrong = (total != input + output + thoughts + tool) | (cached > input)
    return pd.arrays.BooleanArray(wrong, (counts["input"] < 0) | (counts["total"] < 0))


MESSAGES: tuple[Column[Messages], ...] = (
    Column("session_id", "str", "Session that it is in.", lambda m: m.each(lambda r: r.info.id)),
    Column("project", "str", "Name of the project's folder in the store.", lambda m: m.each(lambda r: r.project)),
    Column(
        "kind", "category", "`main`, or `subagent` for a sub-agent's talk.", lambda m: m.each(lambda r: r.info.kind)
    ),
    Column(
        "parent_id",
        "str",
        "Session that the sub-agent worked for; NA for others.",
        lambda m: m.each(lambda r: r.parent),
    ),
    Column("message_id", "str", "Its id.", lambda m: m.ids),
    Column(
        "turn",
        "Int64",
        "Number of the prompt that it belongs to, from 1; NA before the first, and where it is no longer in the talk.",
        lambda m: m.told.numbers["turn"],
    ),
    Column("at", UTC_TIME, "When it was recorded; NA where the file tells no time.", lambda m: m.told.numbers["at"]),
    Column("type", "category", "`user`, `gemini`, `info`, `error`, `warning`.", lambda m: m.told.coded("type")),
    Column("model", "category", "Model that answered.", lambda m: m.told.coded("model")),
    Column("text", "str", "Its text parts, joined.", lambda m: m.texts),
    Column("chars", "Int64", "Characters of the text.", lambda m: m.told.numbers["chars"]),
    Column("input", "Int64", "Prompt tokens, cached ones included.", _tokens("input")),
    Column("cached", "Int64", "Tokens of the prompt that came from the cache.", _tokens("cached")),
    Column("output", "Int64", "Tokens of the answer.", _tokens("output")),
    Column("thoughts", "Int64", "Tokens of the thoughts.", _tokens("thoughts")),
    Column("tool", "Int64", "Tokens of tool prompts.", _tokens("tool")),
    Column("total", "Int64", "Total as the service reported it.", _tokens("total")),
    Column(
        "token_mismatch",
        "boolean",
        "Whether the counts contradict each other: a total that is not the sum of its parts, more cached than input.",
        _mismatch,
    ),
    Column(
        "cost_usd",
        "Float64",
        "US dollars by the list price of its day; NA where unpriced.",
        lambda m: m.costs.sum(axis=1),
    ),
    Column("cost_input_usd", "Float64", "Of it, for prompt tokens that were not cached.", _cost("input")),
    Column("cost_cached_usd", "Float64", "Of it, for cached tokens.", _cost("cached")),
    Column("cost_output_usd", "Float64", "Of it, for the answer.", _cost("output")),
    Column("cost_thoughts_usd", "Float64", "Of it, for thoughts.", _cost("thoughts")),
    Column("live", "boolean", "Whether it is still in the talk; else it was only paid for.", lambda m: m.live),
    Column(
        "outcome",
        "category",
        "How a live answer ended (`completed`, `safety`, `cancelled`, …; `info` or `error` where only a note tells it),"
        " or a prompt that has a note and no answer; NA for others.",
        lambda m: m.told.coded("outcome"),
    ),
)


def _took(row: CallRow) -> float | None:
    end = parse_time(row.call.timestamp)
    seconds = (end - row.at).total_seconds() if end and row.at else None
    return seconds if seconds is not None and seconds >= 0 else None


TOOL_CALLS: tuple[Column[CallRow], ...] = (
    Column("session_id", "str", "Session that it is in.", lambda r: r.owner.info.id),
    Column("message_id", "str", "Answer that made the call.", lambda r: r.message_id),
    Column("call_id", "str", "Its id.", lambda r: r.call.id),
    Column(
        "at",
        UTC_TIME,
        "When its result was recorded.",
        lambda r: parse_time(r.call.timestamp) or r.call.timestamp,
    ),
    Column("name", "str", "The tool.", lambda r: r.call.name),
    Column("status", "category", "`success`, `error`, `cancelled`, …", lambda r: r.call.status or None),
    Column("args_chars", "Int64", "Characters of its arguments as JSON.", lambda r: r.call.args_chars),
    Column("result_chars", "Int64", "Characters of its result as JSON; NA without one.", lambda r: r.call.result_chars),
    Column("duration_s", "Float64", "Seconds from the answer to the result, where both are known.", _took),
    Column("error", "str", "What went wrong, for a failed call.", lambda r: r.call.error),
    Column("live", "boolean", "Whether its answer is still in the talk.", lambda r: r.live),
)


def sessions_frame(rows: Iterable[SessionRow], facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a session; columns as in `SESSIONS`."""
    return to_frame(rows, SESSIONS, facts)


def messages_frame(messages: Messages, facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a message, in session order then message order; columns as in `MESSAGES`."""
    return column_frame(messages, MESSAGES, facts)


def tool_calls_frame(sessions: Iterable[SessionRow], facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a tool call; columns as in `TOOL_CALLS`."""
    return to_frame(call_rows(sessions), TOOL_CALLS, facts)
