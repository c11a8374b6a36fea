"""Records decoded for a listing: the fields that it asks for and no more, in half the time. The fold is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gemnb.store import codec
from gemnb.store.typed import messages_in, typed_records

LONG = 200
"""Bytes; a longer content of the model's holds something, whatever it is."""
SOMETHING = "…"
NOTHING = Raw(b"")


class Item(msgspec.Struct, gc=False):
    """An element of a list that is empty or is not."""


GEMINI = "gemini"
SOME = [Item()]
"""In the place of any list that is not empty."""


class Text(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part that is text and nothing else."""

    text: str


class BriefMessage(msgspec.Struct, rename=codec.ON_DISK, gc=False):
    """A message with what a listing needs; stands in for `codec.Line` in the fold."""

    id: str
    rewind_to: str | None = None
    type: str | None = None
    timestamp: str | None = None
    content: Raw = NOTHING
    display_content: Raw = NOTHING
    thoughts: list[Item] | None = None
    tool_calls: list[Item] | None = None

    tokens: ClassVar[None] = None
    model: ClassVar[None] = None
    raw: ClassVar[None] = None


class Brief(msgspec.Struct, rename=codec.ON_DISK, gc=False):
    """Any record with what a listing needs; stands in for `codec.Line` in the fold."""

    rewind_to: str | None = None
    id: str | None = None
    update: Brief | None = None
    session_id: str | UnsetType = UNSET
    project_hash: str | UnsetType = UNSET
    type: str | None = None
    timestamp: str | None = None
    content: Raw = NOTHING
    display_content: Raw = NOTHING
    thoughts: list[Item] | None = None
    tool_calls: list[Item] | None = None
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
    decode = msgspec.json.Decoder(BriefMessage).decode
    decode_other = msgspec.json.Decoder(Brief).decode

    def message(line: bytes) -> BriefMessage:
        record = decode(line)
        if record.type != GEMINI:
            _settle(record)
            return record
        # of a long talk, texts and lists that say the same take a fifth of the memory unless they are one
        record.type = GEMINI
        if len(record.content) > LONG:
            record.content = SOMETHING  # type: ignore[assignment]
            record.display_content = None  # type: ignore[assignment]
        else:
            _settle(record)
        if record.thoughts:
            record.thoughts = SOME
        if record.tool_calls:
            record.tool_calls = SOME
        return record

    def other(line: bytes) -> Brief:
        record = decode_other(line)
        for told in messages_in(record):
            _settle(told)
        return record

    return typed_records(lines, message=message, other=other, whole=_shortened, salvage=salvage)


def _shortened(line: codec.Line) -> codec.Line:
    """`line` without what a listing does not ask for, as a `Brief` is: the fold gives the one what the other had."""
    line.tokens = line.model = line.raw = None
    for inner in [*(line.messages or ()), *([line.update] if line.update else ())]:
        _shortened(inner)
    return line


def _settle(message: Any) -> None:
    """Turn what is still bytes in `message` into what it comes to, so that the line can go."""
    if message.type == "user":
        message.content = _said(message.content)
        message.display_content = _said(message.display_content)
    else:
        # a listing asks of an answer only whether it holds anything
        message.content = SOMETHING if len(message.content) > LONG else _held(message.content)
        message.display_content = None


def _said(raw: Raw) -> Any:
    """A person's content: its text where it is nothing but that, which is looked at more than once."""
    if len(raw) <= len(b'""'):
        return None
    try:
        return "".join([part.text for part in _TEXTS(raw)])
    except msgspec.ValidationError:
        return msgspec.json.decode(raw)


def _held(raw: Raw) -> Any:
    """An answer's content, where it is no text; of a text only whether it holds something."""
    said = None if len(raw) <= len(b'""') else msgspec.json.decode(raw)
    return (SOMETHING if said.strip() else None) if isinstance(said, str) else said


_TEXTS: Callable[[Raw], list[Text]] = msgspec.json.Decoder(list[Text]).decode
