"""The trash: what is deleted comes back as it was, byte for byte, and nothing is lost on the way."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support import NOW, SID, TALK, header

import gemnb
from gemnb.errors import TrashError
from gemnb.store.moving import same
from gemnb.store.paths import own_folder

Write = Callable[..., Path]


def whole(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Everything below `folder`: kind and permissions, modification time, bytes."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path)] = (status.st_mode, status.st_mtime_ns, data)
    return found


def with_artifacts(path: Path) -> None:
    """Give the session of `path` a log, tool outputs, plans and a sub-agent."""
    project = path.parent.parent
    for name in (
        f"logs/session-{SID}.jsonl",
        f"tool-outputs/session-{SID}/shell_1.txt",
        f"{SID}/plans/plan.md",
        f"chats/{SID}/bb22cc33-0000-4000-8000-00000000000b.jsonl",
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("{}\n")
        os.utime(project / name, (1_700_000_000, 1_700_000_001))


def test_a_deletion_waits_outside_the_store_for_the_person_alone(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    with_artifacts(path)

    deleted = ws.delete("1")

    assert len(deleted.gone) == 5 and not any(gone.exists() for gone in deleted.gone)
    assert not ws.cleanup.trash.folder.is_relative_to(ws.home / ".gemini")
    modes = {stat.S_IMODE(p.stat().st_mode) for p in (ws.cleanup.trash.folder, *ws.cleanup.trash.folder.iterdir())}
    manifest = next(ws.cleanup.trash.folder.glob("*/manifest.json"))
    assert modes == {0o700} and stat.S_IMODE(manifest.stat().st_mode) == 0o600


def test_an_undo_brings_back_every_byte_and_time(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    with_artifacts(path)
    os.utime(path.parent, (1_700_000_000, 1_700_000_002))
    before = whole(ws.home / ".gemini")

    ws.delete("1")
    back = ws.undo_deletion()

    assert whole(ws.home / ".gemini") == before and "1 session is back" in str(back)
    assert ws.cleanup.trash.entries() == []


def test_the_last_deletion_comes_back_first(ws: gemnb.Workspace, write_session: Write) -> None:
    one = write_session(header(), *TALK)
    two = write_session(header("bb22cc33-0"), *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")
    ws.delete(SID)
    ws.delete("bb22cc33-0")

    ws.undo_deletion()
    assert two.exists() and not one.exists()
    ws.undo_deletion()
    assert one.exists()
    with pytest.raises(TrashError, match="no deletion to undo"):
        ws.undo_deletion()


def test_what_stands_in_the_way_is_not_overwritten(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    with_artifacts(path)
    ws.delete("1")
    path.write_text("something else")
    before = whole(ws.home)

    with pytest.raises(TrashError, match="is there again"):
        ws.undo_deletion()

    assert whole(ws.home) == before


def test_a_purge_is_for_good(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)

    assert "gone for good" in str(ws.delete("1", purge=True))

    assert not path.exists() and ws.cleanup.trash.entries() == []


def test_what_is_older_than_the_days_goes_with_the_next_deletion(root: Path, home: Path, write_session: Write) -> None:
    times = [NOW]
    ws = gemnb.open_workspace(root, home=home, clock=lambda: times[-1])
    write_session(header(), *TALK)
    write_session(header("bb22cc33-0"), *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")
    ws.delete(SID)
    times.append(NOW + timedelta(days=31))

    ws.delete("bb22cc33-0")

    assert [entry.session_id for entry in ws.cleanup.trash.entries()] == ["bb22cc33-0"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("moves", range(6))
def test_a_deletion_that_is_cut_off_anywhere_loses_nothing(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    path = write_session(header(), *TALK)
    with_artifacts(path)
    before = {name: data for name, (_, _, data) in whole(ws.home / ".gemini").items()}
    rename, done = Path.rename, []

    def stop(source: Path, target: Any) -> Path:
        if len(done) == moves:
            raise Killed
        done.append(source)
        return rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", stop)
        try:
            ws.delete("1")
        except Killed:
            assert moves < 5
    if moves:
        ws.undo_deletion()
    else:
        with pytest.raises(TrashError, match="no deletion to undo"):
            ws.undo_deletion()

    assert {name: data for name, (_, _, data) in whole(ws.home / ".gemini").items()} == before


def test_another_file_system_is_reached_by_a_copy(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(header(), *TALK)
    with_artifacts(path)
    before = whole(ws.home / ".gemini")
    rename = Path.rename

    def across(source: Path, target: Path) -> Path:
        if source.is_relative_to(ws.home / ".gemini") != target.is_relative_to(ws.home / ".gemini"):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", across)
    assert len(ws.delete("1").gone) == 5 and not path.exists()
    ws.undo_deletion()

    assert whole(ws.home / ".gemini") == before


def test_a_trash_that_cannot_be_written_deletes_nothing(ws: gemnb.Workspace, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    ws.cleanup.trash.folder.parent.mkdir(parents=True)
    ws.cleanup.trash.folder.write_text("in the way")

    deleted = ws.delete("1")

    assert path.exists() and deleted.gone == () and "--purge" in str(deleted)


def test_a_manifest_that_names_a_way_out_of_the_store_brings_nothing_back(
    ws: gemnb.Workspace, write_session: Write, tmp_path: Path
) -> None:
    path = write_session(header(), *TALK)
    ws.delete("1")
    manifest = next(ws.cleanup.trash.folder.glob("*/manifest.json"))
    for elsewhere in (tmp_path / "elsewhere.jsonl", path.parent / "../../../../up.jsonl"):
        manifest.write_text(manifest.read_text().replace(str(path), str(elsewhere)))
        with pytest.raises(TrashError, match="does not lie in"):
            ws.undo_deletion()
        manifest.write_text(manifest.read_text().replace(str(elsewhere), str(path)))
        assert not elsewhere.exists()
    ws.undo_deletion()
    assert path.exists()


def test_the_trash_of_the_persons_own_store_stands_among_their_data(tmp_path: Path) -> None:
    own, other = tmp_path / "me", tmp_path / "other"

    assert own_folder(other, {"HOME": str(own)}) == other / ".gemnb"
    assert own_folder(own, {"HOME": str(own)}).name == "gemnb"


def test_what_has_other_bytes_is_not_the_same_though_size_and_time_are(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.write_bytes(b"aaa")
        os.utime(path, (1, 1))
    assert same(one, other)

    other.write_bytes(b"bbb")
    os.utime(other, (1, 1))

    assert not same(one, other)
