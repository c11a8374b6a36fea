"""Retention: a policy from the settings, a plan that can be looked at, and its execution (FORMAT.md 5 and 8)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from gemnb.model.session import SessionInfo
from gemnb.store.settings import Settings

PREFIX = "general.sessionRetention."
SETTLED = timedelta(minutes=5)
"""A session that was changed within this time may be in use; it stays."""
DEFAULT_MINIMUM = timedelta(days=1)
_AGE = re.compile(r"([0-9]+)([hdwm])")
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 720}
_LONGEST = timedelta(days=999_999)


@dataclass(frozen=True, slots=True)
class Policy:
    """What may go: older than `max_age`, or beyond the newest `max_count`; never younger than `minimum`."""

    enabled: bool
    max_age: timedelta | None
    max_count: int | None
    minimum: timedelta
    sources: tuple[tuple[str, str], ...] = ()
    """Each value, and where it came from."""

    def __str__(self) -> str:
        return "; ".join(f"{value} ({source})" for value, source in self.sources)


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


Delete = Callable[[Candidate, bool], Sequence[tuple[Path, str]]]


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

    def __str__(self) -> str:
        told = f"{self.deleted} sessions deleted, {self.skipped} kept, {self.failed} failed, of {self.scanned}."
        if self.deleted and not self.purged:
            told += " `%sessions retention --undo` brings them back."
        return "\n".join([told, *(f"  stayed: {path} ({why})" for path, why in self.stayed)])


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """Every session with what would happen to it; nothing has happened yet."""

    policy: Policy
    problem: str | None
    """Why nothing is cleaned at all, where the settings make no sense."""
    candidates: tuple[Candidate, ...]
    _delete: Delete = field(repr=False, default=lambda _candidate, _purge: ())
    """Deletes one, for good where told; gives what stayed and why."""

    @property
    def due(self) -> tuple[Candidate, ...]:
        """Those that would go."""
        return tuple(c for c in self.candidates if c.decision == "delete")

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
        failed = deleted = 0
        for candidate in self.due:
            if why := _changed(candidate):
                stayed.append((candidate.session.path, why))
                continue
            left = self._delete(candidate, purge)
            failed += bool(left)
            deleted += not left
            stayed += left
            kept = {path for path, _ in left}
            gone += [path for path in candidate.paths if path not in kept]
        total = len(self.candidates)
        return CleanupResult(total, deleted, total - deleted - failed, failed, tuple(gone), tuple(stayed), purge)

    def __str__(self) -> str:
        if self.problem:
            return f"Nothing is cleaned: {self.problem}"
        size = sum(c.size_bytes + c.artifacts_bytes for c in self.due)
        lines = [
            f"Policy: {self.policy}",
            f"{len(self.due)} of {len(self.candidates)} sessions would go, {size:,} bytes:",
        ]
        lines += [
            f"  {c.session.title} [{c.session_id}] {c.size_bytes + c.artifacts_bytes:,} bytes: {c.reason}"
            for c in self.due
        ]
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
    if _mark(candidate.session.path) is None:
        return "it is gone already"
    now = tuple(map(_mark, candidate.paths))
    return None if now == candidate.marks else "it was changed since the plan was made"


def _mark(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def policy_of(settings: Settings) -> tuple[Policy, str | None]:
    """The policy that the settings make, and why cleaning as a whole is off where they make no sense."""
    told = {name: settings.get(PREFIX + name) for name in ("enabled", "maxAge", "maxCount", "minRetention")}
    enabled, age, count, least = (told[name].value for name in told)
    minimum = parse_age(least) if isinstance(least, str) else None
    max_age = parse_age(age) if isinstance(age, str) and age else None
    max_count = count if isinstance(count, int) and not isinstance(count, bool) else None
    policy = Policy(
        enabled is True,
        max_age,
        max_count,
        minimum or DEFAULT_MINIMUM,
        tuple(
            (
                f"{name} = {setting.value!r}",
                setting.source if name != "minRetention" or minimum else "not understood: 1d",
            )
            for name, setting in told.items()
        ),
    )
    if enabled is False:
        return policy, None
    if settings.problems:  # the file that cannot be read may be the one that says to keep everything
        return policy, settings.problems[0]
    return policy, _problem(policy, enabled, age, count)


def _problem(policy: Policy, enabled: object, age: object, count: object) -> str | None:
    if enabled is not True:
        return f"sessionRetention.enabled is {enabled!r}; give true or false."
    if not isinstance(age, str | None):
        return f'sessionRetention.maxAge is {age!r}; give a text such as "30d".'
    if age and policy.max_age is None:
        return f'sessionRetention.maxAge is {age!r}; give a number and one of h, d, w, m, such as "30d".'
    if count is not None and policy.max_count is None:
        return f"sessionRetention.maxCount is {count!r}; give a whole number."
    if policy.max_count is not None and policy.max_count < 1:
        return f"sessionRetention.maxCount is {count!r}; give 1 or more."
    if policy.max_age is None and policy.max_count is None:
        return "sessionRetention has neither maxAge nor maxCount; give one of them."
    if policy.max_age is not None and policy.max_age < policy.minimum:
        return f"sessionRetention.maxAge ({age}) is shorter than minRetention; give a longer one."
    return None


def parse_age(text: str) -> timedelta | None:
    """An age such as `30d`: ASCII digits and one of h, d, w, m (a month is 30 days), more than 0; else None."""
    match = _AGE.fullmatch(text)
    digits = match[1].lstrip("0") if match else ""
    if match is None or not digits:
        return None
    hours = int(digits[:15]) * _HOURS[match[2]]
    return min(timedelta(hours=hours), _LONGEST) if hours < _LONGEST.days * 24 else _LONGEST


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
