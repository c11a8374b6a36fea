"""A model that answers from a script, for tests, notebooks and Binder; and the sample store they look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gemnb.errors import LlmError
from gemnb.model.records import Part, Tokens
from gemnb.model.talk import SNAPSHOT
from gemnb.model.turns import Turn
from gemnb.sample import make_sample_store
from gemnb.services.llm import Chunk, ToolDeclaration
from gemnb.services.memory_model import ASK

__all__ = ["DemoLlm", "ScriptedLlm", "demo_llm", "make_sample_store"]

SNAPSHOT_END = "</state_snapshot>"
FIRST_WORDS = 90
"""Characters of a turn that the scripted summary keeps."""
PIECE = 24
"""Characters of text in one chunk, so that streaming is seen."""

Reply = str | Sequence[Part] | Mapping[str, Any] | BaseException | Callable[[Sequence[Turn]], Any]


class ScriptedLlm:
    """An `Llm` that answers from a script and keeps what it was asked.

    A reply is a text; a list of parts; `{"parts": […], "finish": "SAFETY", "usage": {…}, "blocked": "SAFETY"}`; an
    exception to raise; or a function of the turns that gives one of these. When the script has run out,
    `default` answers, and without one the call fails.

    >>> llm = ScriptedLlm("Forty-two.")
    >>> "".join(chunk.text for chunk in llm.stream([Turn.prompt("How many rivers?")]))
    'Forty-two.'
    >>> llm.asked[0][0].text
    'How many rivers?'
    """

    def __init__(self, *replies: Reply, name: str = "scripted", default: Reply | None = None) -> None:
        self.name = name
        self._replies = list(replies)
        self._default = default
        self.asked: list[tuple[Turn, ...]] = []
        """The turns of each request, in order."""
        self.systems: list[str | None] = []
        """The system instruction of each request."""

    def stream(
        self,
        turns: Sequence[Turn],
        *,
        system: str | None = None,
        tools: Sequence[ToolDeclaration] = (),  # noqa: ARG002
    ) -> Iterator[Chunk]:
        """Yield the next reply of the script, whatever is asked.

        Raises:
            LlmError: the script has run out.
        """
        self.asked.append(tuple(turns))
        self.systems.append(system)
        reply = self._replies.pop(0) if self._replies else self._default
        if reply is None:
            raise LlmError("The scripted model has no reply left: give ScriptedLlm one more, or a default.")
        if callable(reply):
            reply = reply(turns)
        yield from _chunks(reply, turns)


def _chunks(reply: Any, turns: Sequence[Turn]) -> Iterator[Chunk]:
    if isinstance(reply, BaseException):
        raise reply
    told: Mapping[str, Any] = reply if isinstance(reply, Mapping) else {"parts": reply}
    parts: Sequence[Part] = [{"text": told["parts"]}] if isinstance(told["parts"], str) else told["parts"]
    if told.get("blocked"):
        yield Chunk(blocked=str(told["blocked"]), tokens=_usage(told, turns, ()))
        return
    for part in parts:
        if part.keys() == {"text"}:
            for at in range(0, len(part["text"]), PIECE):
                yield Chunk(({"text": part["text"][at : at + PIECE]},))
        else:
            yield Chunk((part,))
    yield Chunk(finish=told.get("finish", "STOP"), tokens=_usage(told, turns, parts))


def _usage(told: Mapping[str, Any], turns: Sequence[Turn], parts: Sequence[Part]) -> Tokens:
    """The tokens that a reply tells, in the API's names or ours; else a quarter of the characters."""
    usage = told.get("usage")
    if isinstance(usage, Mapping):
        return Tokens(
            input=usage.get("input", usage.get("promptTokenCount", 0)),
            output=usage.get("output", usage.get("candidatesTokenCount", 0)),
            cached=usage.get("cached", usage.get("cachedContentTokenCount", 0)),
            thoughts=usage.get("thoughts", usage.get("thoughtsTokenCount", 0)),
            tool=usage.get("tool", usage.get("toolUsePromptTokenCount", 0)),
            total=usage.get("total", usage.get("totalTokenCount", 0)),
        )
    asked = sum(len(str(part)) for turn in turns for part in turn.parts) // 4
    said = sum(len(str(part)) for part in parts) // 4
    return Tokens(input=asked, output=said, cached=0, thoughts=0, tool=0, total=asked + said)


