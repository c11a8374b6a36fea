"""Tool outputs go by their own age and count, and with their session; what is odd about them stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support import NOW, SID, TALK, header, tree

import gemnb
from gemnb.store.outputs import look_at

Write = Callable[..., Path]
OTHER = "bb22cc33-0000-4000-8000-00000000000b"


@pytest.fixture
def kept(write_session: Write) -> Path:
    """A session that was used a day ago, so that it stays."""
    at = (NOW - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    return write_session(header(startTime=at, lastUpdated=at), *TALK)


def put(session: Path, name: str, *, days: float) -> Path:
    """An output below `tool-outputs/`, its folder as old as it is."""
    path = session.parent.parent / "tool-outputs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("what the tool said")
    at = (NOW - timedelta(days=days)).timestamp()
    for each in (path, path.parent):
        os.utime(each, (at, at))
    return path


def configure(home: Path, **retention: Any) -> None:
    (home / ".gemini/settings.json").write_text(json.dumps({"general": {"sessionRetention": retention}}))


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        pytest.param({"maxAge": "5d"}, {"old.txt", "mid.txt"}, id="by age"),
        pytest.param({"maxAge": "", "maxCount": 1}, {"old.txt", "mid.txt"}, id="by count, newest first"),
        pytest.param({"maxAge": "30d", "maxCount": 2}, {"old.txt"}, id="by both"),
        pytest.param({"maxAge": "5d", "minRetention": "10d"}, set(), id="a policy that makes no sense"),
        pytest.param({"maxAge": "", "maxCount": 1, "minRetention": "25d"}, {"old.txt"}, id="minRetention holds"),
        pytest.param({"enabled": False, "maxAge": "5d"}, set(), id="off"),
    ],
)
def test_single_outputs_follow_age_and_count(
    ws: gemnb.Workspace, kept: Path, home: Path, settings: dict[str, Any], gone: set[str]
) -> None:
    made = [put(kept, name, days=days) for name, days in (("old.txt", 40), ("mid.txt", 20), ("new.txt", 1))]
    configure(home, **settings)
    before = tree(home / ".gemini")

    result = ws.retention().apply()

    assert {path.name for path in made if not path.exists()} == gone and kept.exists()
    assert (result.outputs, result.deleted) == (len(gone), 0) and ws.retention().due_outputs == ()
    if gone:
        assert "tool outputs are, too" in str(ws.undo_deletion("retention"))
    assert tree(home / ".gemini") == before


def test_the_old_outputs_of_a_kept_session_go_and_fresh_ones_stay(ws: gemnb.Workspace, kept: Path) -> None:
    old = put(kept, f"session-{SID}/a.txt", days=40).parent
    fresh = put(kept, f"session-{OTHER}/deep/b.txt", days=2).parent.parent
    os.utime(fresh, (0, 0))

    plan = ws.retention()

    assert [c.output.path for c in plan.due_outputs] == [old] and "older than maxAge" in plan.due_outputs[0].reason
    assert str(old) in str(plan) and "1 tool outputs are past it" in str(plan.notice)
    assert plan.apply().gone == (old,) and fresh.exists()


@pytest.mark.parametrize("odd", ["the current one", "a recovered one", "one that cannot be read", "a sub-agent", "due"])
def test_the_outputs_of_a_session_that_never_goes_stay(
    ws: gemnb.Workspace, write_session: Write, kept: Path, odd: str
) -> None:
    lines = {"one that cannot be read": [b"\xff"], "a recovered one": TALK, "a sub-agent": [header(OTHER), *TALK]}
    at = "2026-03-01T10:00:00.000Z"
    path = write_session(
        *lines.get(odd, [header(OTHER, startTime=at, lastUpdated=at), *TALK]),
        name=f"{SID}/{OTHER}.jsonl" if odd == "a sub-agent" else "session-2026-03-01T10-00-bb22cc33.jsonl",
    )
    os.utime(path, ((NOW - timedelta(days=40)).timestamp(),) * 2)
    if odd == "the current one":
        ws.resume(OTHER)
    output = put(kept, f"session-{OTHER}/a.txt", days=400)

    plan = ws.retention()

    assert plan.due_outputs == ()
    assert (output.parent in [path for c in plan.due for path in c.paths]) == (odd == "due")


def test_what_is_a_link_or_has_no_sessions_name_is_no_output(ws: gemnb.Workspace, kept: Path, tmp_path: Path) -> None:
    put(kept, "notes/a.txt", days=400)
    (tmp_path / "outside").mkdir()
    (kept.parent.parent / "tool-outputs" / f"session-{OTHER}").symlink_to(tmp_path / "outside")
    (kept.parent.parent / "tool-outputs" / "link.txt").symlink_to(kept)

    assert ws.retention().outputs == ()


@pytest.mark.parametrize("change", ["grown", "gone", "one more"])
def test_an_output_that_changed_since_the_plan_stays(ws: gemnb.Workspace, kept: Path, change: str) -> None:
    path = put(kept, f"session-{OTHER}/a.txt", days=40)
    single = put(kept, "b.txt", days=40)
    plan = ws.retention()
    if change == "grown":
        path.write_text("more than it was")
    elif change == "gone":
        path.unlink()
        path.parent.rmdir()
    else:
        (path.parent / "new.txt").write_text("")

    result = plan.apply()

    assert result.outputs == 1 and not single.exists() and [place for place, _ in result.stayed] == [path.parent]
    assert look_at(path.parent) is None or change != "gone"


def test_a_purge_of_outputs_is_for_good(ws: gemnb.Workspace, kept: Path) -> None:
    path = put(kept, "a.txt", days=40)

    assert ws.retention().apply(purge=True).outputs == 1

    assert not path.exists() and ws.cleanup.trash.entries() == []
