"""Small files written whole: what a disk refuses half of is not there. Several of them: all or none."""

from __future__ import annotations

import errno
import fcntl
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from gemnb.store.journal import open_regular
from gemnb.store.paths import private_folder

LOCK_WAIT_S = 15.0
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems say that have no hard links."""


class NotRestoredError(OSError):
    """Writing several files failed half-way, and so did putting back what was there; the message says where it is."""


def create(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Make the file `path`, which is not there yet; a program that is killed leaves all of it or nothing.

    Raises:
        FileExistsError: something stands there.
        OSError: it cannot be written.
    """
    temporary = _beside(path)
    _create(temporary, data, mode=mode)
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _create(path, data, mode=mode)
    finally:
        _drop(temporary)


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write the file `path` anew with all of `data`, or leave it as it was.

    Raises:
        OSError: it cannot be written.
    """
    temporary = _beside(path)
    _create(temporary, data, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:
        _drop(temporary)
        raise


def put(path: Path, data: bytes) -> None:
    """Make the file `path`, which is not there yet; unlike `create` it never gives it a second name, not for a moment.

    Other kernels of ours are kept out meanwhile, so none of them makes it too.

    Raises:
        FileExistsError: something stands there.
        OSError: it cannot be written.
    """
    temporary = _beside(path)
    _create(temporary, data)
    try:
        with locked([path.parent]):
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            temporary.replace(path)
    except BaseException:
        _drop(temporary)
        raise


@contextmanager
def all_or_none(contents: Mapping[Path, bytes]) -> Iterator[None]:
    """Write the files anew, each whole; where one fails, or what is done in the block, all are as they were.

    A file keeps its permissions, a new one is the person's alone; folders that are missing are made.

    Raises:
        NotRestoredError: what was done could not be undone.
        OSError: one cannot be written; nothing was changed.
    """
    with ExitStack() as leftovers:
        ready: list[tuple[Path, Path, Path | None]] = []
        for path, data in contents.items():
            private_folder(path.parent)
            new, old = _beside(path), None
            leftovers.callback(_drop, new)
            if os.path.lexists(path):
                with open_regular(path) as file:
                    held, mode = file.read(), os.fstat(file.fileno()).st_mode & 0o777
                old = _beside(path)
                leftovers.callback(_drop, old)
                for place, told in ((new, data), (old, held)):
                    _create(place, told)
                    place.chmod(mode)
            else:
                _create(new, data)
            ready.append((path, new, old))
        try:
            for path, new, _ in ready:
                new.replace(path)
            yield
        except BaseException:
            _put_back([(path, old) for path, new, old in ready if not os.path.lexists(new)], leftovers)
            raise


def _put_back(done: Iterable[tuple[Path, Path | None]], leftovers: ExitStack) -> None:
    lost = []
    for path, old in done:
        try:
            if old:
                old.replace(path)
            else:
                path.unlink(missing_ok=True)
        except OSError:
            lost.append(f"{path} is not as it was, its former text is in {old}" if old else f"{path} is new")
    if lost:
        leftovers.pop_all()  # what was there is kept
        raise NotRestoredError("; ".join(lost))


@contextmanager
def locked(folders: Iterable[Path]) -> Iterator[None]:
    """Keep other kernels of ours out while files in the folders are read and written anew.

    The folders themselves are locked: a file that is written anew takes a lock of its own away with it, and a folder
    needs no further file that could stay behind. Where locks are not to be had, it goes without.

    Raises:
        OSError: a folder cannot be opened, or another program holds it for too long.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    with ExitStack() as held:
        for folder in sorted({os.path.realpath(folder) for folder in folders}):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, descriptor)
            while not _taken(descriptor):
                if time.monotonic() > deadline:
                    raise TimeoutError(None, "another program holds the folder", folder)
                time.sleep(0.01)
        yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system has no locks
    return True


def _beside(path: Path) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}.tmp")


def _create(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Make the file `path`, with all of `data`; a failure leaves none, but one that is killed may leave half."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        _drop(path)
        raise


def _drop(path: Path) -> None:
    with suppress(OSError):  # the disk fails: what made it fail is what is told
        path.unlink()
