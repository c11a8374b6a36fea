"""Laws of retention over random stores, clocks and settings; and what a real disk can do to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import NOW, TALK, header, to_bytes, tree

import gemnb

HOURS = {"h": 1, "d": 24, "w": 168, "m": 720}
PLACES = ("logs/session-{}.jsonl", "tool-outputs/session-{}/a.txt", "{}/plans/p.md", "chats/{}/{}-agent.jsonl")


@dataclass(frozen=True)
class Stored:
    """One session of a random store."""

    short: int
    """Sessions of one number have the same 8 characters in their names."""
    hours: int
    """Since its last change; less than 0 is in the future."""
    shape: str
    places: frozenset[str]


stored = st.builds(
    Stored,
    short=st.integers(1, 3),
    hours=st.integers(-48, 24 * 90),
    shape=st.sampled_from(["whole", "whole", "whole", "torn header", "header only", "not JSON", "sub-agent"]),
    places=st.frozensets(st.sampled_from(PLACES)),
)
an_age = st.builds(lambda n, unit: f"{n}{unit}", st.integers(1, 60), st.sampled_from("hdwm"))
policies = st.fixed_dictionaries(
    {}, optional={"maxAge": an_age, "maxCount": st.integers(1, 4), "minRetention": an_age, "enabled": st.booleans()}
)


def id_of(number: int, one: Stored) -> str:
    return f"{one.short:08x}-0000-4000-8000-{number:012x}"


def iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def put(project: Path, number: int, one: Stored, now: datetime) -> dict[str, str]:
    """Write a session with what belongs to it; each path below the store with the id that owns it."""
    id, at = id_of(number, one), now - timedelta(hours=one.hours)
    head = header(id, startTime=iso(at), lastUpdated=iso(at), kind="subagent" if one.shape == "sub-agent" else "main")
    talk = [{**line, "timestamp": iso(at)} for line in TALK]
    content = {
        "torn header": b'{"sessionId":"' + to_bytes(*talk),
        "header only": to_bytes(head),
        "not JSON": b"\x00\xff nothing",
    }.get(one.shape, to_bytes(head, *talk))
    path = project / "chats" / f"session-2026-01-01T00-{number:02}-{one.short:08x}.jsonl"
    made = [path, *(project / place.format(id, id) for place in one.places)]
    for target in made:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if target == path else b"{}\n")
    for target in made:
        for each in (target, *target.parents):
            if each != project and each.is_relative_to(project):
                os.utime(each, (at.timestamp(),) * 2)
    return {os.fspath(target): id for target in made}


@settings(max_examples=60, deadline=None)
@example(
    [
        Stored(1, 0, "whole", frozenset()),
        Stored(1, 721, "torn header", frozenset(["tool-outputs/session-{}/a.txt"])),
    ],
    {},
    0,
    None,
    [],
)
@given(
    st.lists(stored, max_size=7),
    policies,
    st.integers(0, 10_000),
    st.none() | st.integers(0, 6),
    st.lists(st.integers(-48, 24 * 90), max_size=4),
)
def test_what_goes_may_go_and_comes_back(
    told: list[Stored], policy: dict[str, Any], hours: int, current: int | None, outputs: list[int]
) -> None:
    now = NOW + timedelta(hours=hours)
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, "home"), Path(folder, "work/app")
        project = home / ".gemini/tmp/app"
        (project / "chats").mkdir(parents=True)
        root.mkdir(parents=True)
        (project / ".project_root").write_text(os.fspath(root))
        (home / ".gemini/settings.json").write_text(json.dumps({"general": {"sessionRetention": policy}}))
        owners: dict[str, str] = {}
        for number, one in enumerate(told):
            owners |= put(project, number, one, now)
        ages = {output(project, f"read_{number}.txt", hours, now): hours for number, hours in enumerate(outputs)}
        ws = gemnb.open_workspace(root, home=home, clock=lambda: now, environ={"HOME": folder})
        attached = None
        if current is not None and current < len(told) and told[current].shape == "whole":
            attached = id_of(current, told[current])
            ws.resume(attached)
        before = tree(home / ".gemini")

        plan = ws.retention()
        assert tree(home / ".gemini") == before
        result = plan.apply()
        after = tree(home / ".gemini")

        least = parsed(policy.get("minRetention", "1d"))
        by_id = {id_of(number, one): one for number, one in enumerate(told)}
        due = {candidate.session_id for candidate in plan.due}
        gone = {owners[path] for path in before.keys() - after.keys() if path in owners}
        assert gone == due and result.deleted == len(due) and result.failed == 0
        for id in gone:
            assert by_id[id].shape == "whole" and id != attached
            assert timedelta(hours=by_id[id].hours) >= least
        for path, content in before.items():
            if path in owners and owners[path] not in due:
                assert after[path] == content
        went = {path for path in ages if path not in after}
        assert went == {os.fspath(c.output.path) for c in plan.due_outputs} and result.outputs == len(went)
        assert all(timedelta(hours=ages[path]) >= least for path in went)
        assert before.keys() - after.keys() - owners.keys() - set(ages) == folders_gone(before, after, due)
        assert ws.retention().due == ws.retention().due_outputs == ()
        if due or went:
            ws.undo_deletion("retention")
        assert tree(home / ".gemini") == before


def output(project: Path, name: str, hours: int, now: datetime) -> str:
    """A tool output that belongs to no session."""
    path = project / "tool-outputs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("what the tool said")
    os.utime(path, ((now - timedelta(hours=hours)).timestamp(),) * 2)
    return os.fspath(path)


def folders_gone(before: Any, after: Any, due: set[str]) -> set[str]:
    """The folders that went, which only sessions that were due may have had."""
    gone = {path for path, (_, _, data) in before.items() if data is None and path not in after}
    return {path for path in gone if any(id in path for id in due)}


def parsed(age: str) -> timedelta:
    return timedelta(hours=int(age[:-1]) * HOURS[age[-1]])


def many(project: Path, count: int, *, old: int) -> list[Path]:
    """`count` whole sessions, each with a log, the first `old` of them 40 days old."""
    made = []
    for number in range(count):
        one = Stored(number + 1, 24 * (40 if number < old else 1), "whole", frozenset(PLACES[:1]))
        made.append(Path(next(iter(put(project, number, one, NOW)))))
    return made


@pytest.fixture
def project(home: Path, root: Path) -> Path:
    return make_project(home, root)


def test_a_file_that_another_process_deletes_between_plan_and_apply(ws: gemnb.Workspace, project: Path) -> None:
    first, second, *_ = many(project, 4, old=2)
    plan = ws.retention()
    subprocess.run([sys.executable, "-c", "import os, sys; os.unlink(sys.argv[1])", first], check=True)

    result = plan.apply()

    assert (result.deleted, result.skipped, result.failed) == (1, 3, 0)
    assert result.stayed == ((first, "it is gone already"),) and not second.exists()


DROPPED = """
import os, sys
from datetime import datetime
import gemnb
home, root, now = sys.argv[1:]
def opened(home):
    at = datetime.fromisoformat(now)
    return gemnb.open_workspace(root, home=home, clock=lambda: at, environ={"HOME": "/nowhere"})
