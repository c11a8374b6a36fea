"""Tables: every message once, every token once, days in the zone that was asked for."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support import SID, TALK, TOKENS, gemini, header, user

import gemnb
from gemnb.errors import FrameError
from gemnb.frames.columns import describe, series
from gemnb.frames.tables import MESSAGES, TOOL_CALLS
from gemnb.frames.usage import KEYS, usage_columns
from gemnb.services.prices import list_price

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


@pytest.mark.parametrize("arrow", [True, False])
def test_texts_are_the_same_however_pandas_keeps_them(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch, arrow: bool
) -> None:
    write_session(header(), user("u", "ё 数据 \ud83d"), gemini("g", ""), user("\ud83d", "x"))
    told = gemnb.messages_df(ws)

    with pd.option_context("mode.string_storage", "python"):
        if not arrow:
            monkeypatch.setitem(sys.modules, "pyarrow", None)
        found = gemnb.messages_df(ws)

    for name in ("message_id", "text"):
        assert found[name].dtype.storage == "python" and found[name].to_list() == told[name].to_list()
    assert told["text"].to_list() == ["ё 数据 \ufffd", "", "x"] and told["chars"].to_list() == [6, 0, 1]


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


@pytest.mark.parametrize("stamp", ["yesterday", "20260501", 5])
def test_a_bad_time_is_na_and_counted(ws: gemnb.Workspace, write_session: Write, stamp: Any) -> None:
    write_session(header(), user("u", "x", timestamp=stamp), gemini("g", "y", timestamp=None, tokens=TOKENS))

    frame = gemnb.messages_df(ws)

    assert frame["at"].isna().all() and frame.attrs["gemnb"]["odd"] == {"at": 2} and len(frame) == 2


def test_a_talk_is_a_table(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(
        header(),
        gemini("i0", "Welcome.") | {"type": "info"},
        *(user("u1", "a"), spent("g1", 100, model="gemini-2.5-pro")),
        *(user("u2", "b"), spent("g2", 50, model="gemini-2.5-flash"), {"$rewindTo": "u2"}),
    )

    frame = gemnb.messages_df(ws)[["message_id", "type", "turn", "model", "live"]].astype(object)

    assert frame.where(frame.notna(), None).to_numpy().tolist() == [
        ["i0", "info", None, None, True],
        ["u1", "user", 1, None, True],
        ["g1", "gemini", 1, "gemini-2.5-pro", True],
        ["g2", "gemini", None, "gemini-2.5-flash", False],
    ]


SUMMARY = user("s", "<state_snapshot>rivers</state_snapshot>")


@pytest.mark.parametrize(
    ("records", "rewound", "compressions"),
    [
        pytest.param([{"$set": {"messages": [SUMMARY, TALK[1]]}}], 0, 1, id="a new summary"),
        pytest.param([SUMMARY, {"$set": {"messages": [SUMMARY]}}], 0, 0, id="a summary that was there"),
        pytest.param([{"$set": {"messages": [SUMMARY, TALK[1]]}}, {"$set": {"messages": [SUMMARY]}}], 0, 1, id="again"),
        pytest.param([{"$set": {"messages": [user("n", "x")]}}], 0, 0, id="no summary"),
        pytest.param([{"$set": {"messages": [SUMMARY]}}, {"$rewindTo": "s"}, user("n", "x")], 1, 0, id="rewound"),
        pytest.param([{"$rewindTo": "g1"}, user("n", "x"), {"$rewindTo": "n"}], 2, 0, id="rewound twice"),
    ],
)
@pytest.mark.parametrize("loaded", [True, False])
def test_what_was_rewound_and_compressed_is_counted(
    ws: gemnb.Workspace, write_session: Write, loaded: bool, records: list[Any], rewound: int, compressions: int
) -> None:
    write_session(header(), *TALK, *records)

    (row,) = gemnb.sessions_df(ws.load(1) if loaded else ws).to_dict("records")

    assert (row["rewound"], row["compressions"]) == (rewound, compressions)


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


@pytest.mark.parametrize(
    ("response", "display", "error"),
    [({"error": "no"}, "shown", "no"), ({"error": None}, "shown", "shown"), ({"output": "x"}, None, None)],
)
def test_what_went_wrong_with_a_call(
    ws: gemnb.Workspace, write_session: Write, response: Any, display: str | None, error: str | None
) -> None:
    result = [{"functionResponse": {"response": response}}]
    call = {"id": "c", "name": "ls", "status": "error", "args": {}, "result": result, "resultDisplay": display}
    write_session(header(), *TALK, gemini("g2", "y", toolCalls=[call]))

    (told,) = gemnb.tool_calls_df(ws)["error"]

    assert told == error if error else pd.isna(told)


def test_all_projects(ws: gemnb.Workspace, write_session: Write, home: Path, monkeypatch: Any) -> None:
    write_session(header(), *TALK)
    (home / ".gemini/tmp/other/chats").mkdir(parents=True)
    (home / ".gemini/tmp/other/chats/session-2026-05-01T10-00-cc33dd44.jsonl").write_bytes(b"")
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))

    assert set(gemnb.sessions_df("all")["project"]) == {"app"}


@pytest.mark.parametrize("table", [MESSAGES, TOOL_CALLS], ids=["messages", "tool calls"])
def test_every_column_is_described(table: Any) -> None:
    text = describe(table)

    assert all(f"| `{c.name}` | `{c.dtype}` | {c.meaning} |" in text for c in table)
    assert all(str(series([], c.dtype)[0].dtype) == c.dtype for c in table)


def test_pandas_is_what_we_think() -> None:
    assert pd.Series(["x"], dtype="str").dtype == "str"


def test_a_number_that_no_column_can_hold_is_na_and_its_row_stays() -> None:
    from gemnb.frames.columns import series

    told, odd = series([2**70, 3, None, -1, "3", True], "Int64")

    assert list(told.isna()) == [True, False, True, True, True, True] and odd == 4


ODD = [
    ({"timestamp": "yesterday"}, "at"),
    ({"timestamp": 5}, "at"),
    ({"tokens": TOKENS | {"input": -5}}, "input"),
    ({"tokens": TOKENS | {"cached": "many"}}, "cached"),
    ({"tokens": TOKENS | {"thoughts": 1.5}}, "thoughts"),
    ({"tokens": TOKENS | {"total": 2**70}}, "total"),
    ({"model": 3}, "model"),
    ({"type": ["gemini"]}, "type"),
]


@pytest.mark.parametrize(("odd", "column"), ODD, ids=[f"{c} {next(iter(o))} {n}" for n, (o, c) in enumerate(ODD)])
def test_one_odd_value_costs_no_row(ws: gemnb.Workspace, write_session: Write, odd: Any, column: str) -> None:
    write_session(header(), *TALK, gemini("g2", "y", model="gemini-2.5-pro", tokens=TOKENS) | odd)

    frame = gemnb.messages_df(ws).set_index("message_id")
    usage, sessions = gemnb.usage_df(ws, by="session"), gemnb.sessions_df(ws)

    assert len(frame) == 3 and pd.isna(frame.loc["g2", column])
    assert frame.attrs["gemnb"]["odd"] == {column: 1}
    assert usage["total"].sum() == sessions["total"].sum() == frame["total"].sum()
    assert usage.attrs["gemnb"]["odd"] == ({column: 1} if column not in ("model", "type") else {})


def test_tokens_that_are_none_are_odd_in_each_kind(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK, gemini("g2", "y", model="gemini-2.5-pro", tokens=7))

    assert gemnb.messages_df(ws).attrs["gemnb"]["odd"] == dict.fromkeys(TOKENS, 1)


def test_tokens_that_an_earlier_record_told_are_not_odd(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK, gemini("g2", "y", tokens={"total": 2**53}), gemini("g2", "y", type=5, tokens="many"))

    assert gemnb.usage_df(ws).attrs["gemnb"]["odd"] == {"total": 1}


def test_a_whole_number_with_a_point_is_one(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x"), gemini("g", "y", tokens={"total": 100.0}))

    assert gemnb.messages_df(ws)["total"].dropna().to_list() == [100]
    assert gemnb.usage_df(ws, by="session").attrs["gemnb"]["odd"] == {}


def test_every_frame_tells_what_it_is_of(ws: gemnb.Workspace, write_session: Write, tmp_path: Path) -> None:
    write_session(header(), *TALK)

    for frame in FRAMES:
        df = frame(ws)
        df.to_parquet(tmp_path / "f.parquet")
        told = pd.read_parquet(tmp_path / "f.parquet").attrs["gemnb"]
        assert told == df.attrs["gemnb"] and "Workspace" in told["source"] and told["tz"] and told["odd"] == {}
        assert told.get("prices", "genai-prices ").startswith("genai-prices ") or frame is gemnb.tool_calls_df


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "1969-12-31T00:00:00Z"])
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Apia", "America/Los_Angeles"])
def test_times_at_the_ends_of_the_calendar(ws: gemnb.Workspace, write_session: Write, stamp: str, zone: str) -> None:
    write_session(header(), spent("g", 100, timestamp=stamp))

    assert gemnb.messages_df(ws)["at"].dt.year.to_list() == [int(stamp[:4])]
    for by in ("hour", "day", "week", "month"):
        assert gemnb.usage_df(ws, by=by, tz=zone)["total"].to_list() == [100]


@pytest.mark.parametrize("by", [*KEYS, tuple(KEYS)], ids=str)
def test_no_rows_have_the_same_shape_by_any_group(ws: gemnb.Workspace, write_session: Write, by: Any) -> None:
    empty = gemnb.usage_df(ws, by=by, tz="Asia/Kolkata")
    write_session(header(), spent("a", 9, timestamp="2026-03-02T23:45:00Z"))

    full = gemnb.usage_df(ws, by=by, tz="Asia/Kolkata")

    columns = usage_columns([by] if isinstance(by, str) else by, "Asia/Kolkata")
    assert [(c.name, c.dtype) for c in columns] == [(n, str(t)) for n, t in full.dtypes.items()]
    assert empty.dtypes.astype(str).to_dict() == full.dtypes.astype(str).to_dict()


@pytest.mark.parametrize(
    ("zone", "by", "begins"),
    [
        ("Asia/Kolkata", "hour", "2026-03-03 05:00:00+05:30"),
        ("Asia/Kolkata", "day", "2026-03-03 00:00:00"),
        ("Asia/Kolkata", "week", "2026-03-02 00:00:00"),
        ("Asia/Kolkata", "month", "2026-03-01 00:00:00"),
        ("America/New_York", "week", "2026-03-02 00:00:00"),
    ],
)
def test_where_a_time_begins(ws: gemnb.Workspace, write_session: Write, zone: str, by: str, begins: str) -> None:
    write_session(header(), spent("a", 9, timestamp="2026-03-02T23:45:00Z"))

    assert str(gemnb.usage_df(ws, by=by, tz=zone)[by][0]) == begins


@pytest.mark.parametrize(
    ("zone", "stamps", "days"),
    [
        ("America/New_York", ["2026-03-08T04:59:00Z", "2026-03-08T05:00:00Z", "2026-03-09T03:59:00Z"], [1, 2]),
        ("America/New_York", ["2026-11-01T04:00:00Z", "2026-11-02T04:59:00Z", "2026-11-02T05:00:00Z"], [2, 1]),
        ("Africa/Cairo", ["2026-04-23T21:59:00Z", "2026-04-23T22:00:00Z", "2026-04-24T20:59:00Z"], [1, 2]),
    ],
    ids=["a day of 23 hours", "a day of 25 hours", "a day that has no midnight"],
)
def test_a_day_has_its_own_length(
    ws: gemnb.Workspace, write_session: Write, zone: str, stamps: list[str], days: list[int]
) -> None:
    write_session(header(), *(spent(f"g{n}", 9, timestamp=at) for n, at in enumerate(stamps)))

    assert gemnb.usage_df(ws, by=["day"], tz=zone)["answers"].to_list() == days


def agents(write_session: Write) -> None:
    """A session, its sub-agent, and that one's own."""
    write_session(header(), user("u1", "x"), spent("g1", 100, model="gemini-2.5-pro"))
    for parent, id, total in ((SID, "helper-1", 500), ("helper-1", "helper-2", 50)):
        told = [user(f"u-{id}", "Count"), spent(f"g-{id}", total, model="gemini-2.5-pro")]
        write_session(header(id, kind="subagent"), *told, name=f"{parent}/{id}.jsonl")


