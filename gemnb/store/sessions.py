"""The sessions of one project: listed, numbered, found, loaded, deleted (FORMAT.md 3)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from gemnb.errors import (
    AmbiguousSessionError,
    NoSessionsError,
    UnknownSessionError,
    UnreadableSessionError,
)
from gemnb.model.ledger import Ledger
from gemnb.model.progress import Progress
from gemnb.model.session import Session, SessionInfo
from gemnb.store import replay
from gemnb.store.index import Index
from gemnb.store.ledgers import ledgers_of
from gemnb.store.paths import artifacts, kind_of, short_id_of
from gemnb.store.replay import id_from_name
from gemnb.store.rows import rows_of, session_files

Clock = Callable[[], datetime]
Dangers = dict[str, dict[Path, str]]
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
        return f"Deleted {self.title!r} [{self.session_id}], files and folders: {len(self.gone)}; {after}.{kept}"


class SessionStore:
    """The sessions in the folders of one project; reading leaves them byte for byte as they are.

    Args:
        folders: gives the folders.
        clock: aware time.
        index: what was read of files that did not change since; without it all are read.
        progress: gives whoever is told how far the reading is.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[Path]],
        *,
        clock: Clock,
        index: Index | None = None,
        progress: Callable[[], Progress | None] = lambda: None,
    ) -> None:
        self._folders = folders
        self._clock = clock
        self._index = index
        self._progress = progress

    @property
    def folders(self) -> tuple[Path, ...]:
        """The project's folders that are there, the one of its slug first."""
        return tuple(self._folders())

    def list(self, *, hidden: bool = False, current: str | None = None) -> list[SessionInfo]:
        """The sessions as the client would number them, oldest start first; with `hidden`, the rest after them."""
        now = self._clock()
        told = self._progress()
        rows = [r for folder in self.folders for r in rows_of(folder, index=self._index, now=now, progress=told)]
        shown, rest = arranged(rows, current=current)
        return shown + rest if hidden else shown

    def ledgers(self, *, calls: bool = False, current: str | None = None) -> Sequence[tuple[SessionInfo, Ledger]]:
        """Every session that can be read, hidden ones after the others, with its ledger; each file is read once.

        With `calls` each tool call is measured; else only its end is told.
        """
        read = partial(ledgers_of, index=self._index, now=self._clock(), calls=calls, progress=self._progress())
        found = [one for folder in self.folders for one in read(folder)]
        ledgers = {row.path: ledger for row, ledger in found}
        shown, rest = arranged((row for row, _ in found), current=current)
        return [(row, ledger) for row in (*shown, *rest) if row.state != "unreadable" and (ledger := ledgers[row.path])]

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
            raise UnreadableSessionError(
                f"{info.path} is a link or a device, not a file; it was not opened. Put a file in its place."
            )
        try:
            session = replay.read_session(info.path)
        except OSError as error:
            raise UnreadableSessionError(
                f"{info.path} cannot be read: {error}. Make it readable, then try again."
            ) from error
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
        return {id_from_name(path) for folder in self.folders for path in session_files(folder)}


def arranged(rows: Iterable[SessionInfo], *, current: str | None) -> tuple[list[SessionInfo], list[SessionInfo]]:
    """Rows numbered and shown, and the hidden rest; one row for one full id, dangers marked.

    The rows are the listing's from here on: they are numbered as they are, not copied.
    """
    named = _with_full_ids(list(rows))
    best: dict[str, SessionInfo] = {}
    for row in named:
        if row.state in SHOWN and (row.id not in best or _updated(row) > _updated(best[row.id])):
            best[row.id] = row
    shown = sorted(best.values(), key=lambda row: (_started(row), row.path.name))
    dangers = _dangers(named)
    numbered = [_marked(row, number, dangers, current) for number, row in enumerate(shown, start=1)]
    chosen = {id(row) for row in shown}
    rest = [_hidden(row, best, dangers) for row in named if id(row) not in chosen]
    return numbered, rest


def _with_full_ids(rows: list[SessionInfo]) -> list[SessionInfo]:
    """Give a session that lost its header the full id that a twin of the same 8 characters tells."""
    if not any(row.state == "recovered" for row in rows):
        return rows
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


def _dangers(rows: Iterable[SessionInfo]) -> Dangers:
    """What the client would clean away, by the name that it goes by and its folder, with the reason."""
    found: Dangers = defaultdict(dict)
    for row in rows:
        if row.risk is not None:
            folder, name = client_name(row.path)
            found[name].setdefault(folder, row.risk)
    return found


def client_name(path: Path) -> tuple[Path, str]:
    """What the client knows a session file by: files that have the same go together."""
    return path.parent, _name_to_client(path)


def _name_to_client(path: Path) -> str:
    return short_id_of(path.name) or path.name


def _marked(row: SessionInfo, number: int, dangers: Dangers, current: str | None) -> SessionInfo:
    if risk := _risk(row, dangers):
        row = replace(row, state="at_risk" if row.state == "ok" else row.state, risk=risk)
    object.__setattr__(row, "index", number)  # nobody else has it yet, and copies would cost as much as all the rest
    object.__setattr__(row, "is_current", row.id == current)
    return row


def _risk(row: SessionInfo, dangers: Dangers) -> str | None:
    risk = row.risk
    if dangers and risk is None and (there := dangers.get(_name_to_client(row.path))):
        risk = there.get(row.path.parent)
    return f"The terminal client would delete it at its next start: {risk}." if risk else None


def _hidden(row: SessionInfo, best: dict[str, SessionInfo], dangers: Dangers) -> SessionInfo:
    risk = _risk(row, dangers)
    if row.state in SHOWN:
        why = f"the same session as {best[row.id].path.name}, which is newer"
        state = row.state if row.state == "recovered" else "duplicate"
        return replace(row, state=state, hidden_because=why, risk=risk)
    return replace(row, risk=risk) if risk else row


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
