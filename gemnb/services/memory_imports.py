"""`@path` imports in memory files: nested, cut on cycles, never in code, never out of the root (FORMAT.md 7)."""

from __future__ import annotations

import errno
import os
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from gemnb.services.memory_edit import UTF16, is_utf16
from gemnb.store.journal import open_regular

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

DEEPEST = 5
MOST_IMPORTS = 400
MOST_BYTES = 4_000_000
"""Of all imports of one file together: a few lines that import one another must not fill the memory."""
_IMPORT = re.compile(r"(?:(?<=[ \t\r\n])|\A)@([./A-Za-z][^ \t\r\n]*)")
_URL = re.compile(r"(?:https?|file)://")
_NEWLINE = re.compile(r"\r\n?|\n")
_CODE, _PROSE = ("fence", "code_block"), ("inline", "html_block")
_TICKS = re.compile(r"`+")
_TRAILING = ".,;:!?)]}'\""


@dataclass(slots=True)
class Imported:
    """A file that was imported, and what it imports."""

    path: Path
    imports: list[Imported] = field(default_factory=list)


@dataclass(slots=True)
class Resolver:
    """Resolves the imports of one memory file.

    Args:
        root: nothing outside it is read.
        flat: see `resolve`.
    """

    root: Path
    flat: bool = False
    failures: list[str] = field(default_factory=list)
    """What could not be imported, in sentences."""
    _tried: int = 0
    _bytes: int = 0
    _full: bool = False
    """Whether it was too much; the imports that are left stand as they were written then."""

    def resolve(self, text: str, file: Path) -> tuple[str, list[Imported]]:
        """`text` of `file` with its imports in their place, each between two markers; and the tree of them.

        A file that imports itself is there once more, as the client has it.

        Where `flat` is set, the files stand one after another instead, each once, as the client puts them.
        """
        if self.flat:
            return self._one_after_another(text, file), []
        return self._resolve(text, file.parent, ())

    def _resolve(self, text: str, folder: Path, chain: tuple[Path, ...]) -> tuple[str, list[Imported]]:
        found: list[Imported] = []
        if len(chain) >= DEEPEST:
            return text, found
        pieces: list[str] = []
        at = 0
        for start, name in self._names(text, folder):
            if self._full:
                break
            pieces += [text[at:start], self._import(name, folder, chain, found)]
            at = start + 1 + len(name)
        return "".join([*pieces, text[at:]]), found

    def _names(self, text: str, folder: Path) -> Iterator[tuple[int, str]]:
        """Where each import stands, and its path."""
        found = list(_IMPORT.finditer(text))
        hidden = sorted(code_spans(text)) if found else []
        for match in found:
            before = bisect_right(hidden, match.start(), key=itemgetter(0)) - 1
            if before < 0 or match.start() >= hidden[before][1]:
                yield match.start(), self._name(match[1], folder)

    def _name(self, name: str, folder: Path) -> str:
        """The path as it was meant: without the punctuation of the sentence around it, where only so it is a file."""
        shorter = name.rstrip(_TRAILING)
        if shorter and shorter != name and not os.path.lexists(folder / name) and os.path.lexists(folder / shorter):
            return shorter
        return name

    def _import(self, name: str, folder: Path, chain: tuple[Path, ...], found: list[Imported]) -> str:
        shown = _shown(name)
        try:
            path, real = self._path(name, folder)
            if real in chain:
                return f"<!-- File already processed: {shown} -->"
            text = self._read(path, real)
        except _FailedError as error:
            self.failures.append(f"@{shown} is not imported: {error.why}")
            return f"<!-- Import failed: {shown} - {error} -->"
        node = Imported(path)
        found.append(node)
        text, node.imports = self._resolve(text, path.parent, (*chain, real))
        return f"<!-- Imported from: {shown} -->\n{text}\n<!-- End of import from: {shown} -->"

    def _one_after_another(self, text: str, file: Path) -> str:
        """The first file goes by the name of its folder; of a file's imports the last comes first."""
        texts: dict[Path, str] = {}
        waiting: list[tuple[Path, str, Path]] = [(file.parent, text, file.parent)]
        while waiting:
            path, told, folder = waiting.pop()
            if path in texts:
                continue
            texts[path] = told
            for _, name in self._names(told, folder):
                if self._full:
                    break
                try:
                    inner, real = self._path(name, folder)
                    if inner not in texts:
                        waiting.append((inner, self._read(inner, real), inner.parent))
                except _FailedError as error:
                    self.failures.append(f"@{_shown(name)} is not imported: {error.why}")
        return "\n\n".join(
            f"--- File: {path} ---\n{told.strip()}\n--- End of File: {path} ---" for path, told in texts.items()
        )

    def _path(self, name: str, folder: Path) -> tuple[Path, Path]:
        """Where an import leads, and where that really is."""
        self._tried += 1
        if self._tried > MOST_IMPORTS:
            raise self._too_much()
        if "\0" in name:
            raise _FailedError("no file has such a name")
        if _URL.match(name):
            raise _FailedError("Path traversal attempt", "nothing is fetched from an address")
        path = Path(os.path.normpath(folder / name))
        real = Path(os.path.realpath(path))
        if not (_inside(path, self.root) and _inside(real, Path(os.path.realpath(self.root)))):
            raise _FailedError("Path traversal attempt", f"it lies out of {self.root}")
        return path, real

    def _read(self, path: Path, real: Path) -> str:
        try:
            with open_regular(real) as file:
                data = file.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            missing = isinstance(error, FileNotFoundError)
            raise _FailedError(_words(error, path), f"there is no {path}" if missing else "") from None
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            raise self._too_much()
        if is_utf16(data):
            raise _FailedError(f"it is {UTF16}")
        return data.decode("utf-8-sig", "replace")

    def _too_much(self) -> _FailedError:
        self._full = True
        most = f"{MOST_IMPORTS} imports or {MOST_BYTES:,} bytes"
        return _FailedError(
            "too much is imported", f"a file has {most} at most; this one and those after it are left out"
        )


