"""Keeping a conversation that the terminal client would delete at its next start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.model.session import SessionInfo
from gemnb.model.talk import is_injected
from gemnb.store.replay import read_fold
from gemnb.store.trash import Trash


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
    done: list[Rescued] = []
    for session in wanted:
        reason = endangered.get(session.path)
        if reason is None:
            continue
        twins = [row.path for row in rows if _is_startup_twin(row, session)]
        if twins:
            moved = trash.put(twins, session_id=session.id, title=session.title, how="rescue", batch=session.id)
            if moved.gone and session.path not in again():
                done.append(Rescued(session.id, session.title, "cause removed", reason, moved.gone))
                continue
        copied = archive.keep(family(session), session_id=session.id, title=session.title)
        if copied.gone:
            done.append(Rescued(session.id, session.title, "copied", reason, copied.gone))
        else:
            why = "; ".join(why for _, why in copied.stayed[:1]) or reason
            done.append(Rescued(session.id, session.title, "failed", why))
    return Rescue(tuple(done))


def _is_startup_twin(row: SessionInfo, session: SessionInfo) -> bool:
    """Whether `row` is a file of the same session in which nobody ever said anything."""
    if row.id != session.id or row.path == session.path or row.state != "empty" or row.damage_count:
        return False
    return all(map(is_injected, read_fold(row.path).known.values()))
