"""Small files written whole: what a disk refuses half of is not there."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path


def create(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Make the file `path`, which is not there yet, with all of `data`; what fails leaves none.

    Raises:
        FileExistsError: something stands there.
        OSError: it cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        _drop(path)
        raise


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write the file `path` anew with all of `data`, or leave it as it was.

    Raises:
        OSError: it cannot be written.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    create(temporary, data, mode=mode)
    try:
        temporary.replace(path)
    except BaseException:
        _drop(temporary)
        raise


def _drop(path: Path) -> None:
    with suppress(OSError):  # the disk fails: what made it fail is what is told
        path.unlink()