class _FailedError(Exception):
    """Why something is not imported: as the client tells the model, and as a person is told."""

    def __init__(self, marker: str, why: str = "") -> None:
        super().__init__(marker)
        self.why = why or marker


def _shown(name: str) -> str:
    return name.replace("--", "- -").replace("\0", "\ufffd")


def _words(error: OSError | ValueError, path: Path) -> str:
    """What went wrong, as the client tells it."""
    number = getattr(error, "errno", None)
    if number is None:
        return "EISDIR: illegal operation on a directory, read" if path.is_dir() else "it is no regular file"
    words = "name too long" if number == errno.ENAMETOOLONG else os.strerror(number).lower()
    return f"{errno.errorcode.get(number, 'EIO')}: {words}, access '{path}'"


def _inside(path: Path, root: Path) -> bool:
    return path == root or root in path.parents


def code_spans(text: str) -> list[tuple[int, int]]:
    """Where code stands in Markdown: fences of both kinds, an unclosed one to the end; indented; inline.

    A parser tells the lines of each block; where in a line inline code begins it does not tell.
    """
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text)), len(text)]
    spans: list[tuple[int, int]] = []
    for token in _blocks().parse(text):
        if token.map is None or token.type not in (*_CODE, *_PROSE):
            continue
        begin, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        spans += [(begin, end)] if token.type in _CODE else _inline(text, begin, end)
    return spans


@cache
def _blocks() -> MarkdownIt:
    """Knows blocks alone: what stands in them is not parsed."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable("inline")


def _inline(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Spans between runs of as many backticks, within one paragraph."""
    runs = [match.span() for match in _TICKS.finditer(text, begin, end)]
    alike: dict[int, list[int]] = {}
    for number, (opens, closes) in enumerate(runs):
        alike.setdefault(closes - opens, []).append(number)
    spans = []
    at = 0
    while at < len(runs):
        opens, closes = runs[at]
        same = alike[closes - opens]
        after = bisect_right(same, at)
        if after < len(same):
            at = same[after]
            spans.append((opens, runs[at][1]))
        at += 1
    return spans
