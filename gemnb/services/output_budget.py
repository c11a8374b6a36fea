"""What the results of tools may take of a talk: a budget that the newest use first (FORMAT.md 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gemnb.model.records import Message, Part, ToolCall
from gemnb.services.tokens import estimate_tokens

RESPONSE_BUDGET = 50_000
"""Estimated tokens that all function responses share, the newest first."""
LARGE_RESPONSE = 500
"""Estimated tokens; a smaller response is never trimmed."""
HEAD, TAIL = 1_500, 1_500
"""Characters of a trimmed response that stay at each end."""

SaveOutput = Callable[[ToolCall, str], str]
"""Gives the name under which the full text of a call's output is, or will be, kept."""


def budgeted(messages: Sequence[Message], save: SaveOutput) -> tuple[Message, ...]:
    """`messages` whose tool outputs, from the newest back, share a budget; past it large ones are trimmed."""
    left = RESPONSE_BUDGET
    found: list[Message] = []
    for message in reversed(messages):
        calls = []
        for call in reversed(message.tool_calls):
            parts = [part for part in _results(call) if isinstance(part.get("functionResponse"), dict)]
            cost = estimate_tokens(parts)
            if cost > left and cost > LARGE_RESPONSE:
                calls.append(_trimmed(call, save))
                cost = estimate_tokens(_results(calls[-1]))
            else:
                calls.append(call)
            left -= min(cost, left)
        changed = tuple(reversed(calls))
        found.append(message if changed == message.tool_calls else replace(message, tool_calls=changed))
    return tuple(reversed(found))


def _results(call: ToolCall) -> list[Part]:
    result = call.result if isinstance(call.result, list) else [call.result]
    return [part for part in result if isinstance(part, dict)]


def _trimmed(call: ToolCall, save: SaveOutput) -> ToolCall:
    """The call with head and tail of its output, and the name that the full text is kept under."""
    return replace(call, result=[_trimmed_part(call, part, save) for part in _results(call)])


def _trimmed_part(call: ToolCall, part: Part, save: SaveOutput) -> Part:
    response = part.get("functionResponse")
    told = response.get("response") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(told, dict):
        return part
    shorter = {key: _shortened(call, value, save) for key, value in told.items()}
    return part | {"functionResponse": response | {"response": shorter}}


def _shortened(call: ToolCall, value: object, save: SaveOutput) -> object:
    if not isinstance(value, str) or len(value) <= HEAD + TAIL + 200:
        return value
    name = save(call, value)
    gone = len(value) - HEAD - TAIL
    return f"{value[:HEAD]}\n… {gone} characters were trimmed; the whole output is in {name} …\n{value[-TAIL:]}"
