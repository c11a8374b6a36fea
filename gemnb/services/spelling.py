"""Whether the bytes of a file may hold a text, however JSON spells it, in whatever case; a no is never in error."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from io import BufferedReader
from pathlib import Path

from gemnb.store.journal import LONGEST_LINE, open_regular
from gemnb.store.rows import is_settled, stamp_of

BLOCK_BYTES = 4 * 1024 * 1024
"""Of a file in memory at a time, to the next end of a line."""
PLAIN, ASCII, LETTERS = 0, 1, 2
"""What a file has beside letters as they are: escapes or partners of ASCII letters, escapes of letters beyond."""

_ESCAPE = re.compile(rb"\\u(?!00[01])")
_ASCII_ESCAPE = re.compile(rb"\\u(?:00[2-7]|017[fF]|212[aA]|013[01])")
_PARTNERS_OF_ASCII = ((b"\xc5", "\u017f"), (b"\xaa", "\u212a"), (b"\xc4", "\u0130"), (b"\xc4", "\u0131"))
"""Letters beyond ASCII that are one with s, k and i where case does not count, each with the rarest of its bytes."""


class Spellings:
    """What is known of how files spell their letters; a second search looks at the word alone."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[object, int]] = {}

    def of(self, path: Path, status: os.stat_result) -> int | None:
        """What the file has, where it is still the one that was looked through."""
        stamp, found = self._known.get(path, (None, PLAIN))
        return found if stamp == stamp_of(status) else None

    def keep(self, path: Path, status: os.stat_result, found: int) -> None:
        """Remember it, unless the file may change again without a new time."""
        if is_settled(status):
            self._known[path] = stamp_of(status), found


class Word:
    """A text to look for in files."""

    def __init__(self, text: str) -> None:
        self._ascii = any(char.isascii() for char in text)
        odd = any(char < " " or char == "\ufffd" or "\ud800" <= char <= "\udfff" for char in text)
        self._raw = None if odd else _raw_pattern(text)
        self._escaped = None if odd else _escape_pattern(text)

    def may_stand_in(self, path: Path, known: Spellings) -> bool:
        """Whether reading the file may find it; False for a file that cannot be read.

        A letter that is escaped though it need not be, in the file, and one of those that are only equal where case
        does not count, are left to the reader.
        """
        try:
            with open_regular(path) as file:
                return self._raw is None or self._stands(file, path, known)
        except OSError:
            return False

    def _stands(self, file: BufferedReader, path: Path, known: Spellings) -> bool:
        assert self._raw is not None  # its caller looks
        status = os.fstat(file.fileno())
        told = known.of(path, status)
        found = PLAIN
        for block in _blocks(file, status.st_size):
            if self._raw.search(block):
                return True
            here = _has(block) if told is None else told
            if (here & ASCII and self._ascii) or (here & LETTERS and self._escaped and self._escaped.search(block)):
                return True
            found |= here
        if told is None:
            known.keep(path, status, found)
        return False


def _blocks(file: BufferedReader, size: int) -> Iterator[bytes]:
    length = min(size + 1, BLOCK_BYTES)  # memory that a small file does not fill would cost more than it does
    while block := file.read(length):
        yield block if block.endswith(b"\n") else block + file.readline(LONGEST_LINE)


def _has(block: bytes) -> int:
    found = PLAIN
    if _ESCAPE.search(block):
        found |= LETTERS | (ASCII if _ASCII_ESCAPE.search(block) else PLAIN)
    # one byte is found ten times as fast as three
    if any(rare in block and letter.encode() in block for rare, letter in _PARTNERS_OF_ASCII):
        found |= ASCII
    return found


def _raw_pattern(text: str) -> re.Pattern[bytes]:
    import regex  # finds a word of any case as fast as the standard library finds one of a known case

    found: re.Pattern[bytes] = regex.compile(b"(?i)" + b"".join(map(_raw, text)))
    return found


def _raw(char: str) -> bytes:
    """What `char` looks like in a JSON string where it is not escaped without need."""
    if char in '"\\':
        return rb"\\" + re.escape(char.encode())
    if char == "/":
        return rb"\\?/"
    forms = sorted(form.encode() for form in _forms(char))
    return re.escape(forms[0]) if len(forms) == 1 else b"(?:" + b"|".join(map(re.escape, forms)) + b")"


def _escape_pattern(text: str) -> re.Pattern[bytes] | None:
    """Any letter of `text` beyond ASCII as an escape; None where it has none."""
    forms = {form for char in text if not char.isascii() for form in _forms(char)}
    codes = sorted({form.encode("utf-16-be")[:2].hex().encode() for form in forms})
    return re.compile(rb"(?i)\\u(?:" + b"|".join(codes) + b")") if codes else None


def _forms(char: str) -> set[str]:
    """`char` and what it may be where case does not count; for ASCII the patterns see to that."""
    if char.isascii() or char.lower() == char == char.upper():
        return {char}
    return _cases()[char]


@cache
def _cases() -> dict[str, set[str]]:
    """Each letter that has a case to all that share a lower or an upper case with it."""
    groups: dict[str, set[str]] = defaultdict(set)
    for char in map(chr, range(0x1F000)):
        upper, lower = char.upper(), char.lower()
        if upper != char or lower != char:
            joined = {char}.union(*(groups[name] for name in (char, upper, lower, lower[0])))
            for name in {*joined, upper, lower, lower[0]}:
                groups[name] = joined
    return groups
