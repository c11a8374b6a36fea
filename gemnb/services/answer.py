"""One streamed answer of the model: gathered piece by piece, then made a message in the client's form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gemnb.model.outcome import Outcome
from gemnb.model.records import Message, Part, Thought, Tokens, text_of
from gemnb.services.llm import Chunk

OUTCOMES = {
    "STOP": Outcome.COMPLETED,
    "MAX_TOKENS": Outcome.MAX_TOKENS,
    "RECITATION": Outcome.RECITATION,
    **dict.fromkeys(("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"), Outcome.SAFETY),
}

_THOUGHT = re.compile(r"\s*\*\*(.+?)\*\*\s*(.*)", re.DOTALL)


@dataclass(slots=True)
class Answer:
    """What came of one request so far."""

    parts: list[Part] = field(default_factory=list)
    """The answer's parts, neighbouring texts joined, thoughts left out."""
    thoughts: list[str] = field(default_factory=list)
    tokens: Tokens | None = None
    finish: str | None = None
    blocked: str | None = None
    model: str | None = None

    def add(self, chunk: Chunk) -> None:
        """Take one piece of the stream."""
        for part in chunk.parts:
            self._add_part(part)
        self.tokens = chunk.tokens or self.tokens
        self.finish = chunk.finish or self.finish
        self.blocked = chunk.blocked or self.blocked
        self.model = chunk.model or self.model

    def _add_part(self, part: Part) -> None:
        if part.get("thought"):
            self.thoughts.append(str(part.get("text", "")))
        elif part.keys() == {"text"} and self.parts and self.parts[-1].keys() == {"text"}:
            self.parts[-1] = {"text": self.parts[-1]["text"] + part["text"]}
        elif part and part != {"text": ""}:
            self.parts.append(part)

    @property
    def text(self) -> str:
        """The text so far."""
        return text_of(list(self.parts))

    @property
    def calls(self) -> list[Part]:
        """The parts that are function calls."""
        return [part for part in self.parts if isinstance(part.get("functionCall"), dict)]

    @property
    def outcome(self) -> Outcome:
        """How the stream ended."""
        if self.blocked:
            return Outcome.BLOCKED
        if self.finish is None:
            return Outcome.COMPLETED if self.parts else Outcome.ERROR
        outcome = OUTCOMES.get(self.finish, Outcome.ERROR)
        return Outcome.ERROR if outcome is Outcome.COMPLETED and not self.parts else outcome

    @property
    def problem(self) -> str:
        """What an `error` outcome was, in a sentence."""
        if self.finish in (None, "STOP"):
            return "The model gave an empty answer. Ask again."
        return f"The model stopped with {self.finish}. Ask again, or in other words."

    def with_call_ids(self, stem: str) -> None:
        """Give each call without an id one that begins with `stem`."""
        for number, part in enumerate(self.parts):
            call = part.get("functionCall")
            if isinstance(call, dict) and not call.get("id"):
                self.parts[number] = part | {"functionCall": call | {"id": f"{call.get('name')}_{stem}_{number}"}}

    def message(self, *, id: str, timestamp: str, model: str) -> Message:
        """The message that records it: content as parts, which survives the client's rewriting."""
        return Message(
            id=id,
            type="gemini",
            timestamp=timestamp,
            content=list(self.parts) if self.parts else "",
            thoughts=tuple(_thoughts(self.thoughts, timestamp)),
            tokens=self.tokens,
            model=self.model or model,
        )


def _thoughts(texts: Iterable[str], timestamp: str) -> Iterable[Thought]:
    for text in texts:
        match = _THOUGHT.fullmatch(text)
        subject, description = match.groups() if match else ("", text)
        yield Thought(subject=subject.strip(), description=description.strip(), timestamp=timestamp)
