"""The fold: records to a session. One for every reader, whatever it decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from msgspec import UNSET

from gemnb.model.records import Damage, JsonObject, parse_time
from gemnb.model.session import HistoryStep, Session
from gemnb.model.talk import is_injected, prompts, typed_text
from gemnb.store import codec
from gemnb.store.codec import Line
from gemnb.store.journal import BOM, LONGEST_LINE, lines_of, open_regular, parse_lines, parse_whole


@dataclass(slots=True)
class Fold:
    """What the records of one file come to; see `fold`."""

    meta: dict[str, Any] = field(default_factory=dict)
    """The header's fields, later updates merged in."""
    raw_meta: JsonObject = field(default_factory=dict)
    live: dict[str, Line] = field(default_factory=dict)
    """The conversation: message id to its last record, in the order of first appearance."""
    known: dict[str, Line] = field(default_factory=dict)
    """Every message id ever seen; never undone by a rewind or a replacement."""
    damage: list[Damage] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    rewinds: int = 0
    anew: list[str] = field(default_factory=list)
    """Of each replacement that begins with a message never seen before, the id of that."""
    headers: int = 0
    marked: bool = False
    """Whether the file begins with a byte order mark."""
    whole_file: bool = False
    """Whether the file is one JSON object, as older versions wrote it."""
    sketched: bool | None = None
    """Whether the client's `memoryScratchpad` tells of all that was said; None where no update held one."""


@dataclass(slots=True)
class Step:
    """A rewind or a replacement, and the talk before and after it."""

    kind: str
    before: list[Line]
    after: list[str]
    target: str | None = None


def fold(
    records: Iterable[Line | Damage], *, as_client: bool = False, steps: bool = False, into: Fold | None = None
) -> Fold:
    """Fold `records`: a message replaces the one with its id and keeps that one's place.

    Args:
        as_client: see what the client sees, its accidents included: what its second start-up emptied is empty.
        steps: keep the talk before each rewind and replacement, for an undo.
        into: go on with this fold, which is changed.
    """
    found = into or Fold()
    fresh_header = False
    for record in records:
        if isinstance(record, Damage):
            found.damage.append(record)
        elif record.rewind_to is not None:
            found.sketched = found.sketched and False
            _rewind(found, record.rewind_to, steps=steps)
        elif record.id is not None:
            if found.sketched:
                found.sketched = False
            _put(found.live, record, found.known)
        elif record.update is not None:
            _merge(found, record.update)
            if record.update.raw is not None and record.update.raw.get("memoryScratchpad") is not None:
                found.sketched = True
            if record.update.messages is not None:
                accident = fresh_header and found.headers > 1 and _only_context(record.update.messages)
                if as_client or not accident:
                    _replace(found, record.update.messages, steps=steps)
                fresh_header = False
        elif isinstance(record.session_id, str) and isinstance(record.project_hash, str):
            found.headers += 1
            fresh_header = True
            _merge(found, record)
            for message in record.messages or ():
                if message.id is not None:
                    _put(found.live, message, found.known)
    return found


def _put(live: dict[str, Line], line: Line, known: dict[str, Line]) -> None:
    assert line.id is not None  # its callers look
    earlier = known.get(line.id)
    if earlier is not None:
        codec.restore(line, earlier)
    known[line.id] = line
    live[line.id] = line


def _rewind(found: Fold, target: str, *, steps: bool) -> None:
    """Drop the message `target` and all after it; all of them where there is none of that name."""
    before = list(found.live.values()) if steps else []
    found.rewinds += 1
    if target not in found.live:
        found.live.clear()
    while found.live:
        if found.live.popitem()[0] == target:
            break
    if steps:
        found.steps.append(Step("rewind", before, list(found.live), target))


def _replace(found: Fold, messages: list[Line], *, steps: bool) -> None:
    before = list(found.live.values()) if steps else []
    first = next((message.id for message in messages if message.id is not None), None)
    if first is not None and first not in found.known:
        found.anew.append(first)
    found.live.clear()
    for message in messages:
        if message.id is not None:
            _put(found.live, message, found.known)
    if steps:
        found.steps.append(Step("replace", before, list(found.live)))


