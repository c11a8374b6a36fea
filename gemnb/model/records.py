"""The records of a session file, as values; what they mean together is in `session` and `talk`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

JsonObject = dict[str, Any]
Part = JsonObject
"""A part of a Content, the API's JSON; opaque: keys that we do not know are kept."""

MessageContent = str | Part | list[Any] | None
"""Text, one part, or a list of parts and strings."""


TOKEN_KINDS = ("input", "cached", "output", "thoughts", "tool", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What one answer cost, as the API reported it; None where the file held no whole number."""

    input: int | None = None
    """The whole prompt, `cached` included."""
    output: int | None = None
    cached: int | None = None
    """The part of `input` that came from the cache."""
    thoughts: int | None = None
    tool: int | None = None
    total: int | None = None
    """As reported; not always the sum of input, output, thoughts and tool."""

    def __bool__(self) -> bool:
        """Whether it tells any count."""
        return self.total is not None or any(getattr(self, name) is not None for name in TOKEN_KINDS)


LARGEST_COUNT = 2**53 - 1
"""The largest whole number that the client's JSON tells exactly."""


def as_count(value: object) -> int | None:
    """`value` where it can be a number of tokens, and None where no service tells such: a word, less than nothing."""
    return value if type(value) is int and 0 <= value <= LARGEST_COUNT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """A summary of what the model thought before it answered."""

    subject: str = ""
    description: str = ""
    timestamp: str | None = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A function that the model called, and what came of it."""

    id: str | None = None
    name: str = ""
    args: Any = field(default_factory=dict)
    result: Any = None
    """A list of parts, one part, a string, another object, or None where it was never answered."""
    status: str = ""
    """`success`, `error`, `cancelled`, or another word of the client's."""
    timestamp: str | None = None
    display_name: str | None = None
    description: str | None = None
    result_display: Any = None
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a session. A later record with the same `id` replaces it."""

    id: str
    type: str
    """`user`, `gemini`, `info`, `error` or `warning`."""
    timestamp: str | None = None
    """ISO 8601 in UTC, kept verbatim so that writing back changes nothing."""
    content: MessageContent = None
    display_content: MessageContent = None
    """What the person typed, where `content` is what the model saw."""
    tokens: Tokens | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    thoughts: tuple[Thought, ...] = ()
    model: str | None = None
    extra: JsonObject = field(default_factory=dict)
    """Keys that this version does not know, and odd values of known ones, written back as they were read."""

    @property
    def parts(self) -> list[Part]:
        """The content as a list of parts."""
        return list(parts_of(self.content))

    @property
    def text(self) -> str:
        """Its text parts joined, thoughts left out."""
        return text_of(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a session says of itself, later updates merged in."""

    session_id: str
    project_hash: str = ""
    start_time: str | None = None
    last_updated: str | None = None
    kind: str = "main"
    """`main` or `subagent`."""
    summary: str | None = None
    directories: tuple[str, ...] = ()
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Damage:
    """A place of a file that could not be read as a record."""

    line: int
    """Counted from 1."""
    offset: int
    """Where the line begins, in bytes."""
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} (byte {self.offset}): {self.reason}"


def parts_of(content: MessageContent) -> Iterator[Part]:
    """The parts of `content`; a string is a text part, anything that is no part is left out."""
    if isinstance(content, str):
        yield {"text": content}
    elif isinstance(content, dict):
        yield content
    elif isinstance(content, list):
        for item in content:
            if isinstance(item, str):
                yield {"text": item}
            elif isinstance(item, dict):
                yield item


def text_of(content: MessageContent) -> str:
    """The text parts of `content` joined, thoughts left out."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] for part in parts_of(content) if isinstance(part.get("text"), str) and not part.get("thought")
    )


def encoded(text: str) -> bytes:
    """`text` as UTF-8; U+FFFD for half a character, which no encoding has."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def parse_time(text: object) -> datetime | None:
    """An aware UTC time, or None where `text` is none."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is UTC:
        return at
    if len(text) < 10:
        return None
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (OverflowError, ValueError):
        return None
