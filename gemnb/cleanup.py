"""What goes from one project's store, what comes back, and what is kept from the terminal client."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from gemnb.errors import CurrentSessionError, SessionError
from gemnb.model.session import SessionInfo
from gemnb.services import retention
from gemnb.services.client_cleanup import client_deletions
from gemnb.services.rescue import Rescue, rescue
from gemnb.services.retention_plan import GONE_ALREADY, Candidate, CleanupResult, RetentionPlan
from gemnb.services.retention_policy import policy_of
from gemnb.services.tool_outputs import plan_outputs
from gemnb.store import last_cleaning
from gemnb.store.last_cleaning import LastCleaning
from gemnb.store.moving import Disposed, dispose, remove
from gemnb.store.outputs import tool_outputs
from gemnb.store.replay import id_from_name
from gemnb.store.sessions import SHORT_ID, Deleted, SessionStore
from gemnb.store.settings import Settings
from gemnb.store.trash import Restored, Trash

TRASH_DAYS = 30


class Cleanup:
    """Deletion, retention and rescue for the sessions of one project.

    Args:
        store: the project's sessions.
        own: gemnb's own folder for this store, outside it; gets `trash/` and `archive/`.
        home: the folder that holds `.gemini`.
        settings: reads the merged settings.
        current: the id of the current session, which never goes.
        clock: aware time.
    """

    def __init__(
        self,
        store: SessionStore,
        *,
        own: Path,
        home: Path,
        settings: Callable[[], Settings],
        current: Callable[[], str | None],
        clock: Callable[[], datetime],
    ) -> None:
        self.store = store
        self.own = own
        sessions = home / ".gemini" / "tmp"
        self.trash = Trash(own / "trash", store=sessions, clock=clock)
        self.archive = Trash(own / "archive", store=sessions, clock=clock)
        self.trash_days = TRASH_DAYS
        """Days that a deleted session can be brought back; what is older goes with the next deletion."""
        self.shown: Mapping[int, str] = {}
        """The numbers of the list that was shown last, each with its id."""
        self._settings = settings
        self._current = current
        self._clock = clock
        self._batch: str | None = None

    def delete(self, info: SessionInfo, *, purge: bool) -> Deleted:
        """Move a session with all that belongs to it to the trash, or delete it for good.

        Raises:
            CurrentSessionError: it is the current one.
        """
        if info.id == self._current():
            raise CurrentSessionError(f"{info.title!r} is the current session; resume or start another one first.")
        done = self._dispose(
            info, self.store.families(self._rows())(info), how="delete", batch=uuid.uuid4().hex, purge=purge
        )
        stayed = (*done.stayed, *((path, GONE_ALREADY) for path in done.missing))
        return Deleted(info.id, _title_of(info), done.gone, stayed, purge)

    def check_shown(self, info: SessionInfo) -> None:
        """See that the number of `info` meant it in the list that was shown, too: numbers move when sessions go.

        Raises:
            SessionError: it was another one's.
        """
        if info.index is not None and self.shown.get(info.index, info.id) != info.id:
            raise SessionError(
                f"The list has changed since it was shown: {info.index} is {info.title!r} [{info.id}] now. Nothing was"
                " deleted: give an id, or look at the list again with `%sessions`."
            )

    def undo(self, how: str | None) -> Restored:
        """Bring back the last deletion, of the kind `how`."""
        return self.trash.undo(how)

    def plan(self) -> RetentionPlan:
        """What the settings' retention would delete, what the terminal client would, and why."""
        return self._plan(self._rows())

    def _plan(self, rows: Sequence[SessionInfo]) -> RetentionPlan:
        settings = self._settings()
        policy, problem = policy_of(settings)
        now, batch = self._clock(), uuid.uuid4().hex
        plan = retention.plan(
            [row for row in rows if row.index is not None],
            policy,
            problem,
            now=now,
            family=self.store.families(rows),
            delete=partial(self._clean_one, batch),
            client=client_deletions(rows, settings, now=now),
        )
        if problem or not policy.enabled:
            return plan
        found = [output for folder in self.store.folders for output in tool_outputs(folder)]
        outputs = plan_outputs(found, policy, now=now, spared=self._spared(plan, rows))
        return replace(plan, outputs=outputs, _delete_outputs=partial(self._clean_outputs, batch), _done=self._note)

    def _note(self, done: CleanupResult) -> None:
        at = self._clock().astimezone(UTC).isoformat()
        project = self.store.folders[0].name if self.store.folders else ""
        told = LastCleaning(at, project, done.deleted, done.skipped, done.failed, done.outputs, done.purged)
        last_cleaning.write(self.own, told)

    def _spared(self, plan: RetentionPlan, rows: Sequence[SessionInfo]) -> Callable[[str], bool]:
        """Tells of a session's id whether its outputs stay or go with it: all but those of a whole one that is kept."""
        due = {candidate.session_id for candidate in plan.due}
        odd = {row.id for row in rows if row.is_current or row.state not in ("ok", "at_risk", "duplicate")}
        short = tuple(id for id in odd if len(id) <= SHORT_ID)  # the rest of it is not known, or only guessed
        short += tuple(id_from_name(row.path) for row in rows if row.state == "recovered")
        kept = due | odd | {self._current()}
        return lambda id: id in kept or id.startswith(short)

    def endangered(self) -> Mapping[Path, str]:
        """The session files that the terminal client would delete at its next start, each with the reason."""
        return client_deletions(self._rows(), self._settings(), now=self._clock())

    def _rows(self) -> Sequence[SessionInfo]:
        return self.store.list(hidden=True, current=self._current())

    def rescue(self, wanted: SessionInfo | None) -> Rescue:
        """Keep `wanted` from the terminal client; None for every session that our own policy keeps."""
        rows = self._rows()
        kept = [c.session for c in self._plan(rows).candidates if c.decision == "keep"] if wanted is None else [wanted]
        return rescue(
            rows,
            self.endangered(),
            wanted=kept,
            family=self.store.families(rows),
            trash=self.trash,
            archive=self.archive,
            again=self.endangered,
        )

    def restore_rescued(self) -> Restored:
        """Bring back what the archive holds and the store has no more.

        Raises:
            TrashError: something stands in the way; nothing was moved.
        """
        lost = [entry for entry in self.archive.entries() if not entry.paths[0].exists()]
        return self.archive.restore(lost)

    def _clean_one(self, batch: str, candidate: Candidate, purge: bool) -> Disposed:
        """Delete what a plan says of one session, unless it became the current one meanwhile."""
        if candidate.session_id == self._current():
            return Disposed(stayed=((candidate.session.path, "it is the current session now"),))
        return self._dispose(candidate.session, candidate.paths, how="retention", batch=batch, purge=purge)

    def _clean_outputs(self, batch: str, paths: Sequence[Path], purge: bool) -> Disposed:
        nobody = SessionInfo(id="", title="tool outputs", path=paths[0])
        return self._dispose(nobody, paths, how="retention", batch=batch, purge=purge)

    def _dispose(self, info: SessionInfo, paths: Sequence[Path], *, how: str, batch: str, purge: bool) -> Disposed:
        if batch != self._batch:  # once for all that goes together
            self._batch = batch
            self.trash.purge(timedelta(days=self.trash_days))
        if purge:
            return dispose(paths, remove)
        return self.trash.put(paths, session_id=info.id, title=_title_of(info), how=how, batch=batch)


def _title_of(info: SessionInfo) -> str:
    """Its title; of one that cannot be read, the name of its file."""
    return info.title or info.path.name