class DemoLlm(ScriptedLlm):
    """The scripted model of the tour: it says what it is and what it was asked, sums a talk up, and calls tools.

    >>> said = "".join(chunk.text for chunk in DemoLlm().stream([Turn.prompt("How many rivers?")]))
    >>> said.splitlines()[2]
    'You asked: **How many rivers?**'
    """

    def __init__(self) -> None:
        super().__init__()

    def stream(
        self,
        turns: Sequence[Turn],
        *,
        system: str | None = None,
        tools: Sequence[ToolDeclaration] = (),
    ) -> Iterator[Chunk]:
        """Yield an answer that is made from what was asked."""
        self._replies = [_demo_reply(turns, system, tools)]
        return super().stream(turns, system=system, tools=tools)


def demo_llm() -> DemoLlm:
    """The model that answers where `GEMNB_LLM=scripted` asks for it.

    >>> demo_llm().name
    'scripted'
    """
    return DemoLlm()


def _demo_reply(turns: Sequence[Turn], system: str | None, tools: Sequence[ToolDeclaration]) -> Reply:
    if SNAPSHOT in (system or ""):
        return _demo_snapshot(turns)
    results = [part["functionResponse"] for part in turns[-1].parts if "functionResponse" in part]
    if results:
        told = "\n".join(f"- `{result['name']}` gave `{_outcome(result)}`" for result in results)
        return f"*I am a scripted model.* I called what you offered:\n\n{told}"
    prompt = next((turn.text for turn in reversed(turns) if turn.role == "user" and turn.text), "")
    if prompt.startswith(ASK):
        return _demo_facts(prompt.removeprefix(ASK))
    named = [tool for tool in tools if tool.name in prompt]
    if named:
        return [{"functionCall": {"name": tool.name, "args": _demo_args(tool, prompt)}} for tool in named]
    asked = sum(turn.role == "user" and bool(turn.text) for turn in turns)
    return (
        "*I am a scripted model: there is no key, so nothing left this machine.*\n\n"
        f"You asked: **{prompt.strip()[:200]}**\n\n"
        f"A real model would now see the {len(turns)} turns of this session, {asked} of them yours."
    )


_DEMO_RULE = re.compile(r"\b(always|never|prefer|every|before you|works here)\b", re.IGNORECASE)


def _demo_facts(listed: str) -> str:
    """The sentences that sound like rules, as they stand."""
    told = []
    for line in listed.splitlines():
        number, _, said = line.partition(". ")
        if rules := [sentence for sentence in re.split(r"(?<=[.!?])\s+", said) if _DEMO_RULE.search(sentence)]:
            told.append(f"{number}. {' '.join(rules)}")
    return "\n".join(told) or "none"


def _demo_snapshot(turns: Sequence[Turn]) -> str:
    """The first words of each turn; asked once more, with the facts that the question names as lost."""
    *talk, ask = turns
    lines = [line for line in ask.text.splitlines() if line.startswith("- ")]
    if talk and talk[-1].role == "model" and talk[-1].text.startswith(SNAPSHOT):  # the second request
        kept = talk[-1].text.removeprefix(SNAPSHOT).removesuffix(SNAPSHOT_END).strip().splitlines()
    else:
        kept = [f"- {turn.role}: {' '.join(turn.text.split())[:FIRST_WORDS]}" for turn in talk if turn.text.strip()]
    return "\n".join((SNAPSHOT, *kept, *lines, SNAPSHOT_END))


def _demo_args(tool: ToolDeclaration, prompt: str) -> dict[str, Any]:
    """The quoted words of the prompt, in the order of the tool's parameters."""
    quoted = re.findall(r"[`'\"]([^`'\"]+)[`'\"]", prompt)
    words = [word for word in quoted if word != tool.name]
    return dict(zip(tool.parameters.get("properties", {}), words, strict=False))


def _outcome(result: Part) -> str:
    response = result.get("response") or {}
    return str(response.get("output", response.get("error", response)))[:200]
