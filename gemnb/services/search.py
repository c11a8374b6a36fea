"""Search over everything said: titles, prompts, answers, tool names, files of calls. No index: bytes are read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gemnb.errors import UnreadableSessionError
from gemnb.model.records import Message, text_of
from gemnb.model.session import Session, SessionInfo
from gemnb.store.journal import open_regular
from gemnb.store.replay import parse_time

_ESCAPED_LETTER = re.compile(rb"\\u(?!00[01])")
"""An escape of something else than a control character: a word may be spelled half raw, half escaped."""
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
    query: str, rows: Iterable[SessionInfo], load: Callable[[SessionInfo], Session], *, limit: int | None = None
) -> Iterator[Hit]:
    """Where `query` stands in the live talks of `rows`, the session last used first.

    Upper and lower case are one, in any script; a part of a word is enough. A session is read only when its hits are
    asked for, so a caller can show the first while the rest is looked for.
    """
    if not query.strip() or (limit is not None and limit <= 0):
        return
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    may_hold = _prefilter(query)
    found = 0
    for row in sorted(rows, key=lambda r: r.last_updated or datetime.min.replace(tzinfo=UTC), reverse=True):
        for hit in _hits_in(row, pattern, may_hold, load):
            yield hit
            found += 1
            if found == limit:
                return


def _hits_in(
    row: SessionInfo, pattern: re.Pattern[str], may_hold: Callable[[Path], bool], load: Callable[[SessionInfo], Session]
) -> Iterator[Hit]:
    if match := pattern.search(row.title):
        yield _hit(row, None, row.last_updated, "title", row.title, match)
    if not may_hold(row.path):
        return
    with suppress(UnreadableSessionError):  # it went meanwhile, or its list tells what is wrong with it
        for message in load(row).messages:
            yield from _hits_of(row, message, pattern)


def _hits_of(row: SessionInfo, message: Message, pattern: re.Pattern[str]) -> Iterator[Hit]:
    """At most one hit for each text of a message."""
    at = parse_time(message.timestamp)
    for role, text in _texts(message):
        if match := pattern.search(text):
            yield _hit(row, message.id, at, role, text, match)


def _texts(message: Message) -> Iterator[tuple[str, str]]:
    if text := message.text:
        yield message.type, text
    if message.display_content and (typed := text_of(message.display_content)) != message.text:
        yield message.type, typed
    for call in message.tool_calls:
        words = [call.name, *(_strings(call.args))]
        yield "tool", " ".join(words)


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
    row: SessionInfo, message_id: str | None, at: datetime | None, role: str, text: str, match: re.Match[str]
) -> Hit:
    start, end = match.span()
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


def _prefilter(query: str) -> Callable[[Path], bool]:
    """Whether a file may hold `query`, told by its bytes; True wherever only parsing can tell.

    Where letters have other cases beyond ASCII, or escapes of letters stand in the file, it is parsed.
    """
    if not query.isascii() and query.lower() != query.upper():
        return lambda _: True
    folded = query.lower()
    spellings = {json.dumps(folded, ensure_ascii=ascii)[1:-1].lower() for ascii in (True, False)}
    spellings |= {spelling.replace("/", "\\/") for spelling in spellings}
    try:
        wanted = [spelling.encode("utf-8") for spelling in spellings]
    except UnicodeEncodeError:
        return lambda _: True
    # letters beyond ASCII that `re.IGNORECASE` takes for one of ASCII: s, k, i
    wanted += [partner.encode() for partner in "ſ\u212aİı"]

    def may_hold(path: Path) -> bool:
        try:
            with open_regular(path) as file:
                data = file.read().lower()
        except OSError:
            return False
        return any(spelling in data for spelling in wanted) or bool(_ESCAPED_LETTER.search(data))

    return may_hold
