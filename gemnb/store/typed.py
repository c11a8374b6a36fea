"""Lines to records with fewer fields than the file has: what no reader asks for is skipped, not decoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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
    time_only = None
    for number, line in enumerate(lines, start=1):
        try:
            if line.startswith(MESSAGE):
                record = message(line)
            elif _TIME_ONLY(line):
                time_only = line
                offset += len(line)
                continue
            else:
                if time_only:
                    yield other(time_only)
                    time_only = None
                record = other(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if time_only:  # there may be another time on the line
                yield other(time_only)
                time_only = None
            if not line.isspace():
                for value in parse_line(line, number=number, offset=offset, salvage=salvage):
                    yield value if isinstance(value, Damage) else whole(codec.line_of(value))
        else:
            yield record
        offset += len(line)
    if time_only:
        yield other(time_only)
