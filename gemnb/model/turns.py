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


SKIPPED_SIGNATURE = "skip_thought_signature_validator"
"""What the API takes in the place of a call's lost signature."""


def wire_contents(turns: Iterable[Turn]) -> list[JsonObject]:
    """The Contents of `turns` as they go on the wire (FORMAT.md 4).

    Turns of one role that follow one another go as one, thoughts stay home, and call ids lose the name that
    the client puts before them in its files.
    """
    contents: list[JsonObject] = []
    for turn in turns:
        parts = _wire_parts(turn)
        if contents and parts and contents[-1]["role"] == turn.role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": turn.role, "parts": parts})
    return contents


def _wire_parts(turn: Turn) -> list[Part]:
    parts: list[Part] = []
    after_thought = False
    for part in turn.parts:
        if part.get("thought"):
            after_thought = True
            continue
        if isinstance(part.get("functionCall"), dict):
            part = part | {"functionCall": _wire_id(part["functionCall"])}
            if after_thought and not part.get("thoughtSignature"):
                part["thoughtSignature"] = SKIPPED_SIGNATURE
            after_thought = False
        elif isinstance(part.get("functionResponse"), dict):
            part = part | {"functionResponse": _wire_id(part["functionResponse"])}
        parts.append(part)
    return parts


def _wire_id(named: JsonObject) -> JsonObject:
    """A call or a response with the id that the API gave it: the client's files hold `<name>__<id>`."""
    prefix = f"{named.get('name')}__"
    id = named.get("id")
    return named | {"id": id.removeprefix(prefix)} if isinstance(id, str) and len(id) > len(prefix) else named


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
