"""Files and folders moved, copied or removed whole; where it cannot be, they stay as they were."""

from __future__ import annotations

import errno
import filecmp
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.store.paths import kind_of


@dataclass(frozen=True, slots=True)
class Disposed:
    """What went, and what stayed and why."""

    gone: tuple[Path, ...] = ()
    stayed: tuple[tuple[Path, str], ...] = ()


def dispose(paths: Sequence[Path], act: Callable[[Path], None]) -> Disposed:
    """Do `act` to each of `paths`, a session's files first: where one of these stays, what belongs to it stays too."""
    gone: list[Path] = []
    stayed: list[tuple[Path, str]] = []
    for number, path in enumerate(paths):
        try:
            act(path)
            gone.append(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            stayed.append((path, error.strerror or str(error)))
            if path.parent.name == "chats" and kind_of(path) != "folder":
                stayed += [(left, "the session's file stays, so this does") for left in paths[number + 1 :]]
                break
    return Disposed(tuple(gone), tuple(stayed))


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
    """Move a file or folder; to another file system by a copy that is whole before the original goes.

    Raises:
        OSError: it could not be moved, or it is a link or a device.
    """
    _kind(path)
    try:
        path.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(path, target)
        remove(path)


def copy(path: Path, target: Path) -> None:
    """Copy a file or folder with its times; what stands at `target` in the end is whole.

    Raises:
        OSError: it could not be copied, or it is a link or a device.
    """
    part = target.with_name(f"{target.name}.part")
    try:
        if _kind(path) == "folder":
            shutil.copytree(path, part, symlinks=True)
        else:
            shutil.copy2(path, part, follow_symlinks=False)
        part.rename(target)
    except OSError:
        if kind_of(part) is not None:
            remove(part)
        raise


def _kind(path: Path) -> str:
    kind = kind_of(path)
    if kind is None:
        raise FileNotFoundError(path)
    if kind == "other":
        raise OSError(f"{path} is a link or a device")
    return kind


def same(one: Path, other: Path) -> bool:
    """Whether both are the same, byte for byte."""
    kind = kind_of(one)
    if kind != kind_of(other) or kind == "other":
        return False
    if kind == "file":
        filecmp.clear_cache()  # it would believe size and time
        return filecmp.cmp(one, other, shallow=False)
    names = sorted(path.name for path in one.iterdir())
    return names == sorted(path.name for path in other.iterdir()) and all(same(one / n, other / n) for n in names)
