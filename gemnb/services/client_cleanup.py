"""What the terminal client would delete at its next start: it cleans by other rules than ours (FORMAT.md 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gemnb.model.session import SessionInfo
from gemnb.services.retention_policy import DEFAULT_MINIMUM, PREFIX, parse_age
from gemnb.store.sessions import client_name
from gemnb.store.settings import Settings


@dataclass(frozen=True, slots=True)
class ClientPolicy:
    """What the client makes of the settings; where they disable its cleaning there is none."""

    max_age: timedelta | None
    max_count: int | None


def client_policy(settings: Settings) -> ClientPolicy | None:
    """The client's reading of `settings`: it goes on where we stop, with half a session or any value that is not false.

    A settings file that cannot be parsed stops its start, so nothing is cleaned.
    """
    told = {name: settings.get(PREFIX + name) for name in ("enabled", "maxAge", "maxCount", "minRetention")}
    enabled, age, count, least = (told[name].value for name in told)
    if not enabled or settings.problems:
        return None
    max_age = None
    if age:
        minimum = parse_age(least) if isinstance(least, str) else None
        max_age = parse_age(age) if isinstance(age, str) else None
        if max_age is None or max_age < (minimum or DEFAULT_MINIMUM):
            return None
    if told["maxCount"].source == "default":
        return ClientPolicy(max_age, None) if max_age else None
    if not isinstance(count, int | float) or not 1 <= count < math.inf:
        return None
    return ClientPolicy(max_age, math.ceil(count))


def client_deletions(rows: Sequence[SessionInfo], settings: Settings, *, now: datetime) -> dict[Path, str]:
    """The session files that the client would delete at its next start, each with the reason.

    Unlike us it counts what it cannot read or resume as corrupted and deletes that at once, lets `minRetention` not
    hold against `maxCount`, and takes along every file whose name ends in the same 8 characters.

    Args:
        rows: every file of the project, hidden ones too.
        settings: the merged ones.
        now: aware.
    """
    policy = client_policy(settings)
    if policy is None:
        return {}
    files = [row for row in rows if row.path.parent.name == "chats"]
    found = {row.path: why for row in files if (why := _corrupted(row))}
    whole = [row for row in files if row.path not in found]
    newest = sorted(whole, key=lambda row: row.client_updated or now, reverse=True)
    for place, row in enumerate(newest):
        if policy.max_age is not None and now - (row.client_updated or now) > policy.max_age:
            found[row.path] = "it is older than maxAge"
        elif policy.max_count is not None and place >= policy.max_count:
            found[row.path] = f"it is not among the newest {policy.max_count} (maxCount)"
    first: dict[tuple[Path, str], Path] = {}
    for path in found:
        first.setdefault(client_name(path), path)
    for row in files:
        if row.path not in found and (namesake := first.get(client_name(row.path))):
            found[row.path] = f"{namesake.name}, which ends in the same 8 characters, goes: {found[namesake]}"
    return found


def _corrupted(row: SessionInfo) -> str | None:
    if row.state in ("empty", "unreadable"):
        return "it holds nothing that the client can resume"
    return row.risk
