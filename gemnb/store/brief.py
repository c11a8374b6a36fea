"""Records decoded for a listing: the fields that it asks for and no more, in half the time. The fold is the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gemnb.model.records import Damage
from gemnb.store import codec
from gemnb.store.journal import parse_line

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
    offset = 0
    for number, line in enumerate(lines, start=1):
        try:
            record = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not line.isspace():
                for value in parse_line(line, number=number, offset=offset, salvage=salvage):
                    yield value if isinstance(value, Damage) else codec.line_of(value)
        else:
            if record.id is not None:
                _settle(record)
            else:
                for message in (record.update or record).messages or ():
                    if message.id is not None:
                        _settle(message)
            yield record
        offset += len(line)


def _settle(message: Any) -> None:
    """Turn what is still bytes in `message` into what it comes to, so that the line can go."""
    if message.type == "user":
        message.content = _decoded(message.content)
        message.display_content = _decoded(message.display_content)
    else:
        # a listing asks of an answer only whether it holds anything
        message.content = "…" if len(message.content) > LONG else _decoded(message.content)
        message.display_content = None
    message.thoughts = _is_some(message.thoughts) if len(message.thoughts) else ()
    message.tool_calls = _is_some(message.tool_calls) if len(message.tool_calls) else ()


def _is_some(raw: Raw) -> tuple[bool, ...]:
    """A list's stand-in: as empty, or not, as it is."""
    start = bytes(memoryview(raw)[:3])
    return (True,) if start.startswith(b"[") and start not in EMPTY else ()


def _decoded(raw: Raw) -> Any:
    data = bytes(raw)
    return None if data in EMPTY else msgspec.json.decode(data)
