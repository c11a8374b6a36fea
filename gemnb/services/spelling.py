"""Whether the bytes of a file may hold a text, however JSON spells it, in whatever case; a no is never in error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from io import BufferedReader
from itertools import groupby
from pathlib import Path

from gemnb.store.journal import open_regular

BLOCK_BYTES = 1024 * 1024
"""Of a file in memory at a time."""
ESCAPE_BYTES = 6
"""Of one escape; no letter has as many."""

_CONTROLS = (b"\\u001", b"\\u000")
"""How the escapes begin that JSON cannot do without, those of terminal colours first: mostly there are no others."""


class Word:
    """A text to look for in files: its longest part that stands there letter for letter, but for case and escapes.

    Letters that are one where case does not count differ in a few bytes, and all bytes in which those of the part
    differ are made one: in what is looked for and in what is read. So one plain search finds the part in any case.
    """

    def __init__(self, text: str) -> None:
        part = max(_parts(text), key=lambda part: len(part.encode()), default="")
        ways = {char: _ways(char) for char in set(part)}
        self._as_one = _made_one([same for same, _ in ways.values()])
        self._part = b"".join(ways[char][0][0] for char in part).translate(self._as_one)
        self._others = sorted({form.translate(self._as_one) for _, others in ways.values() for form in others})
        self._escape = _escape_of([form for same, others in ways.values() for form in (*same, *others)])
        self._overlap = max(ESCAPE_BYTES, len(self._part)) - 1
        self._memory = bytearray(BLOCK_BYTES + self._overlap)

    def may_stand_in(self, path: Path) -> bool:
        """Whether reading the file may find it; False for a file that cannot be read."""
        try:
            with open_regular(path) as file:
                return not self._part or any(map(self._may_stand, self._blocks(file)))
        except OSError:
            return False

    def _blocks(self, file: BufferedReader) -> Iterator[memoryview]:
        """The file in pieces, each with the end of the one before it: what is looked for stands whole in one."""
        memory, kept = memoryview(self._memory), 0
        while count := file.raw.readinto(memory[kept : kept + BLOCK_BYTES]):
            end = kept + count
            yield memory[:end]
            kept = min(end, self._overlap)
            memory[:kept] = memory[end - kept : end]

    def _may_stand(self, block: memoryview) -> bool:
        import stringzilla as sz  # counts ten times as fast as the standard library

        sz.translate(block, self._as_one, inplace=True)
        if any(sz.find(block, form) >= 0 for form in (self._part, *self._others)):
            return True
        needless = sz.count(block, b"\\u")
        for control in _CONTROLS:
            needless = needless and needless - sz.count(block, control)
        return bool(needless and self._escape.search(block))


def _parts(text: str) -> Iterator[str]:
    """The parts of `text` that have no character with a short escape, none that is escaped always, no half of one."""
    for odd, part in groupby(text, lambda char: char in '"\\/\ufffd' or char < " " or "\ud800" <= char <= "\udfff"):
        if not odd:
            yield "".join(part)


def _ways(char: str) -> tuple[list[bytes], list[bytes]]:
    """What is one with `char` where case does not count: that of the fewest bytes, and what has more of them."""
    forms = {char, *re.findall(re.escape(char), _cased(), re.IGNORECASE)}
    told = sorted((form.encode() for form in forms), key=lambda form: (len(form), form))
    fewest = sum(len(form) == len(told[0]) for form in told)
    return told[:fewest], told[fewest:]


@cache
def _cased() -> str:
    """Every letter that has a case."""
    return "".join(char for char in map(chr, range(0x1F000)) if char.lower() != char or char.upper() != char)


def _made_one(letters: list[list[bytes]]) -> bytes:
    """A table for `bytes.translate`; of bytes that become one the largest stays, so an escape stays as it is."""
    table = list(range(256))
    for forms in letters:
        for column in zip(*forms, strict=True):
            met = {table[byte] for byte in column}
            table = [max(met) if byte in met else byte for byte in table]
    return bytes(table)


def _escape_of(forms: list[bytes]) -> re.Pattern[bytes]:
    """One of these letters as an escape, or the first half of it."""
    codes = sorted({form.decode().encode("utf-16-be")[:2].hex() for form in forms})
    either = re.sub("[a-f]", lambda digit: f"[{digit[0]}{digit[0].upper()}]", "|".join(codes))
    return re.compile(rf"\\u(?:{either})".encode())  # ignoring case it would be five times as slow
