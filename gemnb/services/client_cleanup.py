"""What the terminal client would delete at its next start: it cleans by other rules than ours (FORMAT.md 2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gemnb.model.session import SessionInfo
from gemnb.services.retention import Policy

SHORT_ID = 8


def client_deletions(
    rows: Sequence[SessionInfo], policy: Policy, problem: str | None, *, now: datetime
) -> dict[Path, str]:
    """The session files that the client would delete at its next start, each with the reason.

    Unlike us it counts what it cannot read or resume as corrupted and deletes that at once, lets `minRetention` not
    hold against `maxCount`, and takes along every file whose name ends in the same 8 characters.

    Args:
        rows: every file of the project, hidden ones too.
        policy: of the settings.
        problem: why nothing is cleaned at all.
        now: aware.
    """
    if not policy.enabled or problem is not None:
        return {}
    files = [row for row in rows if row.path.parent.name == "chats"]
    found = {row.path: why for row in files if (why := _corrupted(row))}
    whole = [row for row in files if row.path not in found]
    newest = sorted(whole, key=lambda row: row.last_updated or now, reverse=True)
    for place, row in enumerate(newest):
        if policy.max_age is not None and row.last_updated and now - row.last_updated > policy.max_age:
            found[row.path] = "it is older than maxAge"
        elif policy.max_count is not None and place >= policy.max_count:
            found[row.path] = f"it is not among the newest {policy.max_count} (maxCount)"
    for row in files:
        if row.path not in found and (namesake := _namesake(row.path, found)):
            found[row.path] = f"{namesake.name}, which ends in the same 8 characters, goes: {found[namesake]}"
    return found


def _corrupted(row: SessionInfo) -> str | None:
    if row.state in ("empty", "unreadable"):
        return "it holds nothing that the client can resume"
    return row.risk


def _namesake(path: Path, found: dict[Path, str]) -> Path | None:
    ending = path.stem[-SHORT_ID:]
    return next((other for other in found if other.parent == path.parent and other.stem[-SHORT_ID:] == ending), None)