def _merge(found: Fold, line: Line) -> None:
    # spelled out: a third of all records come by here, and names in a loop cost ten times as much
    meta = found.meta
    if line.last_updated is not UNSET:
        meta["last_updated"] = line.last_updated
    if line.summary is not UNSET:
        meta["summary"] = line.summary
    if line.session_id is not UNSET:
        meta["session_id"] = line.session_id
    if line.project_hash is not UNSET:
        meta["project_hash"] = line.project_hash
    if line.start_time is not UNSET:
        meta["start_time"] = line.start_time
    if line.kind is not UNSET:
        meta["kind"] = line.kind
    if line.raw is not None:
        found.raw_meta.update((key, value) for key, value in line.raw.items() if key != "messages")


def _only_context(messages: list[Line]) -> bool:
    """Whether a replacement holds injected context and nothing else; an empty one does not."""
    return bool(messages) and all(is_injected(message) for message in messages)


class Records(Protocol):
    """What makes records of lines."""

    def __call__(self, lines: Iterable[bytes], *, salvage: bool) -> Iterator[Any]:
        """A `Line`, or what stands in for one, for each record; a `Damage` for what is none."""


def whole_records(lines: Iterable[bytes], *, salvage: bool) -> Iterator[Line | Damage]:
    """Every record with all that it has."""
    for value in parse_lines(lines, salvage=salvage):
        yield value if isinstance(value, Damage) else codec.line_of(value)


def read_fold(path: Path, *, as_client: bool = False, steps: bool = False, records: Records = whole_records) -> Fold:
    """Fold the whole file at `path`, whatever its form; one line in memory at a time.

    Args:
        path: a session file.
        as_client: see `fold`.
        steps: see `fold`.
        records: decodes the lines; others than `whole_records` decode fewer fields.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with open_regular(path) as file:
        told = records(lines_of(file), salvage=not as_client)
        found = fold(told, as_client=as_client, steps=steps, into=Fold(marked=file.peek(3).startswith(BOM)))
        if not found.headers and (older := _older_form(file, found)):
            return older
    return found


def _older_form(file: Any, found: Fold) -> Fold | None:
    """The fold of a file that is one object over many lines, or None where it is none."""
    if not found.damage or (found.damage[0].line != 1 and found.damage[0].offset != 0):
        return None
    file.seek(0)
    raw = parse_whole(file.read(LONGEST_LINE))
    if raw is None or not isinstance(raw.get("sessionId"), str):
        return None
    line = codec.line_of(raw)
    older = Fold(headers=1, whole_file=True)
    _merge(older, line)
    for message in line.messages or ():
        if message.id is not None:
            _put(older.live, message, older.known)
    return older


def read_session(path: Path) -> Session:
    """The session in the file at `path`: one fold; nothing in it raises.

    A file without a header is rebuilt from its name, its folder and its messages.

    Raises:
        OSError: the file cannot be opened.
    """
    found = read_fold(path, steps=True)
    started, updated = times_of(found, path.stat().st_mtime)
    raw = dict(found.raw_meta)
    if not isinstance(raw.get("sessionId"), str):
        raw["sessionId"] = id_from_name(path)
    return Session(
        header=codec.decode_header(raw),
        messages=tuple(codec.decode_message(line.raw) for line in found.live.values() if line.raw),
        usage={
            id: codec.decode_message(line.raw)
            for id, line in found.known.items()
            if line.tokens is not None and line.raw
        },
        damage=tuple(found.damage),
        path=path,
        started_at=started,
        last_updated=updated,
        history=tuple(_history(found.steps)),
        first_prompt=first_prompt(found),
    )


def _history(steps: Iterable[Step]) -> Iterator[HistoryStep]:
    for step in steps:
        messages = tuple(codec.decode_message(line.raw) for line in step.before if line.raw)
        yield HistoryStep(step.kind, tuple(m.id for m in messages), tuple(step.after), step.target, messages)


def first_prompt(found: Fold) -> str | None:
    """What the person typed first of all, rewound prompts included."""
    return next((typed_text(line) for line in prompts(found.known.values())), None)


def id_from_name(path: Path) -> str:
    """The id, or the 8 characters of it, that the name of a session file ends in."""
    return path.stem.rsplit("-", 1)[-1] if path.stem.startswith("session-") else path.stem


def times_of(found: Fold, mtime: float) -> tuple[datetime, datetime]:
    """Start and last update: from the header, else the messages, else the file (FORMAT.md 3)."""
    start, last = parse_time(found.meta.get("start_time")), parse_time(found.meta.get("last_updated"))
    if start is None or last is None:
        told = [at for line in found.live.values() if (at := parse_time(line.timestamp))]
        told = told or [datetime.fromtimestamp(mtime, UTC)]
        start, last = start or min(told), last or max(told)
    return start, last
