"""What listings remember changes no answer: whatever happens to the files, to the index, or beside it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NOW, TALK, gemini, header, to_bytes, tree, user

import gemnb
from gemnb.model.ledger import Ledger
from gemnb.model.session import SessionInfo
from gemnb.services.doctor import examine
from gemnb.store import ledgers, rows
from gemnb.store.index import Index, _checked
from gemnb.store.paths import index_file

Write = Callable[..., Path]
LATER = 10_000_000_000
"""Nanoseconds after which a file counts as settled."""
EACH_TIME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)


NOBODYS = Path("/proc/self")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings take place a while after the files were written."""
    told = time.time_ns
    monkeypatch.setattr(rows.time, "time_ns", lambda: told() + LATER)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that listings and tables read."""
    found: list[str] = []
    for module in (rows, ledgers):
        read = lambda path, status, real=module._read, **how: found.append(path.name) or real(path, status, **how)  # noqa: E731
        monkeypatch.setattr(module, "_read", read)
    return found


def without(ws: gemnb.Workspace) -> list[SessionInfo]:
    """The listing that knows of no index."""
    return unaided(ws).sessions(hidden=True)


def unaided(ws: gemnb.Workspace) -> gemnb.Workspace:
    """A workspace that knows of no index."""
    other = gemnb.open_workspace(ws.root, home=ws.home, clock=lambda: NOW)
    other.index.on = False
    return other


def billed(ws: gemnb.Workspace, *, calls: bool) -> list[tuple[SessionInfo, Ledger]]:
    """Every session with its ledger; calls are compared where they were asked for."""
    told = ws.ledgers(calls=calls)
    return [(row, ledger if calls else replace(ledger, calls=None)) for row, ledger in told]


@pytest.mark.usefixtures("later")
def test_a_file_that_did_not_change_is_read_once(ws: gemnb.Workspace, write_session: Write, reads: list[str]) -> None:
    path = write_session(header(), *TALK)
    first = ws.sessions(hidden=True)

    again = gemnb.open_workspace(ws.root, home=ws.home, clock=lambda: NOW).sessions(hidden=True)

    assert reads == [path.name]
    assert again == first == without(ws)


@pytest.mark.usefixtures("later")
def test_only_what_changed_is_read_again(ws: gemnb.Workspace, write_session: Write, reads: list[str]) -> None:
    write_session(header(), *TALK)
    other = write_session(header("bb22cc33-1"), *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")
    ws.sessions()
    reads.clear()
    other.write_bytes(other.read_bytes() + to_bytes(user("u9", "More?")))

    listed = ws.sessions(hidden=True)

    assert reads == [other.name]
    assert listed == without(ws)


def test_a_file_that_was_just_written_is_not_remembered(
    ws: gemnb.Workspace, write_session: Write, reads: list[str]
) -> None:
    write_session(header(), *TALK)

    ws.sessions()
    ws.sessions()

    assert len(reads) == 2


def test_nothing_is_written_in_the_store(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    write_session(header(), *TALK)
    before = tree(home)

    ws.sessions(hidden=True)
    list(ws.search("rivers"))

    assert tree(home) == before


@pytest.mark.usefixtures("later")
def test_the_index_is_the_persons_alone(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)
    mask = os.umask(0)
    try:
        ws.sessions()
    finally:
        os.umask(mask)

    path = index_file()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("later")
def test_switched_off_it_neither_reads_nor_writes(ws: gemnb.Workspace, write_session: Write, reads: list[str]) -> None:
    write_session(header(), *TALK)
    ws.index.on = False

    ws.sessions()
    ws.sessions()

    assert len(reads) == 2
    assert not index_file().exists()


@pytest.mark.usefixtures("later")
def test_words_of_what_is_gone_go(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), user("u1", "zanzibar"))
    ws.sessions()
    assert b"zanzibar" in index_file().read_bytes()

    path.unlink()
    ws.sessions()

    assert b"zanzibar" not in index_file().read_bytes()


def test_words_of_a_folder_that_is_no_more_go(tmp_path: Path) -> None:
    index = Index(tmp_path / "cache" / "index.sqlite", version=1)
    here, gone = tmp_path / "here", tmp_path / "gone"
    for folder in (here, gone):
        folder.mkdir()
        index.write(folder, {"a": folder.name.encode()}, ledgers={"a": b"zanzibar"})
    gone.rmdir()

    index.write(here, {"b": b"new"})

    assert (index.read(here), index.read(gone)) == ({"a": b"here", "b": b"new"}, {})
    assert index.path.read_bytes().count(b"zanzibar") == 1


TABLES = (gemnb.messages_df, gemnb.sessions_df, gemnb.usage_df, gemnb.tool_calls_df)
CALLED = gemini("g2", "Listed.", toolCalls=[{"id": "c", "name": "ls", "args": {"dir": "."}, "status": "error"}])


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_a_table_reads_what_did_not_change_once(
    ws: gemnb.Workspace, write_session: Write, reads: list[str], table: Callable[[gemnb.Workspace], pd.DataFrame]
) -> None:
    path = write_session(header(), *TALK, CALLED)
    first = table(ws)

    again = table(gemnb.open_workspace(ws.root, home=ws.home, clock=lambda: NOW))
    ws.sessions()

    assert reads == [path.name]
    pd.testing.assert_frame_equal(again, first)
    pd.testing.assert_frame_equal(table(unaided(ws)), first)


@pytest.mark.usefixtures("later")
def test_much_is_kept_in_portions(
    ws: gemnb.Workspace, write_session: Write, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 6):
        write_session(header(f"s{number}"), *TALK, name=f"session-2026-05-0{number}T10-00-aa11bb2{number}.jsonl")
    monkeypatch.setattr(ledgers, "HELD_BYTES", 1000)
    written: list[int] = []
    write = Index.write
    told = lambda self, *given, **named: written.append(len(named["ledgers"])) or write(self, *given, **named)  # noqa: E731
    monkeypatch.setattr(Index, "write", told)

    first = gemnb.messages_df(ws)
    again = gemnb.messages_df(ws)

    assert len(reads) == sum(written) == 5 and len(written) > 1
    pd.testing.assert_frame_equal(again, first)


@pytest.mark.usefixtures("later")
def test_calls_are_measured_when_they_are_asked_for(
    ws: gemnb.Workspace, write_session: Write, reads: list[str]
) -> None:
    write_session(header(), *TALK, CALLED)
    gemnb.messages_df(ws)

    assert gemnb.tool_calls_df(ws)["args_chars"].to_list() == [12]
    assert len(reads) == 2
    gemnb.messages_df(ws), gemnb.tool_calls_df(ws)
    assert len(reads) == 2


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("gone", [lambda path: path.unlink(), lambda path: path.write_bytes(to_bytes(header()))])
def test_what_was_said_goes_with_the_session(
    ws: gemnb.Workspace, write_session: Write, gone: Callable[[Path], object]
) -> None:
    path = write_session(header(), *TALK, gemini("g2", "zanzibar"))
    gemnb.messages_df(ws)
    assert b"zanzibar" in index_file().read_bytes()
    assert index_file().stat().st_mode & 0o777 == 0o600

    gone(path)
    ws.sessions()

    assert b"zanzibar" not in index_file().read_bytes()


@pytest.mark.usefixtures("later")
def test_switched_off_no_table_is_kept(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(header(), *TALK)
    ws.index.on = False
    for module, pack in ((rows, "packed"), (ledgers, "_packed")):
        monkeypatch.setattr(module, pack, None)  # nor is anything made ready to be kept

    gemnb.messages_df(ws)
    ws.sessions()

    assert not index_file().exists()


@pytest.mark.usefixtures("later")
def test_another_version_is_dropped(
    ws: gemnb.Workspace, write_session: Write, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(header(), *TALK)
    ws.sessions()

    newer = Index(index_file(), version=rows.rows_version() + 2)

    assert newer.count() == 0
    ws.sessions()
    assert len(reads) == 2


def test_the_version_changes_with_the_code_that_makes_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    version = rows.rows_version.__wrapped__
    real = rows.pkgutil.get_data
    now = version()
    for maker in rows.MAKERS:
        assert real("gemnb", maker)
        changed = lambda package, name, maker=maker: real(package, name) + b" " * (name == maker)  # noqa: E731
        monkeypatch.setattr(rows.pkgutil, "get_data", changed)
        assert version() != now


GARBAGE: list[Callable[[Path], object]] = [
    lambda path: path.write_bytes(b"no database at all" * 100),
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:4096]),
    lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 8192),
]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("harm", GARBAGE, ids=["garbage", "emptied", "cut", "overwritten"])
def test_a_damaged_index_is_made_anew(
    ws: gemnb.Workspace, write_session: Write, reads: list[str], harm: Callable[[Path], object]
) -> None:
    write_session(header(), *TALK)
    first = ws.sessions()
    harm(index_file())

    assert ws.sessions() == first
    ws.sessions()
    reads.clear()
    assert ws.sessions() == first
    assert reads == []


@EACH_TIME
@given(
    at=st.integers(-60, 160) | st.integers(-12_000, 12_000),
    bits=st.integers(1, 255),
    word=st.sampled_from([b"How many rivers", b"There are forty-two."]),
)
def test_no_byte_of_the_index_is_believed(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch, at: int, bits: int, word: bytes
) -> None:
    ws.index.drop()
    write_session(header(), *TALK)
    monkeypatch.setattr(rows, "SETTLED_NS", -LATER)
    first, told = ws.sessions(), billed(ws, calls=False)
    data = bytearray(index_file().read_bytes())
    data[(data.index(word) + at) % len(data)] ^= bits
    index_file().write_bytes(data)

    assert billed(ws, calls=False) == told
    assert ws.sessions() == first


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("ledgers", "name = CAST(name AS BLOB)"),
        ("ledgers", "entry = 7"),
        ("files", "folder = CAST(folder AS BLOB)"),
        ("files", "entries = 7"),
        ("files", "entries = 'words'"),
        ("files", f"entries = X'{_checked(b'no map').hex()}'"),
    ],
)
def test_what_became_something_else_is_not_believed(
    ws: gemnb.Workspace, write_session: Write, table: str, change: str
) -> None:
    write_session(header(), *TALK)
    first, told = ws.sessions(hidden=True), billed(ws, calls=False)
    with closing(sqlite3.connect(index_file())) as database:
        assert database.execute(f"UPDATE {table} SET {change}").rowcount
        database.commit()

    assert billed(ws, calls=False) == told
    assert ws.sessions(hidden=True) == first


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("what", ["a file in the folder's place", "a folder in the file's place", "a link"])
def test_where_it_cannot_be_it_is_done_without(ws: gemnb.Workspace, write_session: Write, what: str) -> None:
    write_session(header(), *TALK)
    path = index_file()
    path.parent.parent.mkdir(parents=True)
    aim = path.parent.parent / "aim"
    if what.startswith("a file"):
        path.parent.write_text("")
    elif what.startswith("a folder"):
        path.mkdir(parents=True)
    else:
        path.parent.mkdir()
        path.symlink_to(aim)

    assert ws.sessions(hidden=True) == without(ws)
    assert not aim.exists()


@pytest.mark.skipif(not NOBODYS.is_dir(), reason="needs a folder that not even root may write to")
@pytest.mark.usefixtures("later")
def test_a_cache_folder_that_cannot_be_written_is_done_without(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(header(), *TALK)
    monkeypatch.setenv("XDG_CACHE_HOME", str(NOBODYS))
    ws.index.path = index_file()
    assert ws.index.path.is_relative_to(NOBODYS)

    assert ws.sessions(hidden=True) == without(ws)
    assert not ws.index.path.parent.exists()


@pytest.mark.usefixtures("later")
def test_a_locked_index_is_done_without(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    path = write_session(header(), *TALK)
    ws.sessions()
    monkeypatch.setattr("gemnb.store.index.WAIT_SECONDS", 0.01)
    path.write_bytes(path.read_bytes() + to_bytes(user("u9", "More?")))
    other = sqlite3.connect(index_file(), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    assert ws.sessions(hidden=True) == without(ws)
    other.close()
    assert Index(index_file(), version=rows.rows_version()).count() == 1


LISTING = """
import sys, time, gemnb
from gemnb.store import ledgers, rows
rows.SETTLED_NS = -10**10
for _ in range(20):
    ws = gemnb.open_workspace(sys.argv[1], home=sys.argv[2])
    print(len(ws.sessions()), flush=True)
