"""The only place that knows the names on disk: JSON objects to records, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from gemnb.model.records import TOKEN_KINDS, Header, JsonObject, Message, MessageContent, Thought, Tokens, ToolCall

T = TypeVar("T")


ON_DISK = {
    "rewind_to": "$rewindTo",
    "update": "$set",
    "session_id": "sessionId",
    "project_hash": "projectHash",
    "display_content": "displayContent",
    "tool_calls": "toolCalls",
    "start_time": "startTime",
    "last_updated": "lastUpdated",
    "result_display": "resultDisplay",
}


class Line(msgspec.Struct, rename=ON_DISK):
    """One record of a session file, told apart by what it has: `rewind_to`, `id`, `update`, or both ids of a header.

    A reader may decode fewer fields; the fold is the same.
    """

    rewind_to: str | None = None
    id: str | None = None
    update: Line | None = None
    session_id: str | UnsetType = UNSET
    project_hash: str | UnsetType = UNSET
    type: str | None = None
    timestamp: str | None = None
    content: Any = None
    display_content: Any = None
    tokens: Any = None
    thoughts: Any = None
    tool_calls: Any = None
    model: str | None = None
    start_time: str | UnsetType | None = UNSET
    last_updated: str | UnsetType | None = UNSET
    kind: str | UnsetType | None = UNSET
    summary: str | UnsetType | None = UNSET
    messages: list[Line] | None = None
    raw: JsonObject | None = None
    """The record verbatim, where it was decoded whole."""


def line_of(raw: JsonObject) -> Line:
    """The record that the object `raw` is; a value of a wrong type counts as absent, but stays in `raw`."""
    update, messages = raw.get("$set"), raw.get("messages")
    return Line(
        rewind_to=_text(raw.get("$rewindTo")),
        id=_text(raw.get("id")),
        update=line_of(update) if isinstance(update, dict) else None,
        session_id=_text_or_unset(raw, "sessionId"),
        project_hash=_text_or_unset(raw, "projectHash"),
        type=_text(raw.get("type")),
        timestamp=_text(raw.get("timestamp")),
        content=raw.get("content"),
        display_content=raw.get("displayContent"),
        tokens=_told_tokens(raw.get("tokens")),
        thoughts=_object_list(raw.get("thoughts")),
        tool_calls=_object_list(raw.get("toolCalls")),
        model=_text(raw.get("model")),
        start_time=_text_or_unset(raw, "startTime"),
        last_updated=_text_or_unset(raw, "lastUpdated"),
        kind=_text_or_unset(raw, "kind"),
        summary=_text_or_unset(raw, "summary", null=True),
        messages=[line_of(m) for m in messages if isinstance(m, dict)] if isinstance(messages, list) else None,
        raw=raw,
    )


def restore(line: Line, earlier: Line) -> None:
    """Give `line` back what an earlier record of the same message had and this one lacks (FORMAT.md 8, Fold)."""
    # spelled out: half of all records come by here, and names in a loop cost ten times as much
    if earlier.tokens and not line.tokens:
        _give(line, "tokens", earlier.tokens)
    if earlier.thoughts and not line.thoughts:
        _give(line, "thoughts", earlier.thoughts)
    if earlier.model and not line.model:
        _give(line, "model", earlier.model)
    if earlier.tool_calls and not line.tool_calls:
        _give(line, "tool_calls", earlier.tool_calls)


def _give(line: Line, name: str, had: object) -> None:
    setattr(line, name, had)
    if line.raw is not None:
        line.raw = {**line.raw, ON_DISK.get(name, name): had}


def decode_message(raw: JsonObject) -> Message:
    """The message that the object `raw` is; `encode_message` gives `raw` back.

    Raises:
        KeyError: `raw` has no id.
    """
    message = Message(
        id=raw["id"],
        type=_text(raw.get("type")) or "",
        timestamp=_text(raw.get("timestamp")),
        content=_content(raw.get("content")),
        display_content=_content(raw.get("displayContent")),
        tokens=_tokens(raw.get("tokens")),
        tool_calls=decode_calls(raw.get("toolCalls")),
        thoughts=_objects(raw.get("thoughts"), _thought),
        model=_text(raw.get("model")),
    )
    return _with_extra(message, raw, encode_message)


def encode_message(message: Message) -> JsonObject:
    """The object on disk, keys in the client's order, unknown ones kept."""
    known: JsonObject = {
        "id": message.id,
        "timestamp": message.timestamp,
        "type": message.type or None,
        "content": message.content,
        "displayContent": message.display_content,
        "thoughts": [_encode_thought(t) for t in message.thoughts] or None,
        "tokens": _encode_tokens(message.tokens),
        "model": message.model,
        "toolCalls": [_encode_tool_call(c) for c in message.tool_calls] or None,
    }
    return _present(known) | message.extra


