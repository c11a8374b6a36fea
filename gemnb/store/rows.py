"""The session files of a folder as rows of a listing: read, or remembered where they did not change."""

from __future__ import annotations

import os
import pkgutil
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import msgspec

from gemnb.model.progress import Progress, watched
from gemnb.model.records import parse_time
from gemnb.model.session import SessionInfo
from gemnb.model.shown import clean_line
from gemnb.model.talk import is_resumable, is_resumable_to_client, prompts, standing, typed_text
from gemnb.store.brief import brief_records
from gemnb.store.codec import Line
from gemnb.store.index import Index
from gemnb.store.paths import is_session_name, kind_of
from gemnb.store.replay import Fold, first_prompt, id_from_name, read_fold, times_of
from gemnb.store.titles import title_of

MAKERS = (
    *(f"model/{n}.py" for n in ("ledger", "measures", "outcome", "records", "shown", "talk")),
    *(f"store/{n}.py" for n in ("brief", "codec", "journal", "ledgers", "replay", "rows", "tabled", "titles", "typed")),
)
"""The code that a row and a ledger come from."""
READING = "Reading sessions"
AHEAD = timedelta(days=1)
"""A time that is this much later than now is no mistake: clocks differ."""
SETTLED_NS = 2_000_000_000
"""A file that changed this shortly before it was read may change again without a new time: it is not remembered."""


class Remembered(msgspec.Struct, array_like=True, gc=False):
    """A row as the index keeps it, with what tells that its file is still the one that was read."""

    stamp: tuple[int, int, int, int, int]
    id: str
    title: str
    summary: str | None
    prompt: str | None
    started_at: datetime | None
    last_updated: datetime | None
    client_updated: datetime | None
    message_count: int
    user_turns: int
    state: str
    hidden_because: str | None
    risk: str | None
    size_bytes: int
    kind: str
    damage_count: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Remembered).decode


@cache
def rows_version() -> int:
    """Of the code that makes rows: what another state of it remembered is worth nothing."""
    check = 0
    for name in MAKERS:
        check = zlib.crc32(pkgutil.get_data("gemnb", name) or b"", check)
    return check >> 1 | 1


def rows_of(folder: Path, *, index: Index | None, now: datetime, progress: Progress | None = None) -> list[SessionInfo]:
    """Every session file of a project's folder as a row that has no number yet; nothing in them raises."""
    index = index if index and index.on else None
    known = index.read(folder) if index else {}
    begun = time.time_ns()
    rows: list[SessionInfo] = []
    fresh: dict[str, bytes] = {}
    chats = folder / "chats"
    with _opened(chats) as opened:
        for name in watched(session_names(folder), READING, progress):
            path = chats / name
            try:
                status = os.lstat(path if opened is None else name, dir_fd=opened)
            except OSError as error:
                rows.append(unreadable(path, str(error)))
                continue
            row = _remembered(known.pop(name, None), path, status)
            if row is None:
                row = _read(path, status)
                if index and row.started_at and is_settled(status, begun):
                    fresh |= packed(name, row, status)
            rows.append(in_time(row, status, now))
    if index and (fresh or known):
        index.write(folder, fresh, gone=known)
    return rows


def session_files(folder: Path) -> Iterator[Path]:
    """Session files of a project's folder, by name: those of its own, then its sub-agents'."""
    return map((folder / "chats").joinpath, session_names(folder))


def session_names(folder: Path) -> list[str]:
    """What each session file of a project's folder is called, from `chats/` on."""
    chats = folder / "chats"
    if kind_of(chats) != "folder":
        return []
    try:
        names = sorted(os.listdir(chats))  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return []
    found = [name for name in names if is_session_name(name)]
    for name in sorted({*names}.difference(found)):
        if kind_of(chats / name) == "folder":
            try:
                agents = sorted(p for p in (chats / name).iterdir() if p.suffix in (".jsonl", ".json"))
            except OSError:
                continue
            found += [f"{name}/{path.name}" for path in agents]
    return found


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The folder, to be asked for its files by name: half the time of a whole path. None where it cannot be opened."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield opened
    finally:
        os.close(opened)


def _remembered(entry: bytes | None, path: Path, status: os.stat_result) -> SessionInfo | None:
    """The row that `entry` is; None where it is none, or of a file that is another by now."""
    if entry is None:
        return None
    try:
        had = _decode(entry)
    except msgspec.MsgspecError:
        return None
    return info_of(had, path) if had.stamp == stamp_of(status) else None


def info_of(had: Remembered, path: Path) -> SessionInfo:
    """The row of the file at `path`, as it was remembered."""
    return SessionInfo(
        id=had.id,
        title=had.title,
        summary=had.summary,
        prompt=had.prompt,
        started_at=had.started_at,
        last_updated=had.last_updated,
        client_updated=had.client_updated,
        message_count=had.message_count,
        user_turns=had.user_turns,
        state=had.state,
        hidden_because=had.hidden_because,
        risk=had.risk,
        path=path,
        size_bytes=had.size_bytes,
        kind=had.kind,
        damage_count=had.damage_count,
    )


