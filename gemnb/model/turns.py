"""What the model is sent: turns, each a Content of the API beside a stable id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def merged_contents(turns: Iterable[Turn]) -> list[JsonObject]:
    """The Contents of `turns`; those of one role that follow one another are one."""
    contents: list[JsonObject] = []
    for turn in turns:
        parts = [_with_plain_id(part) for part in turn.parts]
        if contents and contents[-1]["role"] == turn.role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": turn.role, "parts": parts})
    return contents


def wire_contents(turns: Iterable[Turn]) -> list[JsonObject]:
    """The Contents of `turns` as they are sent: as `merged_contents`, and thoughts stay home."""
    return merged_contents(Turn(t.id, t.role, parts) for t in turns if (parts := tuple(_unthought(t.parts))))


def _unthought(parts: Iterable[Part]) -> Iterator[Part]:
    """`parts` without thoughts; a call whose thought is gone gets a signature that the API takes in its place."""
    after_thought = False
    for part in parts:
        if part.get("thought"):
            after_thought = True
        elif after_thought and isinstance(part.get("functionCall"), dict):
            after_thought = False
            yield {"thoughtSignature": SKIPPED_SIGNATURE} | part
        else:
            yield part


def _with_plain_id(part: Part) -> Part:
    """A call or a response with the id that the API gave it: the client's files hold `<name>__<id>`."""
    for key in ("functionCall", "functionResponse"):
        named = part.get(key)
        if isinstance(named, dict) and isinstance(id := named.get("id"), str):
            plain = id.removeprefix(f"{named.get('name')}__")
            return part if plain in ("", id) else part | {key: named | {"id": plain}}
    return part


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
        """The Contents of the turns, thoughts among them; `wire_contents` has what is sent of them."""
        return merged_contents(self.turns)