"""


def test_processes_at_once_all_have_the_answer(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    paths = [
        write_session(header(f"{n:08d}-1"), *TALK, name=f"session-2026-05-02T10-00-{n:08d}.jsonl") for n in range(30)
    ]
    processes = [
        subprocess.Popen([sys.executable, "-c", LISTING, ws.root, home], stdout=subprocess.PIPE) for _ in range(3)
    ]
    for number in range(20):
        path = paths[number]
        path.write_bytes(path.read_bytes() + to_bytes(user(f"u{number + 5}", "More?")))
    told = [process.communicate(timeout=120)[0].split() for process in processes]

    assert told == [[b"30"] * 20] * 3
    assert ws.sessions(hidden=True) == without(ws)
    assert Index(index_file(), version=rows.rows_version()).count() == 30


NAMES = [f"session-2026-05-0{n}T10-00-0000000{n}.jsonl" for n in range(1, 3)]
LINES = st.sampled_from(
    [
        *[{**header(f"0000000{n}-1"), "summary": None} for n in range(1, 3)],
        header("00000001-1", summary="\ud83d half"),
        header("00000002-1", kind="subagent"),
        {"$set": {"lastUpdated": "2031-05-01T10:00:00.000Z"}},
        {"$set": {"summary": "A title"}},
        {"$set": {"messages": []}},
        {"$rewindTo": "u1"},
        *[user(f"u{n}", text) for n, text in enumerate(["one", "two", "三つ", "/help"])],
        *TALK,
        b'{"id": "torn',
        b"\xef\xbb\xbf\n",
        b"\n",
    ]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "rewrite", "swap", "truncate", "delete", "replace", "touch"]),
        st.sampled_from(NAMES),
        st.lists(LINES, min_size=1, max_size=4),
        st.integers(0, 400),
    ),
    min_size=1,
    max_size=10,
)


def step(what: str, path: Path, lines: list[Any], at: int) -> None:
    """Change a file as another program might; whatever it is, its inode or its ctime is another one afterwards."""
    before = path.stat() if path.exists() else None
    data = path.read_bytes() if before else b""
    match what:
        case "append":
            path.write_bytes(data + to_bytes(*lines))
        case "rewrite":
            path.write_bytes(to_bytes(*lines))
        case "swap":  # as long as before, and with the old time
            path.write_bytes(data.swapcase())
            if before:
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        case "truncate":
            path.write_bytes(data[:at])
        case "replace":
            new = path.with_suffix(".new")
            new.write_bytes(to_bytes(*lines))
            if before:
                os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
            new.replace(path)
        case "touch" if before:
            os.utime(path, ns=(at, at * 10**9))
        case "delete":
            path.unlink(missing_ok=True)


def moved_on(path: Path, before: os.stat_result | None) -> None:
    """Wait until the file system's clock tells this state of the file from the one before."""
    while before and path.exists() and path.stat().st_ctime_ns == before.st_ctime_ns:
        now = path.stat()
        os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


