"""Tables: every message once, every token once, days in the zone that was asked for."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SID, TALK, TOKENS, gemini, header, user

import gemnb
from gemnb.errors import FrameError
from gemnb.frames.columns import describe, series
from gemnb.frames.tables import MESSAGES, TOOL_CALLS
from gemnb.model.records import Tokens
from gemnb.services.prices import list_price
from gemnb.store.replay import parse_time

Write = Callable[..., Path]
FRAMES = [gemnb.sessions_df, gemnb.messages_df, gemnb.tool_calls_df, gemnb.usage_df]


def spent(id: str, total: int, **more: Any) -> dict[str, Any]:
    return gemini(id, "x", tokens=TOKENS | {"input": total - 8, "total": total}, **more)


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f.__name__)
def test_no_rows_have_the_same_shape(ws: gemnb.Workspace, write_session: Write, frame: Any) -> None:
    empty = frame(ws)
    call = {"id": "c", "name": "f", "args": {"a": 1}, "status": "success", "result": [{"text": "x"}]}
    write_session(header(), *TALK, gemini("g2", "y", model="gemini-2.5-pro", toolCalls=[call], tokens=TOKENS))

    full = frame(ws)

    assert len(empty) == 0 < len(full)
    assert list(empty.columns) == list(full.columns) and [str(t) for t in empty.dtypes] == [str(t) for t in full.dtypes]
    assert not [c for c in full if full[c].dtype == object]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f.__name__)
def test_every_frame_can_be_written(ws: gemnb.Workspace, write_session: Write, frame: Any) -> None:
    write_session(
        header(summary="half \ud83d"),
        user("u", "half \ud83d"),
        gemini("g", "\ud83d", tokens=TOKENS, toolCalls=[{"id": "c", "name": "\ud83d"}]),
    )

    frame(ws).to_parquet(io.BytesIO())


def test_what_was_rewound_is_paid_for(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), user("u1", "a"), spent("g1", 100), {"$rewindTo": "u1"}, user("u2", "b"), spent("g2", 50))

    messages = gemnb.messages_df(ws)
    usage = gemnb.usage_df(ws, by=["session"])

    assert messages.set_index("message_id")["live"].to_dict() == {"u2": True, "g2": True, "g1": False}
    assert usage.loc[0, ["total", "visible", "answers", "unpriced"]].to_list() == [150, 50, 2, 2]


def test_what_has_no_price_is_named_and_never_zero(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), spent("a", 9, model="gemini-2.5-pro"), spent("b", 9, model="mystery-1"))

    frame = gemnb.usage_df(ws, by=["model"]).set_index("model")

    assert pd.isna(frame.loc["mystery-1", "cost_usd"]) and frame.loc["gemini-2.5-pro", "cost_usd"] > 0
    assert frame.attrs["gemnb"]["unpriced_models"] == ["mystery-1"]


def test_a_copied_message_is_billed_once(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)
    write_session(header("bb22cc33-1"), *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")

    assert gemnb.usage_df(ws)["total"].sum() == 108
    assert gemnb.usage_df(ws, dedupe=False)["total"].sum() == 216


@pytest.mark.parametrize(
    ("zone", "days"),
    [("America/Los_Angeles", ["2026-03-02"]), ("UTC", ["2026-03-02", "2026-03-03"]), ("Asia/Tokyo", ["2026-03-03"])],
)
def test_the_zone_makes_the_day(ws: gemnb.Workspace, write_session: Write, zone: str, days: list[str]) -> None:
    write_session(
        header(), spent("a", 9, timestamp="2026-03-02T23:30:00Z"), spent("b", 9, timestamp="2026-03-03T00:30:00Z")
    )

    frame = gemnb.usage_df(ws, by=["day"], tz=zone)

    assert [str(d.date()) for d in frame["day"]] == days and frame.attrs["gemnb"]["tz"] == zone


def test_the_hour_that_comes_twice_stays_two(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(
        header(), spent("a", 9, timestamp="2026-11-01T05:30:00Z"), spent("b", 9, timestamp="2026-11-01T06:30:00Z")
    )

    assert len(gemnb.usage_df(ws, by=["hour"], tz="America/New_York")) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [({"tz": "Mars/Olympus"}, "Mars/Olympus"), ({"by": ["colour"]}, "colour"), ({"by": []}, "hour, day")],
)
def test_what_cannot_be_is_told(ws: gemnb.Workspace, given: Any, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        gemnb.usage_df(ws, **given)


def test_an_unknown_source_is_told() -> None:
    with pytest.raises(FrameError, match="'everything'"):
        gemnb.sessions_df("everything")


def test_a_bad_time_is_na_and_counted(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x", timestamp="yesterday"), gemini("g", "y", timestamp=None, tokens=TOKENS))

    frame = gemnb.messages_df(ws)

    assert frame["at"].isna().all() and frame.attrs["gemnb"]["na"]["at"] == 2 and len(frame) == 2


def test_a_session_in_numbers(ws: gemnb.Workspace, write_session: Write) -> None:
    call = {
        "id": "c",
        "name": "ls",
        "status": "error",
        "args": {},
        "timestamp": "2026-05-01T10:00:11.000Z",
        "result": [{"functionResponse": {"response": {"error": "no"}}}],
    }
    write_session(header(), *TALK, gemini("g2", "y", model="gemini-2.5-pro", tokens=TOKENS, toolCalls=[call]))

    (row,) = gemnb.sessions_df(ws).to_dict("records")
    (tool,) = gemnb.tool_calls_df(ws).to_dict("records")

    assert (row["session_id"], row["messages"], row["user_turns"], row["model_turns"]) == (SID, 3, 1, 2)
    assert (row["tool_calls"], row["tool_errors"], row["total"], row["context_tokens"]) == (1, 1, 216, 100)
    assert row["unpriced"] == 1 and row["cost_usd"] == pytest.approx(100 * 1.25e-6 + 8 * 1e-5)
    assert (tool["error"], tool["duration_s"]) == ("no", 2.0)


def test_all_projects(ws: gemnb.Workspace, write_session: Write, home: Path, monkeypatch: Any) -> None:
    write_session(header(), *TALK)
    (home / ".gemini/tmp/other/chats").mkdir(parents=True)
    (home / ".gemini/tmp/other/chats/session-2026-05-01T10-00-cc33dd44.jsonl").write_bytes(b"")
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))

    assert set(gemnb.sessions_df("all")["project"]) == {"app"}


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        (Tokens(input=1000, cached=0, output=100, thoughts=0), 1000 * 1.25e-6 + 100 * 1e-5),
        (Tokens(input=1000, cached=1000, output=0, thoughts=100), 1000 * 0.125e-6 + 100 * 1e-5),
        (Tokens(input=300_000, cached=0, output=0, thoughts=0), 300_000 * 2.5e-6),
    ],
)
def test_prices_know_cache_and_tiers(tokens: Tokens, usd: float) -> None:
    cost = list_price("gemini-2.5-pro", tokens, parse_time("2026-01-01T00:00:00Z"))

    assert cost and cost.total == pytest.approx(usd)


@pytest.mark.parametrize(
    ("model", "at"), [("no-such-model", "2026-01-01"), (None, "2026-01-01"), ("gemini-2.5-pro", None)]
)
def test_no_price_is_never_zero(model: Any, at: Any) -> None:
    assert list_price(model, Tokens(input=5, output=5), parse_time(at and at + "T00:00:00Z")) is None


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 50), st.integers(0, 9)), max_size=12))
def test_sums_are_the_same_by_any_group(told: list[tuple[str, int, int]]) -> None:
    from gemnb.frames.tables import SessionRow, message_rows, usage_frame
    from gemnb.model.records import Header
    from gemnb.model.session import Session, SessionInfo
    from gemnb.store.codec import decode_message

    messages = [
        decode_message(spent(f"{n}", 10 + t, model=m, timestamp=f"2026-05-{1 + d:02}T10:00:00Z"))
        for n, (m, t, d) in enumerate(told)
    ]
    session = Session(header=Header(session_id="s"), messages=tuple(messages), usage={m.id: m for m in messages})
    row = SessionRow(SessionInfo(id="s", path=Path("s")), session, "p", None)

    sums = {
        by: usage_frame(message_rows([row], list_price), by=by, zone="UTC", dedupe=True, facts={})["total"].sum()
        for by in (("day",), ("model",), ("week", "model"), ("session",), ("month", "project", "kind"))
    }

    assert set(sums.values()) == {sum(10 + t for _, t, _ in told)}


@pytest.mark.parametrize("table", [MESSAGES, TOOL_CALLS], ids=["messages", "tool calls"])
def test_every_column_is_described(table: Any) -> None:
    text = describe(table)

    assert all(f"| `{c.name}` | `{c.dtype}` | {c.meaning} |" in text for c in table)
    assert all(str(series([], c.dtype).dtype) == c.dtype for c in table)


def test_pandas_is_what_we_think() -> None:
    assert pd.Series(["x"], dtype="str").dtype == "str"


def test_a_number_that_no_column_can_hold_is_na_and_its_row_stays() -> None:
    from gemnb.frames.columns import series

    assert list(series([2**70, 3, None, -(2**70)], "Int64").isna()) == [True, False, True, True]
