"""Search over everything said: titles, prompts, answers, tool names, files of calls. No index: bytes are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from gemnb.errors import UnreadableSessionError
from gemnb.model.progress import Progress, watched
from gemnb.model.records import Message, MessageContent, parse_time, parts_of
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import without_context
from gemnb.services.spelling import Word

AROUND = 40
"""Characters on each side of a match that are shown."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One match, in its context."""

    session_id: str
    message_id: str | None
    """None for a match in the title."""
    at: datetime | None
    role: str
    """`title`, `user`, `gemini`, `tool`, or the type of a note."""
    before: str
    match: str
    after: str

    def __str__(self) -> str:
        return f"{self.session_id[:8]} {self.role}: …{self.before}[{self.match}]{self.after}…"


def search(
    query: str,
    rows: Iterable[SessionInfo],
    load: Callable[[SessionInfo], Session],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Hit]:
    """Where `query` stands in the live talks of `rows`, the session last used first.

    Upper and lower case are one, in any script; a part of a word is enough. What the client put before a person's
    words is no hit. A session is read only when its hits are asked for, so a caller can show the first while the rest
    is looked for.

    Args:
        query: what to look for.
        rows: where.
        load: gives the whole session of a row.
        limit: the most hits.
        progress: told how many of the sessions were looked into.
    """
    if not query.strip() or (limit is not None and limit <= 0):
        return
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    word, found = Word(query), 0
    newest_first = sorted(rows, key=lambda r: r.last_updated or datetime.min.replace(tzinfo=UTC), reverse=True)
    for row in watched(newest_first, "Searching sessions", progress):
        for hit in _hits_in(row, pattern, word, load):
            yield hit
            found += 1
            if found == limit:
                return


def _hits_in(
    row: SessionInfo, pattern: re.Pattern[str], word: Word, load: Callable[[SessionInfo], Session]
) -> Iterator[Hit]:
    if match := pattern.search(row.title):
        yield _hit(row, None, row.last_updated, "title", row.title, match.span())
    if not word.may_stand_in(row.path):
        return
    with suppress(UnreadableSessionError):  # it went meanwhile, or its list tells what is wrong with it
        for message in load(row).messages:
            yield from _hits_of(row, message, pattern)


def _hits_of(row: SessionInfo, message: Message, pattern: re.Pattern[str]) -> Iterator[Hit]:
    """At most one hit for what a message says, one for what was typed in its place, and one for each call."""
    at = parse_time(message.timestamp)
    for role, texts, between in _texts(message):
        before = 0
        for text in texts:
            if match := pattern.search(text):
                span = match.start() + before, match.end() + before
                yield _hit(row, message.id, at, role, between.join(texts), span)
                break
            before += len(text) + len(between)


def _texts(message: Message) -> Iterator[tuple[str, list[str], str]]:
    """Who says it, the texts it is made of, and what stands between them; no match reaches from one to the next."""
    said = _said(message.content, message.type)
    yield message.type, said, ""
    typed = _said(message.display_content, message.type)
    if typed != said:
        yield message.type, typed, ""
    for call in message.tool_calls:
        yield "tool", [call.name, *_strings(call.args)], " "


def _said(content: MessageContent, type: str) -> list[str]:
    """The texts of `content`, thoughts and injected context left out."""
    parts = (part.get("text") for part in parts_of(content) if not part.get("thought"))
    texts = [text for text in parts if isinstance(text, str)]
    return [_typed(text) for text in texts] if type == "user" else texts


def _typed(text: str) -> str:
    return without_context(text) if text.lstrip().startswith("<") else text


def _strings(value: object) -> Iterator[str]:
    """The texts among a call's arguments: names of files, commands, patterns."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _hit(
    row: SessionInfo, message_id: str | None, at: datetime | None, role: str, text: str, span: tuple[int, int]
) -> Hit:
    start, end = span
    return Hit(
        row.id,
        message_id,
        at,
        role,
        _whole(_tail(text[max(0, start - 10 * AROUND) : start])),
        _whole(text[start:end]),
        _whole(_head(text[end : end + 10 * AROUND])),
    )


def _graphemes(text: str) -> list[str]:
    import regex  # the standard library knows no graphemes

    found: list[str] = regex.findall(r"\X", text)
    return found


def _head(text: str) -> str:
    return "".join(_graphemes(text)[:AROUND])


def _tail(text: str) -> str:
    return "".join(_graphemes(text)[-AROUND:])


def _whole(text: str) -> str:
    """`text` on one line, without half characters."""
    return re.sub(r"\s", " ", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
