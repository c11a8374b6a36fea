"""Records decoded for tables: the text, the tokens and the measures of the calls; no arguments, no results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from gemnb.model.ledger import ABSENT
from gemnb.model.measures import Made, measured
from gemnb.model.records import LARGEST_COUNT, JsonObject, MessageContent, parts_of, text_of
from gemnb.model.talk import has_other_part
from gemnb.store import codec
from gemnb.store.typed import messages_in, typed_records

C = TypeVar("C")
Kind = Literal["user", "gemini", "info", "error", "warning"]
"""As every client writes it; a record of another is decoded whole. What is told so often is one text in memory."""
Status = Literal["success", "error", "cancelled"]
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]
OTHER = {"other": True}
"""Stands for the parts of a content that are no text."""


class Item(msgspec.Struct, gc=False):
    """An element of a list that is empty or is not."""


class Spent(msgspec.Struct, kw_only=True, gc=False):
    """`Tokens` as every client writes them; others are decoded whole."""

    input: Count = ABSENT
    cached: Count = ABSENT
    output: Count = ABSENT
    thoughts: Count = ABSENT
    tool: Count = ABSENT
    total: Count


class End(msgspec.Struct, gc=False):
    """A tool call of which only the end counts."""

    status: Status | None = None


class Call(msgspec.Struct, rename=codec.ON_DISK, gc=False):
    """A tool call that is measured."""

    id: str | None = None
    name: str | None = None
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | None = None
    result_display: Any = None


class Entry(msgspec.Struct, Generic[C], rename=codec.ON_DISK, gc=False):
    """A message with what tables need; stands in for `codec.Line` in the fold, and for `Message` after it."""

    id: str
    rewind_to: str | None = None
    type: Kind | None = None
    timestamp: str | None = None
    content: Any = None
    display_content: Any = None
    tokens: Spent | None = None
    thoughts: list[Item] | None = None
    tool_calls: list[C] | None = None
    model: str | None = None

    raw: ClassVar[None] = None
    extra: ClassVar[JsonObject] = {}


class Record(msgspec.Struct, Generic[C], rename=codec.ON_DISK, gc=False):
    """Any record with what tables need; stands in for `codec.Line` in the fold, and for `Message` after it."""

    rewind_to: str | None = None
    id: str | None = None
    update: Record[C] | None = None
    session_id: str | UnsetType = UNSET
    project_hash: str | UnsetType = UNSET
    type: Kind | None = None
    timestamp: str | None = None
    content: Any = None
    display_content: Any = None
    tokens: Spent | None = None
    thoughts: list[Item] | None = None
    tool_calls: list[C] | None = None
    model: str | None = None
    start_time: str | UnsetType = UNSET
    last_updated: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    summary: str | UnsetType | None = UNSET
    messages: list[Record[C]] | None = None

    raw: ClassVar[None] = None
    extra: ClassVar[JsonObject] = {}


class Odd(codec.Line):
    """A record of which something is not what it should be; stands in as the others do."""

    extra: JsonObject = msgspec.field(default_factory=dict)
    """What the file has in place of a type, a time, a model or tokens that are none."""


def tabled_records(lines: Iterable[bytes], *, salvage: bool, calls: bool = False) -> Iterator[Any]:
    """The records of `lines`, and a `Damage` for what is none; tool calls are measured with `calls`, else only told."""
    form: Any = Call if calls else End
    decode = msgspec.json.Decoder(Entry[form]).decode
    decode_other = msgspec.json.Decoder(Record[form]).decode
    measure: Callable[[Any], Any] = measured if calls else _end

    def settle(record: Any) -> None:
        if type(record.content) is not str:
            record.content = _spoken(record.content)
        if record.display_content is not None:
            record.display_content = _spoken(record.display_content)
        if calls and record.tool_calls:
            record.tool_calls = [measured(call) for call in record.tool_calls]

    def message(line: bytes) -> Any:
        record = decode(line)
        if type(record.content) is not str or record.display_content is not None or calls:
            settle(record)
        return record

    def other(line: bytes) -> Any:
        record = decode_other(line)
        for told in messages_in(record):
            settle(told)
        return record

    def whole(line: codec.Line) -> Odd:
        return _odd(line, measure)

    return typed_records(lines, message=message, other=other, whole=whole, salvage=salvage)


def _end(call: Made) -> End:
    return End(call.status)  # type: ignore[arg-type] # any text: only what is decoded is checked


def settled(record: Any) -> Any:
    """`record` of a fold as a message; one that was decoded whole, or got tokens of such, is brought to form."""
    if record.raw is not None:
        return codec.decode_message(record.raw)
    if type(record.tokens) is Spent:
        record.tokens = msgspec.structs.astuple(record.tokens)
    elif type(record.tokens) is dict:
        told = {name: getattr(record, name) for name in Entry.__struct_fields__}
        extra = record.extra | {"tokens": record.tokens}
        return Odd(**told | {"tokens": codec.decode_tokens(record.tokens)}, extra=extra)
    return record


def _odd(line: codec.Line, measure: Callable[[Any], Any]) -> Odd:
    raw = line.raw or {}
    told = {name: getattr(line, name) for name in codec.Line.__struct_fields__}
    told |= {
        "update": _odd(line.update, measure) if line.update else None,
        "messages": None if line.messages is None else [_odd(message, measure) for message in line.messages],
        "content": _spoken(line.content),
        "display_content": _spoken(line.display_content),
        "tool_calls": [measure(call) for call in codec.decode_calls(line.tool_calls)],
        "raw": None,
    }
    wrong = ("type", "timestamp", "model") if line.tokens is not None else ("type", "timestamp", "model", "tokens")
    extra = {name: raw[name] for name in wrong if getattr(line, name) is None and raw.get(name) is not None}
    return Odd(**told, extra=extra)


def _spoken(content: MessageContent) -> MessageContent:
    """The text of `content`, beside a mark where it holds something else; before it, where it begins with that."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1:  # most are one part of text: a fifth of the time
        part = content[0]
        if type(part) is dict and len(part) == 1 and type(text := part.get("text")) is str:
            return text
    text = text_of(content)
    if not has_other_part(content):
        return text
    return [text, OTHER] if "text" in next(parts_of(content)) else [OTHER, text]
