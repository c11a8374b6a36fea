"""Keeping a conversation that the terminal client would delete at its next start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.model.session import SessionInfo
from gemnb.model.talk import is_injected
from gemnb.store.replay import read_fold
from gemnb.store.trash import Trash
from gemnb.store.trashed import Trashed


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was done for one session."""

    session_id: str
    title: str
    how: str
    """`cause removed`, `copied` (the archive holds it), or `failed`."""
    reason: str
    """Why the client would delete it, or why nothing could be done."""
    paths: tuple[Path, ...] = ()
    """What went to the trash, or was copied."""

    def __str__(self) -> str:
        done = {
            "cause removed": "an empty start-up file of its own went to the trash, so the client has no reason now",
            "copied": "a copy is in the archive; `%sessions rescue --restore` brings it back when the client took it",
            "failed": "nothing could be done",
        }[self.how]
        return f"{self.title} [{self.session_id}]: {done} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Rescue:
    """What was done for every session that was at risk."""

    sessions: tuple[Rescued, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.sessions)) or "No conversation is at risk from the terminal client."


def rescue(
    rows: Sequence[SessionInfo],
    endangered: Mapping[Path, str],
    *,
    wanted: Iterable[SessionInfo],
    family: Callable[[SessionInfo], Sequence[Path]],
    trash: Trash,
    archive: Trash,
    again: Callable[[], Mapping[Path, str]],
) -> Rescue:
    """Take away what makes the client delete the `wanted` sessions, or keep copies of them.

    Args:
        rows: every file of the project, hidden ones too.
        endangered: what the client would delete, and why.
        wanted: the sessions to keep.
        family: everything that belongs to a session.
        trash: where a start-up file goes; an undo brings it back.
        archive: where copies go.
        again: what the client would delete after a change.
    """
    at_risk = [session for session in wanted if session.path in endangered]
    same_id: dict[str, list[SessionInfo]] = defaultdict(list)
    for row in rows:
        same_id[row.id].append(row)
    moved: dict[Path, Sequence[Path]] = {}
    for session in at_risk:
        twins = [row.path for row in same_id[session.id] if _is_startup_twin(row, session)]
        if twins:
            done = trash.put(twins, session_id=session.id, title=session.title, how="rescue", batch=session.id)
            moved[session.path] = done.gone
    left = again() if any(moved.values()) else endangered
    earlier: dict[str, list[Trashed]] = defaultdict(list)
    for entry in archive.entries():
        earlier[entry.session_id].append(entry)
    return Rescue(
        tuple(
            Rescued(session.id, session.title, "cause removed", endangered[session.path], tuple(moved[session.path]))
            if moved.get(session.path) and session.path not in left
            else _copied(session, endangered[session.path], family(session), archive, earlier[session.id])
            for session in at_risk
        )
    )


def _copied(
    session: SessionInfo, reason: str, paths: Sequence[Path], archive: Trash, earlier: Sequence[Trashed]
) -> Rescued:
    copied = archive.keep(paths, session_id=session.id, title=session.title, earlier=earlier)
    if copied.gone:
        return Rescued(session.id, session.title, "copied", reason, copied.gone)
    why = "; ".join(why for _, why in copied.stayed[:1]) or reason
    return Rescued(session.id, session.title, "failed", why)


def _is_startup_twin(row: SessionInfo, session: SessionInfo) -> bool:
    """Whether `row` is a file of the same session in which nobody ever said anything."""
    if row.id != session.id or row.path == session.path or row.state != "empty" or row.damage_count:
        return False
    return all(map(is_injected, read_fold(row.path).known.values()))
