"""Retention: what a policy says of each session (FORMAT.md 5 and 8)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from gemnb.model.session import SessionInfo
from gemnb.services.retention_plan import Candidate, Delete, RetentionPlan, mark_of
from gemnb.services.retention_policy import SETTLED, Policy


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
        marks=tuple(map(mark_of, paths)),
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
            mark[0] for folder, _, names in os.walk(path) for name in names if (mark := mark_of(Path(folder, name)))
        )
    mark = mark_of(path)
    return mark[0] if mark else 0
