"""A patch that proposes changes to memory files: where it may reach, and what the files hold once it is applied."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gemnb.errors import MemoryFileError
from gemnb.model.shown import visible
from gemnb.services.memory_edit import UTF16, check_size, is_utf16, read_bytes
from gemnb.store.paths import kind_of

NEW = "/dev/null"
"""What stands in the place of a file that is not there."""
STAYED = "It was not applied: `%memory dismiss` takes it out of the inbox."
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class Patch:
    """A unified diff of one file or several; nothing here writes.

    Args:
        name: of the file that it is in, for what a person is told.
        kind: which files it may change, in a word.
        text: the diff, with any words before it.
        allowed: the files that it may change, and the folders whose Markdown files it may.
    """

    name: str
    kind: str
    text: str
    allowed: Sequence[Path]

    @cached_property
    def files(self) -> Any:
        """What it says of each file, as the library tells it.

        Raises:
            MemoryFileError: it is no patch, or changes nothing.
        """
        from unidiff.errors import UnidiffParseError
        from unidiff.patch import PatchSet

        try:
            found = PatchSet(self.text)
        except (UnidiffParseError, ValueError) as error:
            raise MemoryFileError(f"{self.name} is no patch ({error}); dismiss it.") from None
        if not found or not all(found):
            raise MemoryFileError(f"{self.name} changes no text; dismiss it.")
        return found

    @property
    def targets(self) -> list[Path]:
        """The files that it changes.

        Raises:
            MemoryFileError: one of them is not allowed.
        """
        return [self._target(file) for file in self.files]

    def changes(self) -> dict[Path, bytes]:
        """What each file will hold.

        Raises:
            MemoryFileError: a file is not allowed or cannot be read, or the patch does not fit it.
        """
        changes: dict[Path, bytes] = {}
        for file, target in zip(self.files, self.targets, strict=True):
            before = changes[target] if target in changes else _held(target)
            if before and _name(file.source_file) == NEW:
                raise MemoryFileError(f"{self.name} makes {target} new, and it is there by now. {STAYED}")
            changes[target] = self._patched(before or b"", file)
            check_size(target, changes[target])
        return changes

    def _target(self, file: Any) -> Path:
        """The file that a part is for: named alike in both headers, absolute, one of those allowed, and no link."""
        source, target = _name(file.source_file), _name(file.target_file)
        path = Path(target)
        plain = path.is_absolute() and os.path.normpath(target) == target == visible(target) and source in (target, NEW)
        if not plain or not self._may_change(path):
            what = f"delete {source!r}" if target == NEW else f"change {target!r}"
            raise MemoryFileError(f"{self.name} would {what}, no {self.kind} memory file. {STAYED}")
        if Path(os.path.realpath(path)) != Path(os.path.realpath(path.parent)) / path.name:
            raise MemoryFileError(f"{self.name} would change a link, {target!r}. {STAYED}")
        return path

    def _may_change(self, path: Path) -> bool:
        markdown = path.suffix.lower() == ".md" and not path.name.startswith(".")
        return path in self.allowed or (markdown and path.parent in self.allowed and path.parent.suffix == "")

    def _patched(self, before: bytes, file: Any) -> bytes:
        """`before` with every hunk in its place.

        Raises:
            MemoryFileError: a hunk does not fit.
        """
        lines = _LINES.findall(before.decode("utf-8", "surrogateescape"))
        end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
        result: list[str] = []
        at = 0
        for hunk in file:
            start = max(hunk.source_start - 1, 0)
            old = [line.value for line in hunk.source_lines()]
            if start < at or [_bare(line) for line in lines[start : start + len(old)]] != [_bare(line) for line in old]:
                raise MemoryFileError(f"{self.name} does not fit the file as it is now. {STAYED}")
            result += lines[at:start]
            at = start
            previous = None
            for line in hunk:
                if line.is_added:
                    result.append(_bare(line.value) + end)
                elif line.is_context:
                    result.append(lines[at])
                elif line.line_type == "\\" and previous is not None and previous.is_added:
                    result[-1] = _bare(result[-1])
                at += line.is_context or line.is_removed
                previous = line
        result += lines[at:]
        # A last line without an end, with more after it now, would run into the next one.
        whole = [line if line.endswith("\n") or n == len(result) else line + end for n, line in enumerate(result, 1)]
        return "".join(whole).encode("utf-8", "surrogateescape")


def _name(header: str) -> str:
    """The path in a header, without the prefix that git puts before it."""
    path = header.rstrip("\r")
    return path[2:] if path.startswith(("a//", "b//")) else path


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _held(path: Path) -> bytes | None:
    """The bytes of the file, None where there is none.

    Raises:
        MemoryFileError: it cannot be read.
    """
    data = read_bytes(path)
    if data is None and kind_of(path) is not None:
        raise MemoryFileError(f"{path} cannot be read; nothing was changed. Make it readable, then try again.")
    if is_utf16(data or b""):
        raise MemoryFileError(f"{path} is {UTF16}, then try again; nothing was changed.")
    return data