def remember(row: SessionInfo, status: os.stat_result) -> Remembered:
    """`row` as the index keeps it."""
    return Remembered(stamp_of(status), *[getattr(row, field) for field in Remembered.__struct_fields__[1:]])


def packed(name: str, row: SessionInfo, status: os.stat_result) -> dict[str, bytes]:
    """The entry of one row; none where half a character is among its words."""
    try:
        return {name: _encode(remember(row, status))}
    except UnicodeEncodeError:
        return {}


def stamp_of(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """What is never the same of two states of a file: a change that gives the old time back leaves a new ctime."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_settled(status: os.stat_result, at_ns: int | None = None) -> bool:
    """Whether a file that was looked at then (by default now) cannot change without another stamp."""
    at_ns = time.time_ns() if at_ns is None else at_ns
    return max(status.st_mtime_ns, status.st_ctime_ns) < at_ns - SETTLED_NS


def _read(path: Path, status: os.stat_result) -> SessionInfo:
    if not stat.S_ISREG(status.st_mode):
        return unreadable(path, "a link or a device, not a file")
    try:
        found = read_fold(path, records=brief_records)
        return described(found, path, status, asked=list(prompts(found.live.values())))
    except (OSError, ValueError) as error:
        return unreadable(path, str(error))


def unreadable(path: Path, why: str) -> SessionInfo:
    """The row of a file that cannot be read."""
    return SessionInfo(id=id_from_name(path), path=path, state="unreadable", hidden_because=why)


def in_time(row: SessionInfo, status: os.stat_result, now: datetime) -> SessionInfo:
    """`row`, with the file's own time in the place of a last update that lies in the future."""
    told = row.last_updated
    if told is None or told - now <= AHEAD:
        return row
    note = f"its lastUpdated ({told:%Y-%m-%d}) lies in the future; the file's own time stands in"
    return replace(row, last_updated=datetime.fromtimestamp(status.st_mtime, told.tzinfo), time_note=note)


def described(found: Fold, path: Path, status: os.stat_result, *, asked: Sequence[Line]) -> SessionInfo:
    """The row of one file, from its fold and its prompts; only what the file itself says."""
    started, updated = times_of(found, status.st_mtime)
    own_id = found.meta.get("session_id")
    prompt = typed_text(asked[0]) if asked else None
    summary = found.meta.get("summary")
    kind = found.meta.get("kind") or "main"
    state, why = _state(found, path, kind, asked=bool(asked))
    return SessionInfo(
        id=own_id if isinstance(own_id, str) and own_id else id_from_name(path),
        title=title_of(summary, prompt, None if clean_line(summary or prompt or "") else first_prompt(found)),
        summary=summary,
        prompt=clean_line(prompt) if prompt is not None else None,
        started_at=started,
        last_updated=updated,
        client_updated=_client_updated(found, status.st_mtime),
        message_count=len(found.live),
        user_turns=len(asked),
        state=state,
        hidden_because=why,
        risk=_own_risk(found, path, state),
        path=path,
        size_bytes=status.st_size,
        kind=kind,
        damage_count=len(found.damage),
    )


def _state(found: Fold, path: Path, kind: str, *, asked: bool) -> tuple[str, str | None]:
    if kind == "subagent" or path.parent.name != "chats":
        return "subagent", "a sub-agent's own talk; it belongs to its parent"
    if not found.headers and not found.live:
        return "unreadable", "nothing in it could be read as a session"
    if not asked and not any(stands or is_resumable(m) for m, stands in standing(found.live.values())):
        return "empty", "it holds nothing to resume"
    return ("ok" if found.headers else "recovered"), None


def _own_risk(found: Fold, path: Path, state: str) -> str | None:
    """Why the client would take this very file for a corrupted one; None where it reads it as we do."""
    if path.parent.name != "chats":
        return None
    if state in ("empty", "unreadable"):
        return f"{path.name} holds nothing that it can resume"
    plain = found.headers == 1 and not found.damage and not found.marked
    seen = found if plain else read_fold(path, as_client=True)
    if not seen.headers:
        return f"the first line of {path.name} is torn, or begins with a byte order mark"
    if not seen.meta.get("session_id"):
        return f"{path.name} tells no session id"
    if not any(map(is_resumable_to_client, seen.live.values())):
        emptied = f"a second start-up emptied the talk in {path.name}, as the client reads it"
        return f"{path.name} holds nothing that it can resume" if plain else emptied
    if seen.meta.get("kind") == "subagent":
        return f"{path.name} is a sub-agent's own talk, which is not kept in this folder"
    return None


def _client_updated(found: Fold, mtime: float) -> datetime | None:
    told = parse_time(found.meta.get("last_updated"))
    if told is None and found.whole_file:
        return parse_time(found.meta.get("start_time")) or datetime.fromtimestamp(mtime, UTC)
    return told
