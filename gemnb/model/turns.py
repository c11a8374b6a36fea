"""What the model is sent: turns, each a Content of the API beside a stable id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gemnb.model.records import JsonObject, Part, text_of


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the talk as the model sees it: `id` stays with us, `role` and `parts` go on the wire."""

    id: str
    role: str
    """`user` or `model`."""
    parts: tuple[Part, ...]

    @classmethod
    def prompt(cls, text: str, *, id: str = "") -> Turn:
        """A user turn of one text part.

        >>> Turn.prompt("hi").content
        {'role': 'user', 'parts': [{'text': 'hi'}]}
        """
        return cls(id, "user", ({"text": text},))

    @classmethod
    def reply(cls, text: str, *, id: str = "") -> Turn:
        """A model turn of one text part."""
        return cls(id, "model", ({"text": text},))

    @property
    def content(self) -> JsonObject:
        """The Content that goes on the wire."""
        return {"role": self.role, "parts": list(self.parts)}

    @property
    def text(self) -> str:
        """Its text parts joined, thoughts left out."""
        return text_of(list(self.parts))

    @property
    def calls(self) -> list[JsonObject]:
        """The function calls in it."""
        return [p["functionCall"] for p in self.parts if isinstance(p.get("functionCall"), dict)]

    @property
    def responses(self) -> list[JsonObject]:
        """The function responses in it."""
        return [p["functionResponse"] for p in self.parts if isinstance(p.get("functionResponse"), dict)]


def wire_contents(turns: Iterable[Turn]) -> list[JsonObject]:
    """The Contents of `turns`; user turns that follow one another go as one, as the client sends them."""
    contents: list[JsonObject] = []
    for turn in turns:
        if contents and turn.role == "user" == contents[-1]["role"]:
            contents[-1]["parts"] += turn.parts
        else:
            contents.append(turn.content)
    return contents


@dataclass(frozen=True, slots=True)
class Repair:
    """Something that was mended so that the API takes the talk."""

    turn_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.turn_id}: {self.what}"


@dataclass(frozen=True, slots=True)
class ChatHistory:
    """The turns of one talk, and what was mended to make them."""

    turns: Sequence[Turn] = ()
    repairs: Sequence[Repair] = field(default=())

    def contents(self) -> list[JsonObject]:
        """The Contents as they go on the wire."""
        return wire_contents(self.turns)
