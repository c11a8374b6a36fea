"""The sample store: seeded, small, listed like work."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import tree

import gemnb
from gemnb.testing import make_sample_store

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


def test_the_same_seed_makes_the_same_sessions(tmp_path: Path) -> None:
    one, _ = make_sample_store(tmp_path / "a", now=NOW)
    two, _ = make_sample_store(tmp_path / "b", now=NOW)

    assert [p.name for p in sorted(one.rglob("session-*"))] == [p.name for p in sorted(two.rglob("session-*"))]
    assert sum(path.stat().st_size for path in (tmp_path / "a").rglob("*") if path.is_file()) < 2_000_000


def test_it_looks_like_work(tmp_path: Path) -> None:
    home, root = make_sample_store(tmp_path, now=NOW)
    ws = gemnb.open_workspace(root, home=home)

    rows = ws.sessions(hidden=True)
    sessions = [ws.load(row.id) for row in rows]

    assert len(ws.sessions()) == 24 and sum(p.sessions for p in ws.projects()) == 43
    assert {row.state for row in rows} == {"ok", "subagent"}
    assert any(s.damage for s in sessions)
    assert {step.kind for s in sessions for step in s.history} == {"rewind", "replace"}
    assert {c.status for s in sessions for m in s.messages for c in m.tool_calls} == {"success", "error"}
    assert gemnb.usage_df(ws)["unpriced"].sum() == 0
    assert gemnb.usage_df(ws)["answers"].sum() < gemnb.usage_df(ws, dedupe=False)["answers"].sum()  # a fork's copies


def test_its_worktrees_are_of_one_repository(tmp_path: Path) -> None:
    home, root = make_sample_store(tmp_path, now=NOW)
    roots = [root, root.parent / "rivers-wt/fix-dates", root.parent / "rivers-wt/plots"]

    told = subprocess.run(
        ["git", "worktree", "list", "--porcelain"], cwd=roots[1], check=True, capture_output=True, text=True
    ).stdout
    seen = {one: gemnb.open_workspace(one, home=home).listing(worktrees=True) for one in roots}

    assert [line.removeprefix("worktree ") for line in told.splitlines() if "worktree " in line] == [*map(str, roots)]
    assert all(len(rows) == 24 + 2 + 2 for rows in seen.values())
    assert {row.project_root for row in seen[root]} == {*map(str, roots)}


def test_it_has_a_memory_and_proposals_that_fit(tmp_path: Path) -> None:
    home, root = make_sample_store(tmp_path, now=NOW)
    ws = gemnb.open_workspace(root, home=home)
    before = ws.memory()

    for _ in before.inbox():
        ws.memory().apply(1)

    assert [file.scope for file in before.files] == ["global", "private", "project"] and len(before.skipped) == 2
    assert all(fact in ws.memory().text and fact not in before.text for fact in ("5433", "2026-05-20"))


@pytest.mark.interop
@pytest.mark.filterwarnings("default")
def test_the_real_client_lists_it(tmp_path: Path, model_server: Callable[..., Any]) -> None:
    from client import Client, find_client
    from support import missing

    program = find_client()
    if program is None:
        missing("needs the real client: install it by npm and name it in GEMNB_GEMINI_CLI")
    assert program
    home, root = make_sample_store(tmp_path / "s")
    client = Client(program, home, root, model_server(rules={"rules": [], "default": [{"text": "A title"}]}))
    client.setup()
    before = tree(home / ".gemini/tmp/rivers/chats")

    listed = client.sessions()

    assert [(n, id) for n, _, id in listed] == [
        (r.index, r.id) for r in gemnb.open_workspace(root, home=home).sessions()
    ]
    assert before.keys() <= tree(home / ".gemini/tmp/rivers/chats").keys()


def test_a_file_is_as_old_as_its_talk_so_that_retention_finds_something_due(tmp_path: Path) -> None:
    home, project = make_sample_store(tmp_path)
    settings = {"general": {"sessionRetention": {"enabled": True, "maxAge": "90d"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))

    decisions = [c.decision for c in gemnb.open_workspace(project, home=home).retention().candidates]

    assert 0 < decisions.count("delete") < len(decisions)
