"""Tables read fewer fields than a session that is loaded, and tell the same of it."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import TOKENS, gemini, header, to_bytes, user

import gemnb
from gemnb.errors import FrameError
from gemnb.model.session import SessionInfo
from gemnb.store.brief import brief_records
from gemnb.store.replay import read_fold
from gemnb.store.tabled import tabled_records
from gemnb.workspace import Workspace

Write = Callable[..., Path]
TABLES = (gemnb.sessions_df, gemnb.messages_df, gemnb.tool_calls_df, gemnb.usage_df)
OF_THE_PROJECT = ["index", "root", "state", "hidden_because", "parent_id", "agents_total", "agents_cost_usd"]
"""What a session by itself cannot tell."""

CALL = {"id": "c", "name": "ls", "args": {"dir": "."}, "status": "success", "timestamp": "2026-05-01T10:00:11.000Z"}
RESULT = [{"functionResponse": {"response": {"error": "half \ud83d"}}}]

TIMES = st.sampled_from(["2026-05-01T10:00:05.000Z", "2026-05-02T00:00:00+02:00", "yesterday", 5, None])
COUNTS = st.sampled_from([0, 5, 100, 100.0, 1.5, -5, "many", True, 2**70, None])
COUNTED = st.dictionaries(st.sampled_from([*TOKENS, "other"]), COUNTS, max_size=6)
TOLD_TOKENS = st.sampled_from([TOKENS, TOKENS | {"input": 200, "cached": 300}, None, {}, "many", [1]]) | COUNTED
TEXTS = st.sampled_from(
    [
        "",
        "Why?",
        "/quit",
        "ё 数据",
        "\ud83d",
        "<session_context>x</session_context>",
        "<state_snapshot>x</state_snapshot>",
    ]
)
PARTS = st.sampled_from(
    [{"text": "part"}, {"text": "hm", "thought": True}, {"functionCall": {"name": "ls"}}, "bare", 5, {"text": 5}, {}]
)
CONTENTS = TEXTS | st.lists(PARTS, max_size=3) | PARTS | st.none()
CALLS = st.lists(
    st.sampled_from(
        [
            CALL,
            CALL | {"status": "error", "result": RESULT},
            CALL | {"status": "error", "result": "no", "resultDisplay": "denied"},
            CALL | {"name": None, "status": None, "timestamp": 5},
            {"args": [1.0, "\u2028"], "name": 5},
            {},
            7,
        ]
    ),
    max_size=3,
)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


MESSAGES = st.builds(
    lambda id, kind, more: {"id": id, "type": kind} | more,
    st.sampled_from("abcd"),
    st.sampled_from(["user", "user", "gemini", "gemini", "gemini", "info", "error", None, ["gemini"]]),
    optional(
        timestamp=TIMES,
        content=CONTENTS,
        displayContent=CONTENTS,
        tokens=TOLD_TOKENS,
        toolCalls=CALLS | st.none() | st.just({}),
        thoughts=st.sampled_from([[], [{"subject": "x"}], ["x"], None]),
        model=st.sampled_from(["gemini-2.5-pro", "mystery-1", None, 3]),
    ),
)
RECORDS = st.one_of(
    MESSAGES,
    MESSAGES,
    MESSAGES,
    st.builds(lambda id: {"$rewindTo": id}, st.sampled_from("abcde")),
    st.builds(lambda told: {"$set": {"messages": told}}, st.lists(MESSAGES | st.just({"type": "user"}), max_size=3)),
    st.builds(
        lambda told: {"$set": told}, optional(summary=TEXTS | st.none(), lastUpdated=TIMES, kind=st.just("main"))
    ),
    st.builds(lambda told: header(messages=told), st.lists(MESSAGES, max_size=2)),
    st.sampled_from([b"\n", b"torn {\n", b"[1]\n", b'\x00\x00{"id":"a","type":"user","content":"saved"}\n', {}]),
)


def rows(source: Any, table: Any, *, hidden: bool) -> pd.DataFrame:
    given = {} if table is gemnb.usage_df else {"hidden": hidden}
    found: pd.DataFrame = table(source, **given)
    found = found.drop(columns=OF_THE_PROJECT, errors="ignore")
    found.attrs["gemnb"].pop("source")
    return found


def same_of(ws: Workspace) -> None:
    listed: list[SessionInfo] = ws.sessions(hidden=True)
    loaded = [ws.load(info) for info in listed if info.state != "unreadable"]
    for table in TABLES:
        quick, whole = rows(ws, table, hidden=True), rows(loaded, table, hidden=True)
        pd.testing.assert_frame_equal(quick, whole)
        assert quick.attrs == whole.attrs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.lists(RECORDS, max_size=8), st.booleans())
def test_a_table_tells_what_the_loaded_sessions_tell(
    ws: Workspace, write_session: Write, told: list[Any], torn: bool
) -> None:
    lines = [
        line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in told
    ]
    path = write_session(header(), *lines)
    if torn:
        path.write_bytes(path.read_bytes()[:-9])

    same_of(ws)


def test_tables_and_listing_have_the_same_rows(ws: Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x"), gemini("g", "y", tokens=TOKENS))
    write_session(b"torn\n", user("u", "/x"), name="session-2026-05-02T10-00-bb22cc33.jsonl")
    write_session(header("old"), name="session-2026-05-02T10-00-cc22cc33.json")
    write_session(header("s", kind="subagent"), user("u", "x"), name="parent/s.jsonl")

    assert [row for row, _ in ws.ledgers()] == ws.sessions(hidden=True)


@pytest.mark.parametrize(("said", "state"), [("", "empty"), (" ", "empty"), ("x", "ok"), ("x" * 300, "ok")])
def test_an_answer_alone_is_a_talk_where_it_says_something(
    ws: Workspace, write_session: Write, said: str, state: str
) -> None:
    compact = json.dumps(gemini("g1", said), separators=(",", ":")).encode()
    write_session(header(), compact + b"\n")

    assert [row.state for row in ws.sessions(hidden=True)] == [state]


def test_an_older_file_is_one_object(ws: Workspace, write_session: Write) -> None:
    old = header() | {"messages": [user("u", "x"), gemini("g", "y", tokens=TOKENS, toolCalls=[CALL])]}
    write_session(json.dumps(old, indent=1).encode(), name="session-2026-05-01T10-00-aa11bb22.json")

    same_of(ws)
    assert gemnb.usage_df(ws)["total"].sum() == 108 and len(gemnb.tool_calls_df(ws)) == 1


def test_every_store_of_the_corpus(shared: Path) -> None:
    compared = 0
    for home in sorted((shared / "corpus").glob("*/home")):
        for project in gemnb.projects(home):
            folders = (project.folder,)
            same_of(Workspace("", home=home, llm=None, clock=lambda: datetime.now(UTC), environ={}, folders=folders))
            compared += 1
    assert compared >= 5


def test_a_table_keeps_no_results_in_memory(ws: Workspace, write_session: Write) -> None:
    write_session(header(), gemini("g", "y", toolCalls=[CALL | {"result": "x" * 5000, "resultDisplay": "y" * 5000}]))

    ((_, told),) = ws.ledgers()
    ((_, measured),) = ws.ledgers(calls=True)

    assert len(repr(told)) < 1000 and len(repr(measured)) < 1000
    assert measured.calls[0][1].result_chars == 5002


def test_the_collector_is_on_again_after_a_table(ws: Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x"))

    gemnb.messages_df(ws)
    assert gc.isenabled()
    with pytest.raises(FrameError):
        gemnb.usage_df(ws, by="colour")
    assert gc.isenabled()
    gc.disable()
    try:
        gemnb.sessions_df(ws)
        assert not gc.isenabled()
    finally:
        gc.enable()


def at(day: int, **more: object) -> bytes:
    told = {"$set": {"lastUpdated": f"2026-05-{day:02d}T10:00:00.000Z", **more}}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"  # as recorders write it


LINES = st.sampled_from(
    [
        at(2),
        at(3),
        at(4).replace(b":", b": "),
        at(5).replace(b"Z", rb"\u005a"),
        at(6, summary="Rivers"),
        at(7, messages=[{"id": "u7", "type": "user"}]),
        at(8)[:-1],
        b'{"id":"torn","type":"us' + at(9),
        b"\0" * 20 + at(10),
        at(11)[:-1] + at(12),
        b'{"$set":{"lastUpdated":""}}\n',
        b'{"$set":{"lastUpdated":7}}\n',
        b'{"$set":{"lastUpdated":"2026\0"}}\n',
        b'{"$set":{"lastUpdated":"2026\xff"}}\n',
        to_bytes(header(lastUpdated="2026-05-20T10:00:00.000Z")),
        to_bytes(user("u1", "Why?")),
        to_bytes({"$rewindTo": "u1"}),
        b"no record\n",
        b"\n",
    ]
)


@given(lines=st.lists(LINES, max_size=8))
def test_whatever_is_skipped_the_last_change_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("chats") / "session-2026-05-01T10-00-aa11bb22.jsonl"
    path.write_bytes(to_bytes(header()) + b"".join(lines))

    whole = read_fold(path)

    for records in (brief_records, tabled_records):
        told = read_fold(path, records=records)
        assert (told.meta, [*told.live], told.damage) == (whole.meta, [*whole.live], whole.damage)
