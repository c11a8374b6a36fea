"""Files and folders moved, copied or removed whole; where it cannot be, they stay as they were."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gemnb.store.files import NO_LINKS
from gemnb.store.paths import is_gone, kind_of, private_folder


@dataclass(frozen=True, slots=True)
class Disposed:
    """What went, what stayed and why, and what another program had taken before."""

    gone: tuple[Path, ...] = ()
    stayed: tuple[tuple[Path, str], ...] = ()
    missing: tuple[Path, ...] = ()


def dispose(paths: Sequence[Path], act: Callable[[Path], None]) -> Disposed:
    """Do `act` to each of `paths`, a session's files first: where one of these stays, what belongs to it stays too.

    Where the first of a session's files is gone already, another program is at it: the rest is left to that.
    """
    gone: list[Path] = []
    stayed: list[tuple[Path, str]] = []
    missing: list[Path] = []
    for number, path in enumerate(paths):
        of_session = path.parent.name == "chats" and kind_of(path) != "folder"
        try:
            act(path)
            gone.append(path)
        except OSError as error:
            if is_gone(path):
                missing.append(path)
                if of_session and number == 0:
                    break
                continue
            stayed.append((path, reason(error)))
            if of_session:
                stayed += [(left, "the session's file stays, so this does") for left in paths[number + 1 :]]
                break
    return Disposed(tuple(gone), tuple(stayed), tuple(missing))


def remove(path: Path) -> None:
    """Remove a file, or a folder with all in it; a link in its place is left alone.

    Raises:
        OSError: it could not be removed.
    """
    if _kind(path) == "folder":
        shutil.rmtree(path)
    else:
        path.unlink()


def move(path: Path, target: Path) -> None:
    """Move a file or folder to `target`, which is free.

    To another file system it is a copy, which is on disk and compared before the original goes: whatever stops it, one
    of both is whole. A copy that is not whole has a name of its own, `part_of(target)`.

    Raises:
        OSError: it could not be moved, or it is a link or a device. Where the original lost a part, the copy stays.
    """
    _move(path, target, _rename)


def bring_back(path: Path, target: Path) -> None:
    """Move as `move` does, or go on where that was cut off; what another program put there is not overwritten.

    Raises:
        FileExistsError: something else stands there.
        OSError: it could not be moved.
    """
    drop(part_of(target))
    if kind_of(target) is not None:
        if holds(target, path):  # the copy was whole, and the original did not go any more
            remove(path)
            return
        if not holds(path, target):
            raise FileExistsError(errno.EEXIST, "something else is there")
        remove(target)  # what a removal left that was cut off: the whole of it is here
    private_folder(target.parent)
    _move(path, target, _rename_anew)


def copy(path: Path, target: Path) -> None:
    """Copy a file or folder with its times to `target`, which is free; what stands there in the end is whole.

    Raises:
        OSError: it could not be copied, or it is a link or a device.
    """
    _copy(path, target, _rename)


def part_of(target: Path) -> Path:
    """Where a copy to `target` grows; what is found there was cut off."""
    return target.with_name(f".{target.name}.gemnb-part")


def drop(path: Path) -> None:
    """Remove what is at `path`, as far as that can be."""
    with suppress(OSError):
        remove(path)


def reason(error: OSError) -> str:
    """What the system says of a failure, in words."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return "; ".join(str(told[-1]) for told in error.args[0][:1])
    return error.strerror or str(error)


def same(one: Path, other: Path) -> bool:
    """Whether both are the same, byte for byte.

    Raises:
        OSError: one of them cannot be read.
    """
    return holds(one, other) and holds(other, one)


def holds(whole: Path, part: Path) -> bool:
    """Whether all of `part` is in `whole`, byte for byte; a removal that was cut off leaves such a part of a folder.

    Raises:
        OSError: one of them cannot be read.
    """
    kind = kind_of(part)
    if kind is None or kind != kind_of(whole):
        return False
    if kind == "file":
        filecmp.clear_cache()  # it would believe size and time
        return filecmp.cmp(whole, part, shallow=False)
    if kind == "other":
        return part.is_symlink() and whole.is_symlink() and part.readlink() == whole.readlink()
    return all(holds(whole / path.name, path) for path in part.iterdir())


Place = Callable[[Path, Path], None]


def _rename(path: Path, target: Path) -> None:
    path.rename(target)


def _rename_anew(path: Path, target: Path) -> None:
    """Rename, but never over something; a folder takes only the place of an empty one."""
    if kind_of(path) == "file":
        try:
            os.link(path, target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
        else:
            path.unlink()
            return
    if kind_of(target) is not None and (kind_of(target) != "folder" or any(target.iterdir())):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    path.rename(target)


def _move(path: Path, target: Path, place: Place) -> None:
    _kind(path)
    try:
        place(path, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    _copy(path, target, place)
    if not same(path, target):
        remove(target)
        raise OSError(errno.EBUSY, "it was changed while it was copied")
    try:
        remove(path)
    except OSError:
        if same(path, target):
            remove(target)
        raise


def _copy(path: Path, target: Path, place: Place) -> None:
    part = part_of(target)
    drop(part)
    try:
        if _kind(path) == "folder":
            shutil.copytree(path, part, symlinks=True)
        else:
            shutil.copy2(path, part, follow_symlinks=False)
        _to_disk(part)
        place(part, target)
    except OSError:
        drop(part)
        raise
    _to_disk(target.parent, deep=False)


def _to_disk(path: Path, *, deep: bool = True) -> None:
    """Have the system write out a file, or a folder with all in it: a power cut takes nothing of it."""
    if deep and kind_of(path) == "folder":
        for inside in path.iterdir():
            _to_disk(inside)
    if kind_of(path) in ("file", "folder"):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _kind(path: Path) -> str:
    """`file` or `folder`.

    Raises:
        OSError: nothing is there, or a link or a device.
    """
    path.lstat()
    kind = kind_of(path)
    if kind not in ("file", "folder"):
        raise OSError("it is a link or a device, which is left to you")
    return kind