def test_a_sub_agent_is_billed_with_its_parent_and_can_be_told_apart(ws: gemnb.Workspace, write_session: Write) -> None:
    agents(write_session)

    together = gemnb.usage_df(ws, by=["session"])
    apart = gemnb.usage_df(ws, by=["session", "kind"])
    messages = gemnb.messages_df(ws)

    assert together[["session", "total"]].to_numpy().tolist() == [[SID, 650]]
    assert apart[["kind", "total"]].to_numpy().tolist() == [["main", 100], ["subagent", 550]]
    assert messages.groupby(messages["parent_id"].fillna(""))["total"].sum().to_dict() == {"": 100, SID: 550}


def test_a_session_tells_what_its_sub_agents_spent(ws: gemnb.Workspace, write_session: Write) -> None:
    agents(write_session)

    (row,) = gemnb.sessions_df(ws).to_dict("records")
    everything = gemnb.sessions_df(ws, hidden=True)

    assert (row["total"], row["agents_total"]) == (100, 550) and row["agents_cost_usd"] > row["cost_usd"] > 0
    assert everything["total"].sum() == 650 == gemnb.usage_df(ws)["total"].sum()
    assert everything.set_index("session_id")["parent_id"].dropna().to_dict() == {"helper-1": SID, "helper-2": SID}