def decode_header(raw: JsonObject) -> Header:
    """The header that the object `raw` is, later updates merged in; its messages are left out.

    Raises:
        KeyError: `raw` has no session id.
    """
    directories = raw.get("directories")
    header = Header(
        session_id=raw["sessionId"],
        project_hash=_text(raw.get("projectHash")) or "",
        start_time=_text(raw.get("startTime")),
        last_updated=_text(raw.get("lastUpdated")),
        kind=_text(raw.get("kind")) or "main",
        summary=_text(raw.get("summary")),
        directories=tuple(d for d in directories if isinstance(d, str)) if isinstance(directories, list) else (),
    )
    return _with_extra(header, {k: v for k, v in raw.items() if k != "messages"}, encode_header)


def encode_header(header: Header) -> JsonObject:
    """The header's line, keys in the client's order."""
    known: JsonObject = {
        "sessionId": header.session_id,
        "projectHash": header.project_hash,
        "startTime": header.start_time,
        "lastUpdated": header.last_updated,
        "kind": header.kind,
        "summary": header.summary,
        "directories": list(header.directories) or None,
    }
    return _present(known) | header.extra


def update_record(**changes: object) -> JsonObject:
    """A `$set` record; names as in `Header`, and `messages` a list of messages."""
    found = {ON_DISK.get(name, name): value for name, value in changes.items()}
    if "messages" in found:
        messages: Iterable[Message] = found["messages"]  # type: ignore[assignment]
        found["messages"] = [encode_message(m) for m in messages]
    return {"$set": found}


def rewind_record(message_id: str) -> JsonObject:
    """A `$rewindTo` record."""
    return {"$rewindTo": message_id}


def decode_tokens(raw: object) -> Tokens | None:
    """The tokens that the object `raw` tells, whole numbers only; None where it is no object."""
    return _tokens(raw)


def decode_calls(raw: object) -> tuple[ToolCall, ...]:
    """The tool calls that the list `raw` tells; none where something else is among them or in its place."""
    return _objects(raw, _tool_call)


def _told_tokens(raw: object) -> JsonObject | None:
    """`raw` where it is an object that tells something of a count."""
    return raw if isinstance(raw, dict) and any(raw.get(kind) is not None for kind in TOKEN_KINDS) else None


def _tokens(raw: object) -> Tokens | None:
    if not isinstance(raw, dict):
        return None
    return Tokens(**{kind: _whole(raw.get(kind)) for kind in TOKEN_KINDS})


def _encode_tokens(tokens: Tokens | None) -> JsonObject | None:
    if tokens is None:
        return None
    names = ("input", "output", "cached", "thoughts", "tool", "total")  # the client's order
    return _present({name: getattr(tokens, name) for name in names})


def _tool_call(raw: JsonObject) -> ToolCall:
    call = ToolCall(
        id=_text(raw.get("id")),
        name=_text(raw.get("name")) or "",
        args=raw.get("args"),
        result=raw.get("result"),
        status=_text(raw.get("status")) or "",
        timestamp=_text(raw.get("timestamp")),
        display_name=_text(raw.get("displayName")),
        description=_text(raw.get("description")),
        result_display=raw.get("resultDisplay"),
    )
    return _with_extra(call, raw, _encode_tool_call)


def _encode_tool_call(call: ToolCall) -> JsonObject:
    known: JsonObject = {
        "id": call.id,
        "name": call.name or None,
        "args": call.args,
        "result": call.result,
        "status": call.status or None,
        "timestamp": call.timestamp,
        "resultDisplay": call.result_display,
        "displayName": call.display_name,
        "description": call.description,
    }
    return _present(known) | call.extra


def _thought(raw: JsonObject) -> Thought:
    thought = Thought(
        subject=_text(raw.get("subject")) or "",
        description=_text(raw.get("description")) or "",
        timestamp=_text(raw.get("timestamp")),
    )
    return _with_extra(thought, raw, _encode_thought)


def _encode_thought(thought: Thought) -> JsonObject:
    known: JsonObject = {
        "subject": thought.subject or None,
        "description": thought.description or None,
        "timestamp": thought.timestamp,
    }
    return _present(known) | thought.extra


def _with_extra(value: T, raw: JsonObject, encode: Callable[[T], JsonObject]) -> T:
    """`value` with everything of `raw` that `encode` would not give back as it was."""
    told = encode(value)
    extra = {key: had for key, had in raw.items() if key not in told or not _same(told[key], had)}
    if not extra:
        return value
    return replace(value, extra=extra)  # type: ignore[type-var]


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _objects(raw: object, decode: Callable[[JsonObject], T]) -> tuple[T, ...]:
    """Each object of a list decoded; an empty tuple where something else is among them or in its place."""
    return tuple(decode(item) for item in _object_list(raw) or ())


def _object_list(raw: object) -> list[JsonObject] | None:
    return raw if isinstance(raw, list) and all(isinstance(item, dict) for item in raw) else None


def _content(raw: object) -> MessageContent:
    return raw if isinstance(raw, str | dict | list) else None


def _text(raw: object) -> str | None:
    return raw if isinstance(raw, str) else None


def _text_or_unset(raw: JsonObject, name: str, *, null: bool = False) -> Any:
    value = raw.get(name, UNSET)
    return value if isinstance(value, str) or (null and value is None) else UNSET


def _whole(raw: object) -> int | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or raw != int(raw):
        return None
    return int(raw)


def _present(found: JsonObject) -> JsonObject:
    return {key: value for key, value in found.items() if value is not None}
