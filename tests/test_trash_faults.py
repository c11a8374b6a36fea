"""The trash on bad days: cut off, damaged, full, read-only. No file is lost, and no half of one is taken for whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support import NOW, SID, TALK, header, held, missing, tree

import gemnb
from gemnb.errors import TrashError
from gemnb.store.moving import Disposed
from gemnb.store.trash import Trash

Write = Callable[..., Path]
OTHER = "bb22cc33-0000-4000-8000-00000000000b"


def other(write_session: Write, number: int) -> Path:
    path = write_session(header(f"{number:08x}-0"), *TALK, name=f"session-2026-05-02T10-00-{number:08x}.jsonl")
    os.utime(path, (NOW.timestamp(),) * 2)
    return path


def filled(store: Path) -> list[Path]:
    """A session's family below `store`: its file first, a folder with two files and a log."""
    app = store / "app"
    made = {"chats/session-2026-05-01T10-00-aa11bb22.jsonl": b"one\n" * 50, f"logs/session-{SID}.jsonl": b"log\n"}
    made |= {f"tool-outputs/session-{SID}/{name}.txt": name.encode() * 30 for name in "ab"}
    for place, data in made.items():
        path = app / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_700_000_000, 1_700_000_001))
    return [app / place for place in list(made)[:2]] + [app / f"tool-outputs/session-{SID}"]


def trash_at(folder: Path, store: Path) -> Trash:
    return Trash(folder, store=store, clock=lambda: NOW)


def put(trash: Trash, paths: list[Path], batch: str = "b") -> Disposed:
    return trash.put(paths, session_id=SID, title="Rivers", how="delete", batch=batch)


def test_what_another_program_took_is_named_and_stops_nothing(tmp_path: Path) -> None:
    paths = filled(tmp_path / "store")
    paths[1].unlink()

    done = put(trash_at(tmp_path / "trash", tmp_path / "store"), paths)

    assert done == Disposed((paths[0], paths[2]), (), (paths[1],))


def test_the_rest_of_a_session_is_left_to_the_program_that_took_its_file(tmp_path: Path) -> None:
    paths = filled(tmp_path / "store")
    paths[0].unlink()
    trash = trash_at(tmp_path / "trash", tmp_path / "store")

    assert put(trash, paths) == Disposed((), (), (paths[0],))
    assert paths[1].exists() and paths[2].exists() and list(trash.folder.iterdir()) == []


def test_a_plan_that_two_kernels_apply_counts_each_session_once(root: Path, home: Path, write_session: Write) -> None:
    path = other(write_session, 1)
    kernels = [gemnb.open_workspace(root, home=home, clock=lambda: NOW + timedelta(days=90)) for _ in range(2)]
    plans = [kernel.retention() for kernel in kernels]

    one, two = (plan.apply() for plan in plans)

    assert (one.deleted, one.vanished, one.gone) == (1, 0, (path,))
    assert (two.deleted, two.vanished, two.gone, two.failed) == (0, 1, (), 0)
    assert two.stayed == ((path, "it is gone already"),) and "1 were gone already" in str(two)


def test_the_last_deletion_is_undone_first_though_the_clock_is_set_back(
    root: Path, home: Path, write_session: Write
) -> None:
    times = [NOW]
    kernels = [gemnb.open_workspace(root, home=home, clock=lambda: times[-1]) for _ in range(2)]
    made = [other(write_session, number) for number in range(1, 6)]
    for number, path in enumerate(made):
        kernels[number % 2].delete(f"{number + 1:08x}-0")
        times.append(NOW - timedelta(days=number % 3))
        assert not path.exists()

    for number in (5, 4, 3, 2, 1):
        (back,) = kernels[0].undo_deletion().entries
        assert back.session_id == f"{number:08x}-0" and made[number - 1].exists()


def test_one_that_something_stands_in_the_way_of_stops_no_other(
    ws: gemnb.Workspace, write_session: Write, root: Path, home: Path
) -> None:
    made = [other(write_session, number) for number in (1, 2, 3)]
    later = gemnb.open_workspace(root, home=home, clock=lambda: NOW + timedelta(days=90))
    assert later.retention().apply().deleted == 3
    made[1].write_text("appeared meanwhile")

    back = later.undo_deletion()

    assert [entry.session_id for entry in back.entries] == ["00000001-0", "00000003-0"]
    assert f"{made[1]} is there again. Move it away" in str(back) and made[1].read_text() == "appeared meanwhile"
    made[1].unlink()
    assert len(later.undo_deletion().entries) == 1 and made[1].read_bytes() and not later.cleanup.trash.entries()


