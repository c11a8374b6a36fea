"""Lines to records with fewer fields than the file has: what no reader asks for is skipped, not decoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gemnb.model.records import Damage
from gemnb.store import codec
from gemnb.store.journal import parse_line

MESSAGE = b'{"id":"'
"""How the line of a message begins that any recorder wrote; one that begins otherwise is found just as well."""
_TIME_ONLY = re.compile(rb'\{"\$set":\{"lastUpdated":"[0-9TZ:.+-]*"\}\}\n').fullmatch
"""A record that tells the time of the last change and nothing else: a third of all, and only the last one counts."""


def typed_records(
    lines: Iterable[bytes],
    *,
    message: Callable[[bytes], Any],
    other: Callable[[bytes], Any],
    whole: Callable[[codec.Line], Any],
    salvage: bool,
) -> Iterator[Any]:
    """The records of `lines`, and a `Damage` for what is none.

    Args:
        lines: of a session file.
        message: decodes the line of a message.
        other: decodes any line.
        whole: an odd line is decoded whole, as any reader does; makes of that what the others would have.
        salvage: see `parse_lines`.
    """
    offset = 0
    held = b""
    for number, line in enumerate(lines, start=1):
        plain = line.startswith(MESSAGE)
        if not plain and _TIME_ONLY(line):
            held = line
            offset += len(line)
            continue
        told: Iterable[Any]
        try:
            told = (message(line) if plain else other(line),)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            told = _odd(line, number, offset, whole=whole, salvage=salvage)
            plain = False
        if held and not plain:  # there may be another time on this line
            yield other(held)
            held = b""
        yield from told
        offset += len(line)
    if held:
        yield other(held)


def _odd(line: bytes, number: int, offset: int, *, whole: Callable[[codec.Line], Any], salvage: bool) -> Iterator[Any]:
    if not line.isspace():
        for value in parse_line(line, number=number, offset=offset, salvage=salvage):
            yield value if isinstance(value, Damage) else whole(codec.line_of(value))


def messages_in(record: Any) -> Sequence[Any]:
    """The messages that `record` tells: itself, or those of an update or a header."""
    return (record,) if record.id is not None else (record.update or record).messages or ()