@pytest.mark.parametrize("settled", [True, False])
@EACH_TIME
@given(steps=STEPS, asked=st.lists(st.booleans(), max_size=3))
def test_on_and_off_are_equal_after_anything(
    tmp_path_factory: pytest.TempPathFactory,
    settled: bool,
    steps: list[tuple[str, str, list[Any], int]],
    asked: list[bool],
) -> None:
    """Listings and ledgers, with calls and without, in any order."""
    base = tmp_path_factory.mktemp("store")
    chats = base / "home" / ".gemini" / "tmp" / "app" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(base))
    ws = gemnb.open_workspace(base, home=base / "home", clock=lambda: NOW)
    with pytest.MonkeyPatch.context() as patch:
        if settled:
            patch.setattr(rows, "SETTLED_NS", -LATER)
        for what, name, lines, at in steps:
            path = chats / name
            before = path.stat() if path.exists() else None
            step(what, path, lines, at)
            if settled:
                moved_on(path, before)
            for calls in asked:
                assert billed(ws, calls=calls) == billed(unaided(ws), calls=calls)
            assert ws.sessions(hidden=True) == without(ws)


def test_the_doctor_tells_of_the_index(
    ws: gemnb.Workspace, write_session: Write, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> str:
        return next(str(finding) for finding in examine(root, os.environ) if finding.name == "index")

    assert "not there yet" in told()
    monkeypatch.setattr(rows, "SETTLED_NS", -LATER)
    write_session(header(), *TALK)
    ws.sessions()
    assert "knows 1 session files" in told()
