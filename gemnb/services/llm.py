"""The seam to a language model; `services.genai` has the real one, `gemnb.testing` a scripted one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gemnb.model.records import JsonObject, Part, Tokens
from gemnb.model.turns import Turn


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a streamed answer."""

    parts: tuple[Part, ...] = ()
    finish: str | None = None
    """The API's finish reason (`STOP`, `SAFETY`, `MAX_TOKENS`, …), on the last piece."""
    tokens: Tokens | None = None
    """What the answer cost so far; the last one counts."""
    model: str | None = None
    """The model that answered, where the service says it."""
    blocked: str | None = None
    """Why the prompt was blocked; nothing else comes then."""

    @property
    def text(self) -> str:
        """Its text, thoughts left out."""
        return "".join(p["text"] for p in self.parts if isinstance(p.get("text"), str) and not p.get("thought"))


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A function as the model is told of it."""

    name: str
    description: str
    parameters: JsonObject
    """A JSON Schema of the arguments."""
    function: Callable[..., Any] = field(repr=False)


class Llm(Protocol):
    """A language model.

    `stream` yields the answer to `turns` (their Contents merged as `wire_contents` does) piece by piece.
    `system` is the system instruction, `tools` what may be called. Raises `LlmError` when the service
    fails; a `KeyboardInterrupt` in the middle closes the connection.
    """

    @property
    def name(self) -> str:
        """The model's name, as recorded and priced."""
        ...

    def stream(
        self, turns: Sequence[Turn], *, system: str | None = None, tools: Sequence[ToolDeclaration] = ()
    ) -> Iterator[Chunk]:
        """Yield the answer to `turns` piece by piece."""
        ...
