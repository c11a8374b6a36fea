"""What counts in a talk: injected context, prompts, what can be resumed. The one place for these rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from gemnb.model.records import MessageContent, parts_of, text_of

CONTEXT_TAGS = ("session_context", "hook_context")
EMPTY_TITLE = "Empty conversation"
SNAPSHOT = "<state_snapshot>"
"""What a compression's summary begins with."""


class Spoken(Protocol):
    """What these rules need of a message: a `Message`, or a record that was read with fewer fields."""

    # ruff: noqa: D102 - the names are those of `Message`
    @property
    def type(self) -> str | None: ...
    @property
    def content(self) -> MessageContent: ...
    @property
    def display_content(self) -> MessageContent: ...
    @property
    def thoughts(self) -> Sequence[object] | None: ...
    @property
    def tool_calls(self) -> Sequence[object] | None: ...


S = TypeVar("S", bound=Spoken)


def without_context(text: str) -> str:
    """`text` without the injected context at its start, trimmed.

    >>> without_context("<hook_context>x</hook_context> Why?")
    'Why?'
    """
    text = text.strip()
    if not text.startswith("<"):
        return text
    while (tag := next((tag for tag in CONTEXT_TAGS if text.startswith(f"<{tag}>")), None)) is not None:
        _, closed, rest = text.partition(f"</{tag}>")
        text = rest.strip() if closed else ""
    return text


def is_context_text(text: str) -> bool:
    """Whether `text` is injected context and nothing more."""
    return bool(text.strip()) and not without_context(text)


def is_injected(message: Spoken) -> bool:
    """Whether `message` is a user message that holds injected context and nothing of a person's."""
    return message.type == "user" and is_context_text(text_of(message.content)) and not has_other_part(message.content)


def is_command(message: Spoken) -> bool:
    """Whether `message` is a user message that begins as a command of the client does."""
    return message.type == "user" and without_context(text_of(message.content)).startswith(("/", "?"))


def is_resumable(message: Spoken) -> bool:
    """Whether `message` by itself makes a session worth resuming (FORMAT.md 3 and 8)."""
    if message.type == "gemini":
        said = message.tool_calls or message.thoughts or text_of(message.content).strip()
        return bool(said) or has_other_part(message.content)
    if message.type == "user":
        if has_other_part(message.content):
            return True
        text = without_context(text_of(message.content))
        return bool(text) and not text.startswith(("/", "?"))
    return False


def is_resumable_to_client(message: Spoken) -> bool:
    """Whether the terminal client takes `message` for one worth resuming: text after injected context is none to it."""
    if message.type != "user":
        return is_resumable(message)
    text = text_of(message.content).strip()
    first = next(parts_of(message.content or ""), {})
    if not text or "text" not in first:
        return bool(text) or has_other_part(message.content)
    return not text.startswith(("/", "?", *(f"<{tag}>" for tag in CONTEXT_TAGS)))


def standing(messages: Iterable[S]) -> Iterator[tuple[S, bool]]:
    """Each message with whether it is part of the talk with the model.

    A prompt that begins like a command stays where the next user or gemini message answers it.
    """
    held: list[S] = []
    for message in messages:
        if held and message.type in ("user", "gemini"):
            yield held[0], message.type == "gemini"
            yield from ((other, False) for other in held[1:])
            held = []
        if held:
            held.append(message)
        elif is_resumable(message):
            yield message, True
        elif is_command(message):
            held = [message]
        else:
            yield message, False
    yield from ((message, False) for message in held)


def prompt_text(message: Spoken) -> str:
    """What the person said in a user message, injected context left out; empty where it is none of a person's."""
    return without_context(text_of(message.content)) if message.type == "user" else ""


def prompts(messages: Iterable[S]) -> Iterator[S]:
    """The messages that are a person's prompts: with text, and resumable or answered; the summary of a talk is none."""
    for message, stands in standing(messages):
        if stands and message.type == "user":
            text = prompt_text(message)
            if text and not text.startswith(SNAPSHOT):
                yield message


def typed_text(message: Spoken) -> str:
    """What the person typed: `display_content` where present, else the prompt."""
    typed = text_of(message.display_content).strip() if message.display_content else ""
    return typed or prompt_text(message)


def has_other_part(content: MessageContent) -> bool:
    """Whether `content` has a part that is neither text nor a thought: a call, a response, a picture, a file."""
    if not content or isinstance(content, str):
        return False
    return any(part.keys() - _TEXT_KEYS for part in parts_of(content))


_TEXT_KEYS = {"text", "thought", "thoughtSignature"}
