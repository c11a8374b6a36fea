"""The sessions of one project: listed, numbered, found, loaded, deleted (FORMAT.md 3)."""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from gemnb.errors import (
    AmbiguousSessionError,
    NoSessionsError,
    UnknownSessionError,
    UnreadableSessionError,
)
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import clean_line, is_resumable, prompts, standing, typed_text
from gemnb.store import replay
from gemnb.store.paths import artifacts, is_session_name, kind_of
from gemnb.store.replay import Fold, first_prompt, id_from_name, read_fold, times_of
from gemnb.store.titles import title_of

Clock = Callable[[], datetime]
SHORT_ID = 8
SHORTEST_PREFIX = 4
SHOWN = ("ok", "at_risk", "recovered")
_NUMBER = re.compile(r"[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion did."""

    session_id: str
    title: str
    gone: tuple[Path, ...]
    stayed: tuple[tuple[Path, str], ...] = ()
    """What could not be deleted, and why."""
    purged: bool = False
    """Whether it is gone for good; else it waits in the trash."""

    def __str__(self) -> str:
        kept = "".join(f"\n  stayed: {path} ({why})" for path, why in self.stayed)
        if not self.gone:
            return f"Nothing of {self.title!r} [{self.session_id}] was deleted.{kept}"
        after = "gone for good" if self.purged else "`%sessions delete --undo` brings it back"
        return f"Deleted {self.title!r} [{self.session_id}], {len(self.gone)} files and folders; {after}.{kept}"


class SessionStore:
    """The sessions in the folders of one project; reading leaves them byte for byte as they are."""

    def __init__(self, folders: Callable[[], Sequence[Path]], *, clock: Clock) -> None:
        self._folders = folders
        self._clock = clock

    @property
    def folders(self) -> tuple[Path, ...]:
        """The project's folders that are there, the one of its slug first."""
        return tuple(self._folders())

    def list(self, *, hidden: bool = False, current: str | None = None) -> list[SessionInfo]:
        """The sessions as the client would number them, oldest start first; with `hidden`, the rest after them."""
        rows = [self.inspect(path) for path in self._files()]
        shown, rest = arranged(rows, current=current)
        return shown + rest if hidden else shown

    def inspect(self, path: Path) -> SessionInfo:
        """The file at `path` as a row that has no number yet; nothing in it raises."""
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                return _unreadable(path, "a link or a device, not a file")
            found = read_fold(path, brief=True)
        except (OSError, ValueError) as error:
            return _unreadable(path, str(error))
        return describe(found, path, size=status.st_size, mtime=status.st_mtime, now=self._clock())

    def find(self, identifier: str | int, *, current: str | None = None) -> SessionInfo:
        """The session that `identifier` names; see `resolve`."""
        rows = self.list(hidden=True, current=current)
        return resolve(str(identifier), rows)

    def load(self, info: SessionInfo) -> Session:
        """The whole session.

        Raises:
            UnreadableSessionError: its file cannot be read.
        """
        if kind_of(info.path) != "file":
            raise UnreadableSessionError(f"{info.path} is a link or a device, not a file; it was not opened.")
        try:
            session = replay.read_session(info.path)
        except OSError as error:
            raise UnreadableSessionError(f"{info.path} cannot be read: {error}.") from error
        if session.header.session_id != info.id:
            return replace(session, header=replace(session.header, session_id=info.id))
        return session

    def families(self, rows: Iterable[SessionInfo] | None = None) -> Callable[[SessionInfo], Sequence[Path]]:
        """Gives everything that belongs to a session: its files, older twins, then logs, outputs, sub-agents.

        What belongs to another main session is no part of a family, nor is a twin that lost its header: whose it is
        was worked out from 8 characters.

        Args:
            rows: every session, hidden ones too; else the store is looked through, once.
        """
        files: dict[str, list[Path]] = defaultdict(list)
        for row in self.list(hidden=True) if rows is None else rows:
            if row.state not in ("subagent", "recovered") and kind_of(row.path) == "file":
                files[row.id].append(row.path)
        folders = self.folders

        def family(info: SessionInfo) -> Sequence[Path]:
            own = files.get(info.id, [])
            first = [info.path, *(path for path in own if path != info.path)]
            spared = files.keys() - {info.id}
            return [*first, *(path for folder in folders for path in artifacts(folder, info.id, spared=spared))]

        return family

    def short_ids(self) -> set[str]:
        """The 8 characters that session files end in; a new id must not have them."""
        return {id_from_name(path) for path in self._files()}

    def _files(self) -> Iterator[Path]:
        for folder in self.folders:
            yield from session_files(folder)


def session_files(folder: Path) -> Iterator[Path]:
    """Session files of a project's folder, by name: those of its own, then its sub-agents'."""
    chats = folder / "chats"
    if kind_of(chats) != "folder":
        return
    try:
        names = sorted(os.listdir(chats))  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return
    yield from (chats / name for name in names if is_session_name(name))
    for name in names:
        if not is_session_name(name) and kind_of(chats / name) == "folder":
            try:
                yield from sorted(p for p in (chats / name).iterdir() if p.suffix in (".jsonl", ".json"))
            except OSError:
                continue


def _unreadable(path: Path, why: str) -> SessionInfo:
    return SessionInfo(id=id_from_name(path), path=path, state="unreadable", hidden_because=why)


def describe(found: Fold, path: Path, *, size: int, mtime: float, now: datetime) -> SessionInfo:
    """The row of one file, from its fold."""
    started, updated = times_of(found, mtime)
    note = None
    if updated > now + timedelta(days=1):
        note = f"its lastUpdated ({updated:%Y-%m-%d}) lies in the future; the file's own time stands in"
        updated = datetime.fromtimestamp(mtime, updated.tzinfo)
    own_id = found.meta.get("session_id")
    asked = list(prompts(found.live.values()))
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
        message_count=len(found.live),
        user_turns=len(asked),
        state=state,
        hidden_because=why,
        risk=_own_risk(found, path, state),
        path=path,
        size_bytes=size,
        kind=kind,
        damage_count=len(found.damage),
        time_note=note,
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
    if state == "subagent":
        return None
    if state in ("empty", "unreadable"):
        return f"{path.name} holds nothing that it can resume"
    if found.headers == 1 and not found.damage and not found.marked:
        return None
    seen = read_fold(path, as_client=True)
    if not seen.headers:
        return f"the first line of {path.name} is torn, or begins with a byte order mark"
    if not any(is_resumable(line) for line in seen.live.values()):
        return f"a second start-up emptied the talk in {path.name}, as the client reads it"
    return None


def arranged(rows: Iterable[SessionInfo], *, current: str | None) -> tuple[list[SessionInfo], list[SessionInfo]]:
    """Rows numbered and shown, and the hidden rest; one row for one full id, dangers marked."""
    named = _with_full_ids(list(rows))
    best: dict[str, SessionInfo] = {}
    for row in named:
        if row.state in SHOWN and (row.id not in best or _updated(row) > _updated(best[row.id])):
            best[row.id] = row
    shown = sorted(best.values(), key=lambda row: (_started(row), row.path.name))
    dangers = _dangers(named)
    numbered = [_marked(row, number, dangers, current) for number, row in enumerate(shown, start=1)]
    chosen = {row.path for row in shown}
    rest = [_hidden(row, best) for row in named if row.path not in chosen]
    return numbered, rest


def _with_full_ids(rows: list[SessionInfo]) -> list[SessionInfo]:
    """Give a session that lost its header the full id that a twin of the same 8 characters tells."""
    told: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.state not in ("recovered", "unreadable", "subagent") and len(row.id) > SHORT_ID:
            told[id_from_name(row.path)].add(row.id)
    return [
        replace(row, id=next(iter(told[row.id])))
        if row.state == "recovered" and len(told.get(row.id, ())) == 1
        else row
        for row in rows
    ]


def _dangers(rows: Iterable[SessionInfo]) -> dict[tuple[Path, str], str]:
    """Folder and last 8 characters of a name that the client would clean away, with the reason."""
    found: dict[tuple[Path, str], str] = {}
    for row in rows:
        if row.risk is not None and row.path.parent.name == "chats":
            found.setdefault((row.path.parent, row.path.stem[-SHORT_ID:]), row.risk)
    return found


def _marked(row: SessionInfo, number: int, dangers: dict[tuple[Path, str], str], current: str | None) -> SessionInfo:
    risk = row.risk or dangers.get((row.path.parent, row.path.stem[-SHORT_ID:]))
    state = "at_risk" if risk and row.state == "ok" else row.state
    why = f"The terminal client would delete it at its next start: {risk}." if risk else None
    return replace(row, index=number, state=state, risk=why, is_current=row.id == current)


def _hidden(row: SessionInfo, best: dict[str, SessionInfo]) -> SessionInfo:
    if row.state in SHOWN:
        why = f"the same session as {best[row.id].path.name}, which is newer"
        state = row.state if row.state == "recovered" else "duplicate"
        return replace(row, state=state, hidden_because=why, risk=None)
    return replace(row, risk=None)


def _started(row: SessionInfo) -> datetime:
    assert row.started_at is not None  # shown rows were read
    return row.started_at


def _updated(row: SessionInfo) -> datetime:
    assert row.last_updated is not None
    return row.last_updated


def resolve(identifier: str, rows: Sequence[SessionInfo]) -> SessionInfo:
    """The one of `rows` that `identifier` names: a full id (hidden ones too), a number, a keyword, a prefix.

    Raises:
        NoSessionsError: nothing is listed.
        UnknownSessionError: it names none.
        AmbiguousSessionError: more than one id begins with it.
    """
    wanted = identifier.strip()
    shown = [row for row in rows if row.index is not None]
    for row in (*shown, *(r for r in rows if r.index is None)):
        if row.id == wanted:
            return row
    if not shown:
        raise NoSessionsError
    if _NUMBER.fullmatch(wanted) and len(wanted) < 10 and int(wanted) <= len(shown):
        return shown[int(wanted) - 1]
    if wanted == "latest":
        return max(shown, key=_started)
    if wanted == "last-used":
        return max(shown, key=_updated)
    matches = [row for row in shown if row.id.startswith(wanted)] if len(wanted) >= SHORTEST_PREFIX else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise AmbiguousSessionError(wanted, matches=[row.id for row in matches])
    raise UnknownSessionError(wanted, known=len(shown))
