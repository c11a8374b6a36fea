"""A listing of sessions as a value: a list whose text form is the client's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gemnb.model.records import Message
from gemnb.model.session import SessionInfo
from gemnb.model.shown import clean_line
from gemnb.model.talk import prompts, typed_text
from gemnb.services.search import Hit
from gemnb.store.titles import age_of, shorten

HOW = "`%resume 1` goes on with the first, `%resume latest` with the last begun."


class SessionList(list[SessionInfo]):
    """The sessions of one or more projects, in the order of their numbers.

    Args:
        sessions: the rows.
        now: what ages are told from.
        where: what was looked through, as one would say it.
    """

    def __init__(self, sessions: Iterable[SessionInfo], *, now: datetime, where: str = "in this project") -> None:
        super().__init__(sessions)
        self.now = now
        self.where = where

    def __repr__(self) -> str:
        return "\n".join([*(self.line(row) for row in self), HOW]) if self else self.nothing

    @property
    def nothing(self) -> str:
        """What is said where there are none."""
        return f"No sessions yet {self.where}: `%%gemini` starts one."

    def line(self, row: SessionInfo) -> str:
        """One row: number, title, age, marks, full id."""
        number = f"{row.index:>3}." if row.index else "   -"
        project = f" {clean_line(row.project_root)}:" if row.project_root else ""
        return f"{number}{project} {row.title} ({', '.join(self.marks(row))}) [{clean_line(row.id)}]"

    def marks(self, row: SessionInfo) -> list[str]:
        """Its age, and what is to know of it."""
        found = [age_of(row.last_updated, self.now)] if row.last_updated else []
        found += ["current"] if row.is_current else []
        return [*found, *notes_of(row)]


def notes_of(row: SessionInfo) -> list[str]:
    """What is to know of a session beside its title and age, each on one line."""
    found = [clean_line(note) for note in (row.hidden_because, row.risk, row.time_note) if note]
    if row.state == "recovered":
        found.append("recovered: its first line is lost")
    if row.damage_count:
        found.append(f"{row.damage_count} damaged line{'s' if row.damage_count > 1 else ''}")
    return found


class PromptList(list[str]):
    """The prompts of a talk, each on one line; their numbers are those that a rewind takes."""

    @classmethod
    def of(cls, messages: Iterable[Message]) -> PromptList:
        """The prompts of `messages`."""
        return cls(shorten(clean_line(typed_text(message))) for message in prompts(messages))

    def __repr__(self) -> str:
        lines = [f"{number:>3}. {text}" for number, text in enumerate(self, start=1)]
        return (
            "\n".join([*lines, "`%rewind N` drops prompt N and all after it."])
            if lines
            else "No prompts yet: `%gemini TEXT` sends the first."
        )


class HitList(list[Hit]):
    """The matches of a search, each on one line."""

    def __repr__(self) -> str:
        return (
            "\n".join(clean_line(str(hit)) for hit in self)
            or "Nothing was found: `%sessions --search WORDS --all` looks into every project."
        )
