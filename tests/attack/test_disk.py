"""A disk that fails at any call stops no talk, loses no record and changes nothing that stood before."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from failing_disk import ERRORS, Disk
from support import NOW, SID, TALK, header, to_bytes, tree

import gemnb
from gemnb.services.compression import Status
from gemnb.store.replay import read_session
from gemnb.testing import DemoLlm

STEPS_AT_MOST = 400


def look(table: str) -> str:
    """Look at a table."""
    return f"{table}: " + "forty-two rivers, and more of them. " * 4000


def store(base: Path) -> gemnb.Workspace:
    root = base / "work" / "app"
    root.mkdir(parents=True)
    folder = base / "home" / ".gemini" / "tmp" / "app"
    (folder / "chats").mkdir(parents=True)
    (folder / ".project_root").write_text(str(root))
    (folder / "chats" / "session-2026-05-01T10-00-aa11bb22.jsonl").write_bytes(to_bytes(header(root=root), *TALK))
    found = gemnb.open_workspace(root, home=base / "home", llm=DemoLlm(), clock=lambda: NOW, environ={})
    found.inject = False
    return found


def talk(chat: gemnb.Chat) -> None:
    """All that writes: a prompt, a call with a long output, a rewind, a compression that trims it."""
    chat.tools = [look]
    for text in ("First.", "`look` at 'rivers'", "Third.", "To be dropped."):
        assert chat.send(text).outcome == "completed"
    chat.rewind(len([m for m in chat.messages if m.type == "user"]))
    try:
        assert chat.compress(floor={}).status is Status.COMPRESSED
    except gemnb.GemnbError as error:
        assert error.code == "TOOL_OUTPUT"
    assert chat.send("Last.").outcome == "completed"


def holds(ws: gemnb.Workspace, chat: gemnb.Chat, before: dict[str, Any], *, torn: int) -> None:
    """The talk on disk is the talk in memory, in order, and nothing that stood before changed."""
    chat.send("Once more.")
    found = read_session(chat.recording.path)
    assert chat.recording.active and not chat.recording.unsaved
    assert [m.id for m in found.messages] == [m.id for m in chat.messages]
    assert len(found.damage) <= torn
    for path, (_, _, data) in before.items():
        now = Path(path)
        assert data is None or now.read_bytes().startswith(data), f"{path} is not as it was"
    left = [p for p in ws.home.rglob("*") if p.name.endswith(".tmp") or p.name.endswith(".lock")]
    assert not left or torn, left
    for path in ws.home.rglob("tool-outputs/*/*"):
        assert path.suffix == ".tmp" or path.read_text().endswith("of them. "), f"{path} is half a file"


@pytest.mark.parametrize("stays", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize(
    ("how", "new"),
    [*((how, False) for how in ERRORS), ("ENOSPC", True), ("short", True)],
    ids=lambda told: told if isinstance(told, str) else "new" if told else "resumed",
)
def test_a_disk_that_fails_at_any_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, stays: bool, new: bool
) -> None:
    warnings.simplefilter("ignore", gemnb.GemnbWarning)
    disk = Disk(tmp_path, monkeypatch)
    for at in range(1, STEPS_AT_MOST):
        ws = store(tmp_path / str(at))
        before = tree(ws.home)
        chat = ws.new_chat() if new else ws.resume("1")
        with disk.failing(how, at, stays=stays):
            talk(chat)
            assert chat.recording.active or chat.recording.reason
        holds(ws, chat, before, torn=disk.faults)
        if not disk.faults:
            break
    assert 20 < at < STEPS_AT_MOST - 1, "every call was made to fail, and there were some"


ERRANDS: dict[str, Callable[[gemnb.Workspace, Path], object]] = {
    "delete": lambda ws, _: ws.delete(SID),
    "undo": lambda ws, _: ws.undo_deletion(),
    "remember": lambda ws, _: ws.memory().add("We always measure in metres.", scope="project"),
    "save": lambda ws, _: ws.save_checkpoint("again"),
    "drop": lambda ws, _: ws.delete_checkpoint("kept"),
    "go back": lambda ws, _: ws.load_checkpoint("kept").send("On."),
    "clean": lambda ws, _: ws.retention().apply(),
    "rescue": lambda ws, _: ws.rescue(),
    "export": lambda ws, base: ws.resume(SID).export(base / "home" / "out.md"),
    "list": lambda ws, _: (ws.listing(hidden=True), list(ws.search("river")), gemnb.projects(ws.home)),
}


@pytest.mark.parametrize("stays", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("errand", ERRANDS)
def test_a_disk_that_fails_an_errand_is_one_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errand: str, stays: bool
) -> None:
    warnings.simplefilter("ignore", gemnb.GemnbWarning)
    disk = Disk(tmp_path, monkeypatch)
    for at in range(1, STEPS_AT_MOST):
        ws = store(tmp_path / str(at))
        ws.resume("1")
        ws.save_checkpoint("kept")
        other = ws.new_chat()
        other.send("Another.")
        ws.new_chat()
        if errand == "undo":
            ws.delete(SID)
        talk = other.recording.path.read_bytes()
        with disk.failing("EROFS", at, stays=stays), suppress(gemnb.GemnbError):
            ERRANDS[errand](ws, tmp_path / str(at))
        assert other.recording.path.read_bytes().startswith(talk)
        if not disk.faults:
            break
    assert at < STEPS_AT_MOST - 1


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own takes the rights of root")
def test_a_file_system_that_is_really_full_loses_nothing(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    here = Path(__file__).parent
    command = 'mount -t tmpfs -o size=600k none "$1" && exec "$2" "$3" "$1"'
    paths = os.pathsep.join(map(str, (here.parents[1], here.parent)))

    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, "sh", tmp_path, sys.executable, here / "full_disk.py"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
