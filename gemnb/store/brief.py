"""Records decoded for a listing: the fields that it asks for and no more, in half the time. The fold is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gemnb.model.records import Damage
from gemnb.store import codec
from gemnb.store.journal import numbered_lines, parse_line

LONG = 200
"""Bytes; a longer content of the model's holds something, whatever it is."""
EMPTY = (b"", b"null", b"[]", b'""')


class Brief(msgspec.Struct, rename=codec.ON_DISK):
    """A record with what a listing needs; stands in for `codec.Line` in the fold."""

    rewind_to: str | None = None
    id: str | None = None
    update: Brief | None = None
    session_id: str | UnsetType = UNSET
    project_hash: str | UnsetType = UNSET
    type: str | None = None
    timestamp: str | None = None
    content: Raw = Raw(b"")
    display_content: Raw = Raw(b"")
    thoughts: Raw = Raw(b"")
    tool_calls: Raw = Raw(b"")
    start_time: str | UnsetType = UNSET
    last_updated: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    summary: str | UnsetType | None = UNSET
    messages: list[Brief] | None = None

    tokens: ClassVar[None] = None
    model: ClassVar[None] = None
    raw: ClassVar[None] = None


def brief_records(lines: Iterable[bytes], *, salvage: bool) -> Iterator[Any]:
    """The records of `lines`, and a `Damage` for what is none; an odd line is decoded whole, as any reader does."""
    decode = msgspec.json.Decoder(Brief).decode
    for number, offset, line in numbered_lines(lines):
        try:
            record = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            for value in parse_line(line, number=number, offset=offset, salvage=salvage):
                yield value if isinstance(value, Damage) else codec.line_of(value)
        else:
            _settle(record)
            yield record


def _settle(record: Any) -> None:
    """Turn what is still bytes into what it comes to, so that the line can go."""
    if record.id is None:
        record.content = record.display_content = record.thoughts = record.tool_calls = None
        if record.update is not None:
            _settle(record.update)
        for message in record.messages or ():
            _settle(message)
        return
    if record.type == "user":
        record.content = _decoded(record.content)
        record.display_content = _decoded(record.display_content)
    else:
        # a listing asks of an answer only whether it holds anything
        record.content = "…" if len(record.content) > LONG else _decoded(record.content)
        record.display_content = None
    record.thoughts = _is_some(record.thoughts)
    record.tool_calls = _is_some(record.tool_calls)


def _is_some(raw: Raw) -> tuple[bool, ...]:
    """A list's stand-in: as empty, or not, as it is."""
    start = bytes(memoryview(raw)[:3])
    return (True,) if start.startswith(b"[") and start not in EMPTY else ()


def _decoded(raw: Raw) -> Any:
    data = bytes(raw)
    return None if data in EMPTY else msgspec.json.decode(data)