def test_other_messages_of_one_id_are_not_copies(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)
    write_session(
        header("bb22cc33-1"),
        gemini("g1", "another", tokens=TOKENS, timestamp="2026-05-02T10:00:00.000Z"),
        name="session-2026-05-02T10-00-bb22cc33.jsonl",
    )

    assert gemnb.usage_df(ws)["answers"].sum() == 2


def test_free_tiers_are_a_persons_choice(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), spent("a", 9, model="gemini-2.5-pro"), spent("b", 9, model="mystery-1"))

    assert gemnb.usage_df(ws, by="kind", prices="free")["cost_usd"].to_list() == [0.0]
    chosen = gemnb.usage_df(ws, by="model", prices=["mystery-1"])
    assert (chosen["cost_usd"] == 0).to_list() == [False, True] and chosen["unpriced"].sum() == 0
    assert chosen.attrs["gemnb"]["prices"].endswith("; free: mystery-1")


def test_prices_of_a_column_are_those_of_each_message(ws: gemnb.Workspace, write_session: Write) -> None:
    models = ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-3.6-flash", "mystery-1", None, 3]
    stamps = ["2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z", "2026-12-31T23:59:59-02:00", "1969-12-31T23:00Z", "?"]
    counts: list[dict[str, Any]] = [
        {},
        {"input": 200_001, "cached": 300_000},
        {"input": 199_999, "tool": 1, "thoughts": 7},
        {"output": -5},
        {"total": 1.5},
        {"input": None},
    ]
    every = list(product(models, stamps, counts))
    for number, some in enumerate((every[::2], every[1::2])):
        told = [gemini(f"{n}", "x", timestamp=at, model=m, tokens=TOKENS | k) for n, (m, at, k) in enumerate(some)]
        write_session(header(f"s{number}"), *told, name=f"session-2026-05-0{number + 1}T10-00-aa11bb22.jsonl")

    found, single = gemnb.messages_df(ws), gemnb.messages_df(ws, prices=list_price)

    pd.testing.assert_frame_equal(found, single)
    assert 0 < found["cost_usd"].count() < len(found) == len(every)