def test_what_appears_during_an_undo_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = filled(tmp_path / "store")
    trash = trash_at(tmp_path / "trash", tmp_path / "store")
    put(trash, paths)
    link = os.link

    def late(source: Any, target: Any, **more: Any) -> None:
        Path(target).write_text("appeared meanwhile")
        link(source, target, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", late)
        with pytest.raises(TrashError, match=r"could not be brought back \(File exists\)"):
            trash.undo()

    assert paths[0].read_text() == paths[1].read_text() == "appeared meanwhile"
    for path in paths[:2]:
        path.unlink()
    trash.undo()
    assert paths[0].read_bytes() == b"one\n" * 50 and not trash.entries()


Change = Callable[[dict[str, Any]], Any]
HOSTILE: dict[str, Change] = {
    "not JSON": lambda told: "{",
    "no object": lambda told: [1],
    "deep": lambda told: "[" * 200_000,
    "huge": lambda told: " " * (17 * 1024 * 1024) + json.dumps(told),
    "of another version": lambda told: told | {"version": 2},
    "no paths": lambda told: told | {"paths": []},
    "a text for paths": lambda told: told | {"paths": "abc"},
    "numbers for paths": lambda told: told | {"paths": [1, None]},
    "a path twice": lambda told: told | {"paths": told["paths"] * 2},
    "a NUL": lambda told: told | {"paths": [told["paths"][0] + "\0x"]},
    "absolute": lambda told: told | {"paths": ["/tmp/gemnb-elsewhere"]},
    "relative": lambda told: told | {"paths": ["elsewhere"]},
    "up": lambda told: told | {"paths": [told["paths"][0] + "/../../../../../../up"]},
    "settings": lambda told: told | {"paths": [told["paths"][0].partition("/tmp/app/")[0] + "/settings.json"]},
    "a time that is none": lambda told: told | {"deletedAt": "soon"},
    "a number for a time": lambda told: told | {"deletedAt": 5},
    "a time beyond all": lambda told: told | {"deletedAt": "0001-01-01T00:00:00+14:00"},
}


@pytest.mark.parametrize("change", HOSTILE)
def test_a_manifest_that_is_hostile_or_damaged_writes_nothing_and_stops_nothing(
    ws: gemnb.Workspace, write_session: Write, tmp_path: Path, change: str
) -> None:
    good, bad = other(write_session, 1), other(write_session, 2)
    ws.delete("00000001-0")
    ws.delete("00000002-0")
    manifest = sorted(ws.cleanup.trash.folder.glob("*/manifest.json"))[-1]
    told = HOSTILE[change](json.loads(manifest.read_text()))
    manifest.write_text(told if isinstance(told, str) else json.dumps(told))
    before = tree(tmp_path).keys()

    assert len(ws.undo_deletion().entries) == 1

    assert good.exists() and not bad.exists() and tree(tmp_path).keys() - before == {str(good)}
    assert [folder for folder, _ in ws.cleanup.trash.damaged()] == [manifest.parent]
    with pytest.raises(TrashError) as raised:
        ws.undo_deletion()
    assert str(manifest) in str(raised.value)
    assert ws.cleanup.trash.purge(timedelta(0)) == 0 and (manifest.parent / "0").exists()


def test_a_naive_time_in_a_manifest_is_one_time_among_others(ws: gemnb.Workspace, write_session: Write) -> None:
    for number in (1, 2):
        other(write_session, number)
        ws.delete(f"{number:08x}-0")
        manifest = sorted(ws.cleanup.trash.folder.glob("*/manifest.json"))[-1]
        manifest.write_text(manifest.read_text().replace("+00:00", "") if number == 1 else manifest.read_text())

    assert [entry.session_id for entry in ws.cleanup.trash.entries()] == ["00000001-0", "00000002-0"]


def test_no_link_is_followed_out_of_store_or_trash(ws: gemnb.Workspace, write_session: Write, tmp_path: Path) -> None:
    path = write_session(header(), *TALK)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ws.delete("1")
    chats = path.parent
    shutil.rmtree(chats)
    chats.symlink_to(elsewhere)
    with pytest.raises(TrashError, match="Look for a link on the way"):
        ws.undo_deletion()
    chats.unlink()
    inside = next(ws.cleanup.trash.folder.glob("*/0"))
    content = inside.read_bytes()
    inside.unlink()
    inside.symlink_to("/etc/passwd")
    with pytest.raises(TrashError, match="is a link or a device"):
        ws.undo_deletion()
    assert not path.exists() and list(elsewhere.iterdir()) == []
    inside.unlink()
    inside.write_bytes(content)

    ws.undo_deletion()

    assert path.read_bytes() == content


def test_names_and_titles_of_any_bytes_come_back(tmp_path: Path) -> None:
    store = tmp_path / "store"
    path = Path(os.fsdecode(os.fsencode(store) + b"/app/chats/session-\xff\xfe.jsonl"))
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    trash = trash_at(tmp_path / "trash", store)

    trash.put([path], session_id="\ud83d", title="half \ud83d\x1b[31m", how="delete", batch="b")

    assert not path.exists()
    trash.undo()
    assert path.exists()


def test_leftovers_go_and_what_holds_something_stays(tmp_path: Path) -> None:
    paths = filled(tmp_path / "store")
    trash = trash_at(tmp_path / "trash", tmp_path / "store")
    put(trash, paths)
    (entry,) = trash.entries()
    begun = trash.folder / "000000002-20260101T000000-abcdefabcdef"
    shutil.copytree(entry.folder, begun, ignore=shutil.ignore_patterns("0", "1", "2"))
    (begun / ".0.gemnb-part").write_text("hal")
    unwritten = trash.folder / "000000003-20260101T000000-abcdefabcdef"
    unwritten.mkdir()
    (unwritten / "manifest.json.part").write_text("{")
    (trash.folder / f".{begun.name}.gone").mkdir()
    nobodys = trash.folder / "somebody's"
    nobodys.mkdir()
    (nobodys / "notes.txt").write_text("kept")

    assert trash.entries() == [entry] and [folder for folder, _ in trash.damaged()] == [nobodys]
    assert trash.purge(timedelta(days=30)) == 0
    assert sorted(p.name for p in trash.folder.iterdir()) == sorted([entry.folder.name, nobodys.name])
    assert (nobodys / "notes.txt").read_text() == "kept"


def test_a_second_copy_is_made_where_the_first_was_cut_off(tmp_path: Path) -> None:
    paths = filled(tmp_path / "store")
    archive = trash_at(tmp_path / "archive", tmp_path / "store")
    archive.keep(paths, session_id=SID, title="Rivers", earlier=())
    (entry,) = archive.entries()
    shutil.rmtree(entry.folder / "2")

    archive.keep(paths, session_id=SID, title="Rivers", earlier=[entry])

    (again,) = archive.entries()
    assert again.folder != entry.folder and len(again.held) == 3


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of another file system."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or not os.access(shm, os.W_OK) or shm.stat().st_dev == tmp_path.stat().st_dev:
        missing("a second file system")
    with tempfile.TemporaryDirectory(dir=shm) as folder:
        yield Path(folder)


def cut_off(act: Callable[[], object], at: int) -> bool:
    """Do `act` in a process of its own, killed at its call number `at` of a C function; whether it came to its end."""
    calls = count(1)

    def kill(_frame: object, event: str, _what: object) -> None:
        if event == "c_call" and next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        sys.setprofile(kill)
        act()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


STRIDE = 23
"""Of the calls, every so manieth is the last one."""


def test_a_deletion_to_another_file_system_may_be_killed_at_any_call(tmp_path: Path, elsewhere: Path) -> None:
    for at in count(1, STRIDE):
        store, trash = tmp_path / f"store{at}", trash_at(elsewhere / f"trash{at}", tmp_path / f"store{at}")
        paths = filled(store)
        before = held(store)

        ended = cut_off(lambda trash=trash, paths=paths: put(trash, paths), at)  # type: ignore[misc]

        if trash.entries():
            trash.undo()
        assert held(store) == before, at
        trash.purge()
        assert not trash.folder.exists() or list(trash.folder.iterdir()) == []
        if ended:
            break
    assert at > 500


def test_an_undo_from_another_file_system_may_be_killed_at_any_call(tmp_path: Path, elsewhere: Path) -> None:
    for at in count(1, STRIDE):
        store, trash = tmp_path / f"store{at}", trash_at(elsewhere / f"trash{at}", tmp_path / f"store{at}")
        paths = filled(store)
        before = held(store)
        put(trash, paths)

        ended = cut_off(trash.undo, at)

        if trash.entries():
            trash.undo()
        assert held(store) == before, at
        trash.purge()
        assert list(trash.folder.iterdir()) == []
        if ended:
            break
    assert at > 500


def test_what_grows_while_it_is_copied_stays(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = filled(tmp_path / "store")
    copied = shutil.copy2

    def slow(source: Any, target: Any, **more: Any) -> Any:
        done = copied(source, target, **more)
        with paths[0].open("ab") as file:
            file.write(b"one more\n")
        return done

    monkeypatch.setattr(shutil, "copy2", slow)
    done = put(trash_at(elsewhere / "trash", tmp_path / "store"), paths)

    assert done.gone == () and "changed while it was copied" in done.stayed[0][1]
    assert paths[0].read_bytes().endswith(b"one more\n") and list((elsewhere / "trash").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of its own takes the rights of root")
def test_a_trash_on_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    (tmp_path / "disk").mkdir()
    command = 'mount -t tmpfs -o size=96k none "$1/disk" && exec "$2" -c "$3" "$1"'
    told = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, "sh", tmp_path, sys.executable, ON_A_FULL_DISK],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )

    assert told.returncode == 0, told.stderr


ON_A_FULL_DISK = """
import sys
from pathlib import Path
from support import held
from test_trash_faults import filled, put, trash_at
base = Path(sys.argv[1])
for number, space in enumerate((0, 4096, 8192, 12288, 16384, 20480, 24576)):
    store, filler = base / f"store{number}", base / "disk/filler"
    paths = filled(store)
    paths[0].write_bytes(b"line\\n" * 2000)
    before, trash = held(store), trash_at(base / "disk/trash", store)
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512): pass
        except OSError:
            file.truncate(max(0, file.tell() - space))
    done = put(trash, paths)
    filler.unlink()
    assert done.stayed or space > 16384, space
    if trash.entries():
        trash.undo()
    assert held(store) == before, space
    trash.purge()
    assert list(trash.folder.iterdir()) == []
# and the other way round: the store's disk is full when the trash gives back
store, trash = base / "disk/store", trash_at(base / "trash", base / "disk/store")
paths = filled(store)
paths[0].write_bytes(b"line\\n" * 2000)
before = held(store)
put(trash, paths)
with filler.open("wb", buffering=0) as file:
    try:
        while file.write(b"x" * 512): pass
    except OSError: pass
try:
    trash.undo()
except Exception as error:
    assert "undo once more" in str(error), error
else:
    raise AssertionError("the disk was full")
filler.unlink()
trash.undo()
assert held(store) == before
"""

AS_NOBODY = """
import os, sys
from pathlib import Path
from test_trash_faults import put, trash_at
base, what = Path(sys.argv[1]), sys.argv[2]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
app = base / "store/app"
paths = [*app.glob("chats/*"), *app.glob("logs/*"), *app.glob("tool-outputs/*")]
trash = trash_at(base / "trash", base / "store")
if what == "undo":
    try:
        print(trash.undo())
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
else:
    done = put(trash, paths)
    print(len(done.gone), *(why for _, why in done.stayed), sep="|")
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        for path in (Path(folder), *Path(folder).rglob("*")):
            if path.is_dir():
                path.chmod(0o755)


def as_nobody(base: Path, what: str) -> str:
    """What the trash says in a process that the permissions of the disk hold for, as they do not for root."""
    if os.geteuid() == 0:
        for path in (base, *base.rglob("*")):
            os.lchown(path, 65534, 65534)
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", AS_NOBODY, base, what]
    told = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert told.returncode == 0, told.stderr
    return told.stdout.strip()


@pytest.mark.parametrize(
    ("place", "mode", "words"),
    [
        ("store/app/chats", 0o500, "0|Permission denied|the session's file stays, so this does"),
        ("trash", 0o500, "0|the trash"),
        ("trash", 0, "0|the trash"),
        ("store/app/logs", 0o500, "2|Permission denied"),
        ("store/app/logs/session-" + SID + ".jsonl", 0, "3"),
    ],
)
def test_what_may_not_be_changed_stays_and_is_said(open_folder: Path, place: str, mode: int, words: str) -> None:
    filled(open_folder / "store")
    (open_folder / "trash").mkdir()
    before = held(open_folder / "store")
    was = (open_folder / place).stat().st_mode & 0o777
    (open_folder / place).chmod(mode)

    told = as_nobody(open_folder, "put")

    assert told.startswith(words)
    (open_folder / place).chmod(was) if (open_folder / place).exists() else None
    if not told.startswith("0"):
        (open_folder / "trash").chmod(0o700)
        as_nobody(open_folder, "undo")
        for path in (open_folder / "store").rglob("*.jsonl"):
            path.chmod(was) if mode == 0 else None
    assert held(open_folder / "store") == before


@pytest.mark.parametrize(("place", "mode"), [("store/app/chats", 0o500), ("trash", 0), ("trash/*", 0o500)])
def test_an_undo_that_may_not_write_says_so_and_can_be_run_again(open_folder: Path, place: str, mode: int) -> None:
    filled(open_folder / "store")
    before = held(open_folder / "store")
    as_nobody(open_folder, "put")
    (folder,) = open_folder.glob(place)
    folder.chmod(mode)

    told = as_nobody(open_folder, "undo")

    assert told.startswith("TrashError") and "ndo once more" in told
    folder.chmod(0o755)
    assert as_nobody(open_folder, "undo").startswith("1 session is back")
    (open_folder / "store/app/chats").chmod(before[str(open_folder / "store/app/chats")][0] & 0o777)
    assert held(open_folder / "store") == before
