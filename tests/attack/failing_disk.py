"""A fault below everything that writes: the n-th call that touches a folder fails, once or until it is mended."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ERRORS = ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EIO", "short"]
"""`short`: half of what should be written is, and then the disk is full."""
BY_PATH = ("open", "mkdir", "rename", "replace", "unlink", "link")


class Disk:
    """What the calls below `folder` go through.

    Args:
        folder: other files are not counted.
        patch: puts the layer into place.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = str(folder)
        self.calls = self.faults = 0
        self._fails: Callable[[], str | None] = lambda: None
        self._written: set[int] = set()
        for name in BY_PATH:
            patch.setattr(os, name, self._by_path(name, getattr(os, name)))
        patch.setattr(os, "write", self._write(os.write))
        patch.setattr(os, "fdopen", self._fdopen(os.fdopen))

    @contextmanager
    def failing(self, how: str, at: int, *, stays: bool) -> Iterator[None]:
        """Fail with `how` at the call number `at`, from 1, and at all that follow where it `stays` so."""
        self.calls = self.faults = 0

        def fails() -> str | None:
            self.calls += 1
            hit = self.calls >= at if stays else self.calls == at
            self.faults += hit
            return how if hit else None

        self._fails = fails
        yield
        self._fails = lambda: None

    def _raise(self, how: str | None) -> None:
        if how:
            code = getattr(errno, "ENOSPC" if how == "short" else how)
            raise OSError(code, os.strerror(code))

    def _by_path(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **kwargs: Any) -> Any:
            if not str(path).startswith(self.folder):
                return real(path, *args, **kwargs)
            self._raise(self._fails())
            done = real(path, *args, **kwargs)
            if name == "open":
                self._written.add(done)
            return done

        return call

    def _write(self, real: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
        def write(descriptor: int, data: bytes) -> int:
            how = self._fails() if descriptor in self._written else None
            if how == "short":
                return real(descriptor, data[: len(data) // 2])
            self._raise(how)
            return real(descriptor, data)

        return write

    def _fdopen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def fdopen(descriptor: int, *args: Any, **kwargs: Any) -> Any:
            file = real(descriptor, *args, **kwargs)
            return _Failing(file, self._write(lambda _, data: file.write(data)), descriptor)

        return fdopen


class _Failing:
    """A file whose `write` is the disk's."""

    def __init__(self, file: Any, write: Callable[[int, bytes], int], descriptor: int) -> None:
        self._file, self._to, self._descriptor = file, write, descriptor

    def write(self, data: bytes) -> int:
        count = self._to(self._descriptor, data)
        if count < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Failing:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
