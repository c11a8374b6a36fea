"""Retention: a plan that can be looked at, and its execution (FORMAT.md 5 and 8)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from gemnb.model.session import SessionInfo
from gemnb.services.retention_policy import SETTLED, Policy
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
    now = tuple(map(_mark, candidate.paths))
    if is_gone(candidate.session.path):  # after the look: another program may be at it just now, its file first
        return GONE_ALREADY
    return None if now == candidate.marks else "it was changed since the plan was made"


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def plan(
    rows: Sequence[SessionInfo],
    policy: Policy,
    problem: str | None,
    *,
    now: datetime,
    family: Callable[[SessionInfo], Sequence[Path]],
    delete: Delete,
    client: Mapping[Path, str] = MappingProxyType({}),
) -> RetentionPlan:
    """What `policy` says of each of `rows`.

    `client` has the files that the terminal client would delete, with its reasons. Only whole, listed sessions are
    candidates: what is hidden, recovered, current or was changed a moment ago stays.
    """
    newest = sorted(rows, key=lambda row: (row.last_updated or now, row.path.name), reverse=True)
    kept = {row.path for row in newest if row.is_current}
    for row in newest:
        if policy.max_count is not None and len(kept) < policy.max_count:
            kept.add(row.path)
    active = policy.enabled and problem is None
    candidates = [
        _candidate(row, policy, kept, now, family) if active else _kept(row, "cleaning is off", now) for row in rows
    ]
    told = tuple(replace(c, client_reason=client.get(c.session.path)) for c in candidates)
    return RetentionPlan(policy, problem, told, delete)


def _candidate(
    row: SessionInfo, policy: Policy, kept: set[Path], now: datetime, family: Callable[[SessionInfo], Sequence[Path]]
) -> Candidate:
    updated = row.last_updated or now
    age = now - updated
    due = _plus(updated, max(policy.max_age, policy.minimum)) if policy.max_age is not None else None
    if row.is_current:
        return _kept(row, "it is the current session", now)
    if row.state not in ("ok", "at_risk"):
        return _kept(row, f"it is {row.state}: for a person to look at", now)
    if age < policy.minimum:
        return _kept(row, "it is younger than minRetention", now, due)
    old = policy.max_age is not None and age > policy.max_age
    beyond = policy.max_count is not None and row.path not in kept
    if not old and not beyond:
        return _kept(row, "it is within the policy", now, due)
    reason = f"last used {age.days} days ago, older than maxAge" if old else "beyond the newest maxCount"
    note = f"; {row.time_note}" if row.time_note else ""
    paths = tuple(family(row))
    if any(now.timestamp() - _mtime(path, now) < SETTLED.total_seconds() for path in paths):
        return _kept(row, "it, or what belongs to it, was changed a moment ago", now)
    sizes = sum(map(_size, paths))
    return Candidate(
        row,
        "delete",
        reason + note,
        now,
        paths,
        row.size_bytes,
        max(sizes - row.size_bytes, 0),
        age / timedelta(days=1),
        marks=tuple(map(_mark, paths)),
    )


def _kept(row: SessionInfo, reason: str, now: datetime, due: datetime | None = None) -> Candidate:
    age = (now - row.last_updated) / timedelta(days=1) if row.last_updated else None
    return Candidate(row, "keep", reason, due, (), row.size_bytes, 0, age)


def _plus(at: datetime, age: timedelta) -> datetime | None:
    try:
        return at + age
    except OverflowError:
        return None


def _mtime(path: Path, now: datetime) -> float:
    """When the file was changed; a moment ago where nobody knows."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return now.timestamp()


def _size(path: Path) -> int:
    """Bytes of a file, or of all in a folder; what cannot be looked at counts nothing."""
    if path.is_dir() and not path.is_symlink():
        return sum(
            mark[0] for folder, _, names in os.walk(path) for name in names if (mark := _mark(Path(folder, name)))
        )
    mark = _mark(path)
    return mark[0] if mark else 0