def test_a_total_says_how_much_of_it_has_no_price(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), spent("a", 9, model="gemini-2.5-pro"), spent("b", 70, model="mystery-1"))

    (row,) = gemnb.usage_df(ws, by="kind").to_dict("records")

    assert (row["answers"], row["unpriced"], row["total"], row["unpriced_total"]) == (2, 1, 79, 70)


def test_the_outcome_is_told_by_the_note(ws: gemnb.Workspace, write_session: Write) -> None:
    from gemnb.model.outcome import WORDS, Outcome

    def note(id: str, kind: str, text: str) -> dict[str, Any]:
        return gemini(id, text) | {"type": kind}

    call = {"functionResponse": {"id": "c", "name": "f", "response": {"error": "no"}}}
    write_session(
        header(),
        *(user("u1", "a"), gemini("g1", "b")),
        *(user("u2", "a"), gemini("g2", "b"), note("i2", "info", WORDS[Outcome.MAX_TOKENS])),
        *(user("u3", "a"), gemini("g3", "b"), user("r3", [call]), note("i3", "info", WORDS[Outcome.REFUSED])),
        user("unanswered", "a"),
        *(user("u4", "a"), note("e4", "error", "API Error: 500")),
    )

    told = gemnb.messages_df(ws).set_index("message_id")["outcome"].dropna().to_dict()

    assert told == {"g1": "completed", "g2": "max_tokens", "g3": "refused", "u4": "error"}


@pytest.mark.parametrize("value", [True, float("inf"), object(), b"x"], ids=["flag", "inf", "object", "bytes"])
@pytest.mark.parametrize("dtype", ["str", "Int64", "category", "datetime64[us, UTC]"])
def test_what_does_not_fit_is_na_and_counted(dtype: str, value: object) -> None:
    told, odd = series([None, value], dtype)

    assert told.isna().all() and odd == 1 and str(told.dtype) == dtype