opened(home + "/none").retention().apply(purge=True)  # so that all is imported, which another user may not read
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ws = opened(home)
hidden = [row.id for row in ws.sessions(hidden=True) if row.state == "unreadable"]
result = ws.retention().apply(purge=True)
print(len(hidden), result.deleted, result.skipped, result.failed, sep=",")
print(*(why for _, why in result.stayed), sep="|")
"""


def make_project(home: Path, root: Path) -> Path:
    folder = home / ".gemini/tmp/app"
    (folder / "chats").mkdir(parents=True)
    (folder / ".project_root").write_text(str(root))
    return folder


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home that another user can reach, which pytest's own folders are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def as_nobody(home: Path) -> list[str]:
    """What retention says in a process that the permissions of the disk hold for, as they do not for root."""
    if os.geteuid() == 0:
        for path in home.rglob("*"):
            os.chown(path, 65534, 65534)
    command = [sys.executable, "-c", DROPPED, home, home / "work/app", NOW.isoformat()]
    told = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_a_file_that_really_cannot_be_read_stays_and_stops_nothing(open_home: Path) -> None:
    first, second, *kept = many(make_project(open_home, open_home / "work/app"), 4, old=2)
    first.chmod(0)

    counts, stayed = as_nobody(open_home)

    assert counts == "1,1,2,0" and stayed == ""
    assert first.exists() and not second.exists() and all(path.exists() for path in kept)


def test_a_folder_that_is_really_read_only_fails_one_by_one_and_says_so(open_home: Path) -> None:
    project = make_project(open_home, open_home / "work/app")
    made = many(project, 4, old=2)
    (project / "chats").chmod(0o500)

    counts, stayed = as_nobody(open_home)

    (project / "chats").chmod(0o700)
    assert counts == "0,0,2,2" and "Permission denied" in stayed
    assert all(path.exists() for path in made) and len(list((project / "logs").iterdir())) == 4


OLD = 300
"""Of the 5,000 that go."""


def test_five_thousand_sessions_are_cleaned_and_brought_back(ws: gemnb.Workspace, project: Path) -> None:
    many(project, 5_000, old=OLD)
    before = tree(project)
    began = time.perf_counter()

    plan = ws.retention()
    planned = time.perf_counter()
    result = plan.apply()
    applied = time.perf_counter()
    back = ws.undo_deletion("retention")
    undone = time.perf_counter()

    print(f"\nplan {planned - began:.1f} s, apply {applied - planned:.1f} s, undo {undone - applied:.1f} s")  # noqa: T201
    assert (result.scanned, result.deleted, result.failed) == (5_000, OLD, 0) and len(back.entries) == OLD
    assert tree(project) == before
    assert undone - began < 120
