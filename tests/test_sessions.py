"""Listing, numbering, identifiers, dangers, deletion."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import SID, TALK, gemini, header, tree, user

import gemnb
from gemnb.errors import (
    AmbiguousSessionError,
    CurrentSessionError,
    NoSessionsError,
    UnknownSessionError,
    UnreadableSessionError,
)

Write = Callable[..., Path]
TWO = "bb22cc33-0000-4000-8000-00000000000b"


def second(write_session: Write, **more: Any) -> Path:
    told = header(TWO, startTime="2026-05-02T10:00:00.000Z", lastUpdated="2026-05-02T10:00:00.000Z", **more)
    return write_session(
        told, user("u9", "Second"), gemini("g9", "Yes."), name="session-2026-05-02T10-00-bb22cc33.jsonl"
    )


@pytest.mark.parametrize(
    ("lines", "state", "words"),
    [
        pytest.param([header(kind="subagent"), *TALK], "subagent", "sub-agent", id="a sub-agent"),
        pytest.param([header()], "empty", "nothing to resume", id="a header alone"),
        pytest.param(
            [header(), user("u", "/help"), gemini("i", "x") | {"type": "info"}], "empty", "nothing", id="a command"
        ),
        pytest.param([b"garbage\n"], "unreadable", "read", id="garbage"),
        pytest.param([], "unreadable", "read", id="an empty file"),
    ],
)
def test_what_is_not_shown_is_hidden_with_a_reason(
    ws: gemnb.Workspace, write_session: Write, lines: list[Any], state: str, words: str
) -> None:
    write_session(*lines)

    assert ws.sessions() == []
    (row,) = ws.sessions(hidden=True)
    assert row.state == state and row.hidden_because and words in row.hidden_because and row.index is None


def test_numbers_count_from_the_oldest_start(ws: gemnb.Workspace, write_session: Write) -> None:
    second(write_session)
    write_session(header(lastUpdated="2026-05-09T10:00:00.000Z"), *TALK)

    assert [(r.index, r.id) for r in ws.sessions()] == [(1, SID), (2, TWO)]
    assert ws.find("latest").id == TWO and ws.find("last-used").id == SID and ws.find(2).id == TWO


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        *[
            pytest.param(w, UnknownSessionError, id=f"{w!r}")
            for w in ("0", "3", "01", "+1", "1.0", "1abc", "１", "LATEST", "", "aa1")
        ],
        pytest.param("9" * 40, UnknownSessionError, id="a huge number"),
    ],
)
def test_look_alikes_are_refused(
    ws: gemnb.Workspace, write_session: Write, wanted: str, error: type[Exception]
) -> None:
    write_session(header(), *TALK)
    second(write_session)

    with pytest.raises(error, match=r"1 to 2"):
        ws.find(wanted)


def test_a_prefix_must_be_one_sessions_alone(ws: gemnb.Workspace, write_session: Write) -> None:
    twin = "aa11bb22-9999-4000-8000-00000000000c"
    write_session(header(), *TALK)
    write_session(header(twin), user("u8", "Other"), name="session-2026-05-03T10-00-aa11bb22.jsonl")

    with pytest.raises(AmbiguousSessionError, match=twin):
        ws.find("aa11bb22")
    assert ws.find("aa11bb22-9").id == twin


def test_an_empty_project_has_its_own_error(ws: gemnb.Workspace) -> None:
    with pytest.raises(NoSessionsError) as told:
        ws.find("1")
    assert told.value.code == "NO_SESSIONS_FOUND"


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        pytest.param(
            ("session-2026-05-02T09-15-aa11bb22.jsonl", [header()]), "nothing that it can resume", id="a start-up twin"
        ),
        pytest.param(
            ("session-2026-05-02T09-15-aa11bb22.jsonl", [b"{torn"]), "nothing that it can", id="an unreadable namesake"
        ),
        pytest.param(
            ("session-2026-05-02T09-15-aa11bb22.jsonl", [header("aa11bb22-1", kind="subagent"), *TALK]),
            "a sub-agent's own talk",
            id="a sub-agent's file beside it",
        ),
    ],
)
def test_a_namesake_puts_a_session_at_risk(ws: gemnb.Workspace, write_session: Write, beside: Any, words: str) -> None:
    write_session(header(), *TALK)
    name, lines = beside
    write_session(*lines, name=name)

    (row,) = ws.sessions()
    assert row.state == "at_risk" and row.risk and words in row.risk


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("session-2026-05-02T09-15_aa11bb22.jsonl", id="8 characters after no dash"),
        pytest.param("session-2026-05-02T09-15-AA11BB22.jsonl", id="in another case"),
        pytest.param("cc22dd33-0/session-2026-05-02T09-15-aa11bb22.jsonl", id="in a sub-agents' folder"),
    ],
)
def test_what_the_client_takes_for_no_namesake_endangers_nothing(
    ws: gemnb.Workspace, write_session: Write, name: str
) -> None:
    write_session(header(), *TALK)
    write_session(header(), name=name)

    assert ws.sessions()[0].state == "ok"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([b"\xef\xbb\xbf", header(), *TALK], id="a byte order mark"),
        pytest.param(
            [header(), user("u1", "<hook_context>x</hook_context> How many rivers are in the table?")],
            id="a prompt after a hook's context",
        ),
        pytest.param([header(""), *TALK], id="an empty id"),
        pytest.param(
            [header(), *TALK, header(), {"$set": {"messages": [user("c", "<session_context>x</session_context>")]}}],
            id="emptied by a second start",
        ),
    ],
)
def test_what_the_client_cannot_see_is_at_risk(ws: gemnb.Workspace, write_session: Write, lines: list[Any]) -> None:
    write_session(*lines)

    (row,) = ws.sessions()
    assert row.state == "at_risk" and row.title == "How many rivers are in the table?"


def test_going_on_heals_what_the_client_cannot_see(ws: gemnb.Workspace, llm: Any, write_session: Write) -> None:
    empty = {"$set": {"messages": [user("c", "<session_context>x</session_context>")]}}
    write_session(header(), *TALK, header(), empty)
    llm._replies = ["Gladly."]

    ws.resume(SID).send("Go on")

    (row,) = ws.sessions()
    assert row.state == "ok" and row.message_count == 4


def test_a_session_without_header_gets_the_id_that_a_twin_tells(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(b'{"sessionId": "torn\n', *TALK)
    write_session(header(), name="session-2026-05-02T09-15-aa11bb22.jsonl")

    (row,) = ws.sessions()
    assert row.state == "recovered" and row.id == SID
    assert ws.load(SID).id == SID


def test_a_link_is_no_session(ws: gemnb.Workspace, write_session: Write, tmp_path: Path) -> None:
    path = write_session(header(), *TALK)
    path.rename(tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")

    (row,) = ws.sessions(hidden=True)
    assert row.state == "unreadable"
    with pytest.raises(UnreadableSessionError, match="link"):
        ws.load(row.id)
    assert path in [p for p, _ in ws.delete(row.id).stayed] and path.is_symlink()


def test_deleting_takes_the_family_and_nothing_else(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    path = write_session(header(), *TALK)
    folder = path.parent.parent
    write_session(header(), name="session-2026-05-02T09-15-aa11bb22.jsonl")
    neighbour = write_session(
        header("aa11bb22-7777-4000-8000-00000000000d"), user("u", "x"), name="session-2026-05-04T09-15-aa11bb22.jsonl"
    )
    agent = "cc33dd44-0000-4000-8000-00000000000e"
    for place in (
        f"logs/session-{SID}.jsonl",
        f"tool-outputs/session-{SID}/out.txt",
        f"{SID}/plans/p.md",
        f"chats/{SID}/{agent}.jsonl",
        f"logs/session-{agent}.jsonl",
        "logs/session-other.jsonl",
    ):
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text("{}")

    deleted = ws.delete(SID)

    left = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert left == [".project_root", f"chats/{neighbour.name}", "logs/session-other.jsonl"]
    assert len(deleted.gone) == 7 and not deleted.stayed


@pytest.mark.parametrize("id", ["..", "../..", "/etc", "chats", "Chats", "logs", ".", "a/../../b", "x\0y"])
def test_a_hostile_id_takes_nothing_along(ws: gemnb.Workspace, write_session: Write, home: Path, id: str) -> None:
    path = write_session(header(id), *TALK, name="session-2026-05-01T10-00-evil.jsonl")
    other = second(write_session)
    (path.parent.parent / "logs").mkdir()
    (path.parent.parent / "logs" / "kept.txt").write_text("kept")

    ws.delete("1")

    assert not path.exists() and other.exists() and (path.parent.parent / "logs" / "kept.txt").exists()


def test_the_current_session_is_not_deleted(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    ws.resume("1")

    with pytest.raises(CurrentSessionError):
        ws.delete("1")
    assert path.exists()


def test_what_cannot_be_deleted_stays_and_says_why(ws: gemnb.Workspace, write_session: Write, monkeypatch: Any) -> None:
    path = write_session(header(), *TALK)

    def refuse(source: Any, target: Any, **_: Any) -> None:
        raise PermissionError(13, "Permission denied", str(source))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        deleted = ws.delete("1")

    assert path.exists() and deleted.stayed == ((path, "Permission denied"),)


def test_looking_writes_nothing(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    write_session(header(), *TALK)
    second(write_session)
    before = tree(home)

    ws.sessions(hidden=True)
    ws.load("1")
    ws.history("2")
    ws.resume("1")
    ws.listing(everywhere=True)
    gemnb.projects(home)

    assert tree(home) == before


def test_a_last_update_in_the_future_is_not_trusted(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(lastUpdated="2031-01-01T00:00:00.000Z"), *TALK)
    os.utime(path, (1_700_000_000, 1_700_000_000))

    (row,) = ws.sessions()
    assert row.last_updated and row.last_updated.year == 2023 and row.time_note and "future" in row.time_note
