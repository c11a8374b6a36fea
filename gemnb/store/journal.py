"""Bytes of a session file to JSON objects, line by line; what cannot be read is told as `Damage`, never raised."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader, FileIO
from pathlib import Path

import msgspec

from gemnb.model.records import Damage, JsonObject

BUFFER_BYTES = 256 * 1024
"""Lines are iterated three times as fast with this buffer as with the default one."""
LONGEST_LINE = 512 * 1024 * 1024
"""A longer line is damage, and is not held: it is more than the client can read, and memory ends."""
BOM = b"\xef\xbb\xbf"

_DECODER = msgspec.json.Decoder()
_RECORD_START = re.compile(r'\{\s*"(?:id|\$set|\$rewindTo|sessionId)"\s*:')
_NUL_RUN = re.compile(rb"\x00+")


class UnreadableFileError(OSError):
    """A path in the place of a file that is no regular file (a link, a pipe, a device)."""


def open_regular(path: Path) -> BufferedReader:
    """Open the regular file at `path` for reading, never through a link, never waiting for a pipe.

    Raises:
        OSError: it cannot be opened, or is something else than a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableFileError(f"{path} is no regular file")
    return BufferedReader(FileIO(descriptor), BUFFER_BYTES)


class LongLine(bytes):
    """Stands in for a line that is too long: all that is known of it is how long it is, and that it is no record."""

    length: int

    def __new__(cls, length: int) -> LongLine:
        """The line of `length` bytes."""
        made = super().__new__(cls, b"?")
        made.length = length
        return made

    def __len__(self) -> int:
        return self.length


def lines_of(file: BufferedReader) -> Iterable[bytes]:
    """The lines of `file`, one in memory at a time."""
    if os.fstat(file.fileno()).st_size <= LONGEST_LINE:
        return file
    return _bounded(file)  # three times as slow as the file itself


def _bounded(file: BufferedReader) -> Iterator[bytes]:
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE:
            yield line
            continue
        length, ended = len(line), line.endswith(b"\n")
        del line
        while not ended and (more := file.readline(BUFFER_BYTES)):
            length, ended = length + len(more), more.endswith(b"\n")
        yield LongLine(length)


def numbered_lines(file: Iterable[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Line number (from 1), byte offset and bytes of each line that is not blank."""
    offset = 0
    for number, line in enumerate(file, start=1):
        if not line.isspace():
            yield number, offset, line
        offset += len(line)


def parse_lines(lines: Iterable[bytes], *, salvage: bool = True) -> Iterator[JsonObject | Damage]:
    """Yield the objects of `lines` and a `Damage` for each that is none.

    Bytes, not text: `str.splitlines` would also break at a U+2028 inside a prompt. With `salvage` whole
    records on a damaged line (after NUL bytes, or glued to a torn one) are found; without, a line that
    does not parse is lost, as it is for the client.
    """
    for number, offset, line in numbered_lines(lines):
        yield from parse_line(line, number=number, offset=offset, salvage=salvage)


def parse_line(line: bytes, *, number: int = 1, offset: int = 0, salvage: bool = True) -> Iterator[JsonObject | Damage]:
    """Yield the object of one line; or a `Damage`, then what can be saved of it."""
    if salvage and number == 1 and line.startswith(BOM):
        line = line[len(BOM) :]
    if len(line) > LONGEST_LINE:
        yield Damage(number, offset, f"longer than {LONGEST_LINE} bytes")
        return
    try:
        value = parse_json(line)
    except ValueError as error:
        yield Damage(number, offset, _reason(line, error))
        if salvage:
            yield from salvaged(line)
        return
    if isinstance(value, dict):
        yield value
    else:
        yield Damage(number, offset, "not an object")


def parse_json(line: bytes) -> object:
    """One JSON value, with the leniency of JavaScript's parser.

    Half surrogates, bytes that are no UTF-8 and numbers of any length are taken as the client takes them; NaN is not.

    Raises:
        ValueError: not JSON, or nested too deep.
    """
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return parse_lenient(line.decode("utf-8", "replace"))


def parse_lenient(text: str) -> object:
    """See `parse_json`; slower."""
    try:
        return _LENIENT.decode(text.strip(" \t\r\n"))
    except RecursionError:
        raise ValueError("nested too deep") from None


def salvaged(line: bytes) -> Iterator[JsonObject]:
    """Whole records on a line that does not parse: between NUL bytes, or glued to others or to a torn one."""
    for piece in _NUL_RUN.split(line):
        if piece.strip():
            yield from _glued(piece.decode("utf-8", "replace").rstrip())


def _glued(text: str) -> Iterator[JsonObject]:
    found: list[JsonObject] = []
    at = 0
    for start in _RECORD_START.finditer(text):
        if start.start() < at or text[: start.start()].rstrip()[-1:] in ("[", ",", ":"):
            continue  # a record begins anew, it is no value inside another
        try:
            value, end = _LENIENT.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if end == len(text) or _RECORD_START.match(text, end):
            found.append(value)
            at = end
    yield from found


def parse_whole(data: bytes) -> JsonObject | None:
    """The one object that a file of the older form is, or None."""
    try:
        value = parse_json(data.removeprefix(BOM))
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def to_line(record: JsonObject) -> bytes:
    """`record` as one line of ASCII: no reader takes a U+2028 inside for a line end, half surrogates stay escapes."""
    return json.dumps(record, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _reason(line: bytes, error: ValueError) -> str:
    if b"\x00" in line:
        return "NUL bytes"
    if not line.endswith(b"\n"):
        return f"torn: the file ends inside a record ({error})"
    return f"not JSON ({error})"


def _number(text: str) -> float | int | None:
    """A number as JavaScript would write it back: too large for it is null."""
    if len(text) < 300 and text.lstrip("-").isdigit():
        return int(text)
    value = float(text)
    return value if abs(value) != float("inf") else None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_LENIENT = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_no_constant)
