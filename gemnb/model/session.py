"""A session, whole (`Session`) and as a row of a listing (`SessionInfo`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from gemnb.model.records import Damage, Header, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The live talk, everything that was ever paid for, and what could not be read: one fold of one file."""

    header: Header
    messages: tuple[Message, ...]
    """The conversation as it stands, in the order of the file."""
    usage: Mapping[str, Message]
    """Every message id ever seen with tokens, its last record; never undone by a rewind or a compression."""
    damage: tuple[Damage, ...] = ()
    path: Path | None = None
    started_at: datetime | None = None
    """Aware UTC: from the header, else the messages, else the file's mtime."""
    last_updated: datetime | None = None
    history: tuple[HistoryStep, ...] = ()
    """Each rewind and each replacement of the talk, in order."""
    first_prompt: str | None = None
    """The first prompt ever seen, for a title where the live talk has none."""

    @property
    def id(self) -> str:
        """The full session id."""
        return self.header.session_id


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A record that took messages out of the talk."""

    kind: str
    """`rewind` or `replace`."""
    before: tuple[str, ...]
    """Ids of the live messages before it."""
    after: tuple[str, ...]
    target: str | None = None
    """The id that a rewind named."""
    messages: tuple[Message, ...] = field(default=(), repr=False)
    """The live messages before it, as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One session as a listing shows it."""

    id: str
    index: int | None = None
    """Its number in the listing, from 1, oldest start first; None for a hidden one."""
    title: str = ""
    summary: str | None = None
    prompt: str | None = None
    """The first prompt of the live talk, as it was typed, on one line."""
    started_at: datetime | None = None
    last_updated: datetime | None = None
    client_updated: datetime | None = None
    """Last change as the terminal client reads it: a time to come is believed, and none at all counts as now."""
    message_count: int = 0
    """Distinct live messages."""
    user_turns: int = 0
    """Prompts of the person in the live talk."""
    is_current: bool = False
    state: str = "ok"
    """`ok`, `at_risk`, `empty`, `subagent`, `recovered`, `unreadable` or `duplicate`."""
    hidden_because: str | None = None
    risk: str | None = None
    """Why the terminal client would delete it at its next start."""
    path: Path
    size_bytes: int = 0
    kind: str = "main"
    damage_count: int = 0
    project_root: str | None = None
    time_note: str | None = None
    """What is odd about its times, and what stands in for them."""

    def __str__(self) -> str:
        number = f"{self.index}. " if self.index else ""
        return f"{number}{self.title} [{self.id}]"
