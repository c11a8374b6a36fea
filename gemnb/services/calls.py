"""The calls of one answer, run one after another; each gets a result, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from gemnb.model.outcome import Outcome
from gemnb.model.records import Part, ToolCall
from gemnb.services import tools
from gemnb.services.llm import ToolDeclaration
from gemnb.services.tools import ToolResult

REFUSED = "The person did not allow this call."
STOPPED = "The call was stopped before it was answered."

Approve = Callable[[ToolCall], bool]
"""Asked before each call; one that it does not allow is refused."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of the calls of one answer."""

    calls: tuple[ToolCall, ...]
    """Each with its result."""
    outcome: Outcome
    """`completed`, or why the talk does not go on: `refused`, `cancelled`."""
    raised: BaseException | None = None
    """What came through a tool and is not its error; to be raised once the results are recorded."""


def run_calls(
    asked: Iterable[Part], declared: Sequence[ToolDeclaration], *, approve: Approve | None, now: Callable[[], str]
) -> Ran:
    """Run the calls in `asked`; after an interrupt, or what a tool raised through, the rest are answered unrun.

    Args:
        asked: the parts of an answer with a `functionCall`.
        declared: the tools that may be called.
        approve: see `Approve`; None allows all.
        now: the time that is recorded with a result.
    """
    outcome = Outcome.COMPLETED
    calls: list[ToolCall] = []
    raised: BaseException | None = None
    for part in asked:
        told = part["functionCall"]
        call = ToolCall(id=told.get("id"), name=str(told.get("name")), args=told.get("args") or {})
        try:
            stopped = raised is not None or outcome is Outcome.CANCELLED
            result = _failed(STOPPED, "cancelled") if stopped else _run(call, declared, approve)
        except KeyboardInterrupt:
            result, outcome = _failed(STOPPED, "cancelled"), Outcome.CANCELLED
        except BaseException as error:  # noqa: BLE001 - given back
            raised = error
            result = _failed(f"{type(error).__name__}: {error}".rstrip(": "), "error")
        if result.status == "cancelled" and outcome is Outcome.COMPLETED:
            outcome = Outcome.REFUSED
        calls.append(_answered(call, result, now()))
    return Ran(tuple(calls), outcome, raised)


def _run(call: ToolCall, declared: Sequence[ToolDeclaration], approve: Approve | None) -> ToolResult:
    declaration = next((tool for tool in declared if tool.name == call.name), None)
    if declaration is None:
        return _failed(f"There is no tool {call.name!r}.", "error")
    if approve is not None and not approve(call):
        return _failed(REFUSED, "cancelled")
    return tools.run(declaration, call.args)


def _failed(words: str, status: str) -> ToolResult:
    return ToolResult({"error": words}, status)


def _answered(call: ToolCall, result: ToolResult, timestamp: str) -> ToolCall:
    """The call with its result, in the client's form."""
    response = {"functionResponse": {"id": call.id, "name": call.name, "response": result.response}}
    return replace(
        call,
        result=[response],
        status=result.status,
        timestamp=timestamp,
        display_name=call.name,
        description="",
        result_display=result.display,
    )
