"""Facts added to a memory file exactly: once, whole or not at all, and never over what another wrote meanwhile."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gemnb.errors import MemoryFileError, MomentaryFactError
from gemnb.store.files import NotRestoredError, all_or_none, locked
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of, private_folder

BOM = codecs.BOM_UTF8
UTF16 = "UTF-16, and memory is UTF-8: write it anew as UTF-8"
"""What is wrong with a file that another editor wrote."""
LARGEST = 2_000_000
"""Bytes of a memory file; a larger one is skipped and named."""
_MOMENTARY = (
    (r"\bline \d+\b|\b\w+\.\w+:\d+\b|第\s*\d+\s*行|\d+\s*行目", "it names a line number"),
    (
        r"\b(right now|currently|at the moment|today|tonight|yesterday|tomorrow|just now)\b"
        r"|(?<!from )(?<![\w.`-])now\b(?![(`_-])|现在|目前|今天|今日|いま|現在",
        "it speaks of now",
    ),
    (r"\b(is|are|keeps?) (still )?failing\b|\bfails (now|again)\b|まだ失敗|正在失[败敗]", "it tells a passing failure"),
    (
        r"(?:^|[\s\"'(`])/(?:private/)?(?:tmp|var/folders|var/tmp)/|\bTMPDIR\b|%TEMP%|\\Temp\\",
        "it names a temporary path",
    ),
    (r"\b(pid|process(?: id)?)\s*[:=]?\s*\d+", "it names a process"),
    (
        r"\b20\d\d[-/.]\d\d?[-/.]\d\d?\b|\b\d\d?[./]\d\d?[./]20\d\d\b|20\d\d\s*年\s*\d\d?\s*月\s*\d\d?\s*日"
        r"|\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d\d?(st|nd|rd|th)?,? 20\d\d\b"
        r"|\b\d\d?(st|nd|rd|th)?\.? (jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* 20\d\d\b",
        "it names a date",
    ),
)  # fmt: skip


def momentary(fact: str) -> str | None:
    """Why `fact` looks as if it would not stay true; None where it does not."""
    return next((why for pattern, why in _MOMENTARY if re.search(pattern, fact, re.IGNORECASE)), None)


def with_fact(held: bytes | None, line: str) -> bytes:
    """`held` with a list item for `line` at its end, in the file's own line ends; unchanged where it has it."""
    data = held or b""
    item = f"- {line}".encode("utf-8", "replace")
    end = b"\r\n" if b"\r\n" in data else b"\n"
    if item in (existing.strip() for existing in data.removeprefix(BOM).split(b"\n")):
        return data
    gap = b"" if not data.removeprefix(BOM) or data.endswith(b"\n") else end
    return data + gap + item + end


def add_fact(path: Path, fact: str, *, seen: bytes | None, within: Sequence[Path], force: bool) -> bytes:
    """Add `fact` to the file `path`; the bytes that it holds then.

    Args:
        path: a link to a file stays a link.
        fact: one line.
        seen: the bytes of the file when it was looked at, None where there was none.
        within: where a link may lead to; anywhere where it is empty.
        force: take it though it looks momentary.

    Raises:
        MomentaryFactError: it looks as if it would not stay true.
        MemoryFileError: it cannot be added; nothing was changed.
    """
    if not force and (why := momentary(fact)):
        raise MomentaryFactError(f"{fact!r} looks momentary: {why}. It belongs to the session; --force keeps it here.")
    real = Path(os.path.realpath(path))
    if leads_out(path, within):
        raise MemoryFileError(
            f"{path} is a link out of the project, to {real}, so nothing was added: put a file in its place, or add the"
            " fact with `--scope private` or `--scope global`."
        )
    with changing([real.parent], path):
        held = read_bytes(real)
        if held != seen:
            raise MemoryFileError(
                f"{path} was changed since it was read: look at it with `%memory reload`, then add again."
            )
        if held is None and kind_of(real) is not None:  # it would be replaced by the fact alone
            what = "cannot be read" if kind_of(real) == "file" else "is no file"
            raise MemoryFileError(f"{path} {what}, so nothing was added: put a readable file there, then add again.")
        if is_utf16(held or b""):
            raise MemoryFileError(f"{path} is {UTF16}, then add again; nothing was added.")
        changed = with_fact(held, fact)
        check_size(path, changed)
        if changed != held:
            with all_or_none({real: changed}):
                pass
    return changed


def check_size(path: Path, data: bytes) -> None:
    """Refuse what would be written and never read.

    Raises:
        MemoryFileError: `data` is too much for a memory file.
    """
    if len(data) > LARGEST:
        raise MemoryFileError(
            f"{path} would hold more than {LARGEST:,} bytes, and a larger file is given to no talk: nothing was"
            " changed; shorten it first."
        )


def leads_out(path: Path, within: Sequence[Path]) -> bool:
    """Whether `path` is really a place outside all of `within`."""
    real = Path(os.path.realpath(path))
    return bool(within) and not any(real.is_relative_to(os.path.realpath(place)) for place in within)


@contextmanager
def changing(folders: Sequence[Path], path: Path) -> Iterator[None]:
    """Alone among kernels in `folders`, which are made where missing; what a disk refuses is told of `path`.

    Raises:
        MemoryFileError: something could not be read or written.
    """
    try:
        for folder in folders:
            private_folder(folder)
        with locked(folders):
            yield
    except NotRestoredError as error:
        raise MemoryFileError(f"{error}: put it back by hand.") from None
    except OSError as error:
        told = f" ({error.filename})" if error.filename and str(error.filename) != str(path) else ""
        raise MemoryFileError(
            f"{path} could not be written: {error.strerror or error}{told}; nothing was changed."
            " Make it writable, then try again."
        ) from None


def is_utf16(data: bytes) -> bool:
    """Whether a file says that it is UTF-16."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def read_bytes(path: Path) -> bytes | None:
    """What the file holds, cut where it is longer than any memory file; None where none can be read."""
    try:
        with open_regular(path) as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None
