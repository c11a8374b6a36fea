"""A plan of what retention would delete, as a value that can be looked at, and its execution (FORMAT.md 5 and 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gemnb.model.session import SessionInfo
from gemnb.services.retention_policy import Policy
from gemnb.services.tool_outputs import OutputCandidate
from gemnb.store.moving import Disposed
from gemnb.store.paths import is_gone


@dataclass(frozen=True, slots=True)
class Candidate:
    """One session, and what the policy says of it."""

    session: SessionInfo
    decision: str
    """`keep` or `delete`."""
    reason: str
    due_at: datetime | None
    """When it falls due by its age; None where nothing makes it so."""
    paths: tuple[Path, ...]
    """Everything that would go with it."""
    size_bytes: int = 0
    artifacts_bytes: int = 0
    age_days: float | None = None
    client_reason: str | None = None
    """Why the terminal client would delete it at its next start; None where it would not."""
    marks: tuple[tuple[int, int, int] | None, ...] = ()
    """Size, time and inode of each of `paths` when the plan was made."""

    @property
    def session_id(self) -> str:
        """The full id."""
        return self.session.id


GONE_ALREADY = "it is gone already"
Delete = Callable[[Candidate, bool], Disposed]
DeleteOutputs = Callable[[Sequence[Path], bool], Disposed]


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What the execution of a plan did."""

    scanned: int = 0
    deleted: int = 0
    skipped: int = 0
    failed: int = 0
    gone: tuple[Path, ...] = ()
    stayed: tuple[tuple[Path, str], ...] = ()
    """What was left although the plan had it, and why."""
    purged: bool = False
    """Whether they are gone for good; else they wait in the trash."""
    outputs: int = 0
    """Tool outputs that went by their own age or count; what is counted above are sessions."""
    vanished: int = 0
    """Of those skipped: sessions that another program deleted since the plan was made."""

    problem: str | None = None
    """Why nothing is cleaned at all, where the settings make no sense."""

    def __str__(self) -> str:
        if self.problem:
            return f"Nothing is cleaned: {self.problem} `%sessions retention` tells the policy."
        kept = self.skipped - self.vanished
        told = f"{self.deleted} sessions deleted, {kept} kept, {self.failed} failed, of {self.scanned}."
        told += f" {self.vanished} were gone already." if self.vanished else ""
        told += f" {self.outputs} tool outputs went by their own age or count." if self.outputs else ""
        if (self.deleted or self.outputs) and not self.purged:
            told += " `%sessions retention --undo` brings them back."
        return "\n".join([told, *(f"  stayed: {path} ({why})" for path, why in self.stayed)])


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Every session with what would happen to it; nothing has happened yet."""

    policy: Policy
    problem: str | None
    """Why nothing is cleaned at all, where the settings make no sense."""
    candidates: tuple[Candidate, ...]
    _delete: Delete = field(repr=False, default=lambda _candidate, _purge: Disposed())
    """Deletes one, for good where told."""
    outputs: tuple[OutputCandidate, ...] = ()
    """Every tool output that does not go with one of `candidates`, and what the policy says of it."""
    _delete_outputs: DeleteOutputs = field(repr=False, default=lambda _paths, _purge: Disposed())
    _done: Callable[[CleanupResult], None] = field(repr=False, default=lambda _result: None)
    """Is told what an execution did."""

    @property
    def due(self) -> tuple[Candidate, ...]:
        """Those that would go."""
        return tuple(c for c in self.candidates if c.decision == "delete")

    @property
    def due_outputs(self) -> tuple[OutputCandidate, ...]:
        """The tool outputs that would go by their own age or count."""
        return tuple(c for c in self.outputs if c.decision == "delete")

    @property
    def endangered(self) -> tuple[Candidate, ...]:
        """Those that this plan keeps and the terminal client would delete at its next start."""
        return tuple(c for c in self.candidates if c.decision == "keep" and c.client_reason)

    @property
    def notice(self) -> str | None:
        """What a person should know, in a line; None where there is nothing."""
        told = []
        if self.due:
            size = sum(c.size_bytes + c.artifacts_bytes for c in self.due)
            told.append(
                f"{len(self.due)} of {len(self.candidates)} sessions are past the retention of your settings"
                f" ({size:,} bytes; nothing was deleted): `%sessions retention`."
            )
        if self.due_outputs:
            size = sum(c.output.size_bytes for c in self.due_outputs)
            told.append(f"{len(self.due_outputs)} tool outputs are past it, too ({size:,} bytes).")
        if self.endangered:
            told.append(
                f"The terminal client would delete {len(self.endangered)} that stay, when it starts:"
                " `%sessions rescue` keeps them."
            )
        return " ".join(told) or None

    def apply(self, *, purge: bool = False) -> CleanupResult:
        """Do exactly this plan; what changed since it was made is left alone and counted. One failure stops nothing.

        Args:
            purge: delete for good; else it goes to the trash, and `ws.undo_deletion("retention")` brings it back.
        """
        gone: list[Path] = []
        stayed: list[tuple[Path, str]] = []
        failed = deleted = vanished = 0
        for candidate in self.due:
            if why := _changed(candidate):
                stayed.append((candidate.session.path, why))
                vanished += why == GONE_ALREADY
                continue
            done = self._delete(candidate, purge)
            gone += done.gone
            stayed += [*done.stayed, *((path, GONE_ALREADY) for path in done.missing)]
            if done.stayed:
                failed += 1
            elif candidate.session.path in done.missing:  # another program was faster: it is its deletion
                vanished += 1
            else:
                deleted += 1
        outputs = self._apply_outputs(purge, gone, stayed)
        total = len(self.candidates)
        skipped = total - deleted - failed
        result = CleanupResult(
            total, deleted, skipped, failed, tuple(gone), tuple(stayed), purge, outputs, vanished, self.problem
        )
        if gone or stayed:
            self._done(result)
        return result

    def _apply_outputs(self, purge: bool, gone: list[Path], stayed: list[tuple[Path, str]]) -> int:
        """Delete the outputs that are due, add to what is gone and what stayed; how many went."""
        changed = {c.output.path: why for c in self.due_outputs if (why := c.change)}
        paths = [c.output.path for c in self.due_outputs if c.output.path not in changed]
        done = self._delete_outputs(paths, purge) if paths else Disposed()
        gone += done.gone
        stayed += [*changed.items(), *done.stayed, *((path, GONE_ALREADY) for path in done.missing)]
        return len(done.gone)

    def __str__(self) -> str:
        if self.problem:
            return (
                f"Nothing is cleaned: {self.problem}\nPolicy: {self.policy}\n"
                "Mend the settings, then look again: `%sessions retention`."
            )
        size = sum(c.size_bytes + c.artifacts_bytes for c in self.due)
        lines = [
            f"Policy: {self.policy}",
            f"{len(self.due)} of {len(self.candidates)} sessions would go"
            + (f", {size:,} bytes:" if self.due else "."),
        ]
        lines += [
            f"  {c.session.title} [{c.session_id}] {c.size_bytes + c.artifacts_bytes:,} bytes: {c.reason}"
            for c in self.due
        ]
        if not self.policy.enabled:
            lines[1:] = ["Cleaning is off in your settings: nothing goes."]
        if self.due_outputs:
            lines.append(f"{len(self.due_outputs)} tool outputs would go by their own age or count:")
            lines += [f"  {c.output.path} {c.output.size_bytes:,} bytes: {c.reason}" for c in self.due_outputs]
        if self.due or self.due_outputs:
            lines.append("`%sessions retention --apply` moves them to the trash; `--undo` brings them back.")
        soon = [c for c in self.candidates if c.decision == "keep" and c.due_at]
        if soon:
            following = min(soon, key=lambda c: c.due_at or datetime.max)
            lines.append(f"Next falls due: {following.session.title} on {following.due_at:%Y-%m-%d}.")
        if self.endangered:
            lines.append("The terminal client would delete these, too, when it starts (`%sessions rescue` keeps them):")
            lines += [f"  {c.session.title} [{c.session_id}]: {c.client_reason}" for c in self.endangered]
        return "\n".join(lines)


def _changed(candidate: Candidate) -> str | None:
    """Why the session, or what belongs to it, is not as it was planned; None where all of it is."""
    now = tuple(map(mark_of, candidate.paths))
    if is_gone(candidate.session.path):  # after the look: another program may be at it just now, its file first
        return GONE_ALREADY
    return None if now == candidate.marks else "it was changed since the plan was made"


def mark_of(path: Path) -> tuple[int, int, int] | None:
    """Size, time and inode of what is there: whether it changed shows in them; None where nothing can be looked at."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
