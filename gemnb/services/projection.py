"""From records to what the model is sent: the client's rules first, then the repairs that the API needs."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gemnb.model.records import JsonObject, Message, Part, Thought, ToolCall, parts_of
from gemnb.model.talk import is_context_text, is_injected, standing
from gemnb.model.turns import ChatHistory, Repair, Turn

PART_KEYS = frozenset(
    [
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "videoMetadata",
        "toolCall",
        "toolResponse",
    ]
)
NO_RESULT = "No result was recorded for this call: it was cancelled, or the session ended before it was answered."


def history(messages: Iterable[Message]) -> ChatHistory:
    """The turns that `messages` make for the model, mended where the API would refuse them."""
    return repaired(client_turns(messages))


def client_turns(messages: Iterable[Message]) -> list[Turn]:
    """The turns of `messages` by the client's rules; call ids and results as the file holds them."""
    turns: list[Turn] = []
    for message, stands in standing(messages):
        if message.type == "user" and stands and not is_injected(message):
            turns.append(Turn(message.id, "user", tuple(_prompt_parts(message))))
        elif message.type == "gemini":
            turns.append(Turn(message.id, "model", tuple(_answer_parts(message))))
            turns.append(Turn(f"{message.id}_response", "user", tuple(_result_parts(message.tool_calls))))
    return [turn for turn in turns if turn.parts]


def _prompt_parts(message: Message) -> Iterator[Part]:
    for part in parts_of(message.content):
        text = part.get("text")
        if not (isinstance(text, str) and text.lstrip().startswith("<session_context>") and is_context_text(text)):
            yield part


def _answer_parts(message: Message) -> Iterator[Part]:
    """The content where it is the whole truth; else thoughts, content and calls, as older files tell them."""
    parts = [part for part in parts_of(message.content) if part != {"text": ""} or not isinstance(message.content, str)]
    if any("functionCall" in part or part.get("thought") for part in parts):
        yield from parts
        return
    yield from (_thought_part(thought) for thought in message.thoughts)
    yield from parts
    for call in message.tool_calls:
        yield {"functionCall": _named(call) | {"args": call.args if isinstance(call.args, dict) else {}}}


def _thought_part(thought: Thought) -> Part:
    subject = f"**{thought.subject}** " if thought.subject else ""
    return {"text": f"{subject}{thought.description}", "thought": True}


def _named(call: ToolCall) -> JsonObject:
    return {"id": call.id, "name": call.name} if call.id is not None else {"name": call.name}


def _result_parts(calls: Sequence[ToolCall]) -> Iterator[Part]:
    for call in calls:
        result = call.result
        if isinstance(result, str):
            if result:
                yield _response(call, {"output": result})
        elif isinstance(result, dict):
            yield result if result.keys() & PART_KEYS else _response(call, {"output": result})
        elif isinstance(result, list):
            for item in result:
                if isinstance(item, dict) and item.keys() & PART_KEYS:
                    yield item
                elif item:
                    yield _response(call, {"output": item})


def _response(call: ToolCall, response: JsonObject) -> Part:
    return {"functionResponse": _named(call) | {"response": response}}


def repaired(turns: Sequence[Turn]) -> ChatHistory:
    """`turns` mended, with a report of each repair.

    Empty parts go alone; every call has an id and is answered exactly once, in the turn right after it;
    a response to no call goes. Two prompts in a row stay two turns.
    """
    repairs: list[Repair] = []
    identified = _with_ids(_in_their_place(turns, repairs), repairs)
    return ChatHistory(tuple(_paired(identified, repairs)), tuple(repairs))


_MISPLACED = {"user": "functionCall", "model": "functionResponse"}


def _in_their_place(turns: Sequence[Turn], repairs: list[Repair]) -> Iterator[Turn]:
    """`turns` without empty parts, and without calls of a person or responses of the model."""
    for turn in turns:
        kept = [part for part in turn.parts if part and part != {"text": ""}]
        if len(kept) < len(turn.parts):
            repairs.append(Repair(turn.id, "an empty part was left out"))
        wrong = _MISPLACED.get(turn.role, "")
        parts = tuple(_trimmed(part) for part in kept if wrong not in part)
        if len(parts) < len(kept):
            repairs.append(Repair(turn.id, f"a {wrong} in a {turn.role} turn was left out"))
        if parts:
            yield replace(turn, parts=parts)


def _trimmed(part: Part) -> Part:
    """A thought that is its subject alone, without the blank that would part it from a description."""
    if part.get("thought") and isinstance(part.get("text"), str) and part["text"].endswith("** "):
        return part | {"text": part["text"].rstrip()}
    return part


def _with_ids(turns: Iterable[Turn], repairs: list[Repair]) -> list[Turn]:
    """Give each call without an id a stable one, and the same to its response: paired by name, in order."""
    found: list[Turn] = []
    waiting: dict[str, deque[str]] = defaultdict(deque)
    for turn in turns:
        parts: list[Part] = []
        for number, part in enumerate(turn.parts):
            call, response = part.get("functionCall"), part.get("functionResponse")
            if isinstance(call, dict) and not call.get("id"):
                name = str(call.get("name", ""))
                made = f"{turn.id}_{name}_{number}"
                waiting[name].append(made)
                repairs.append(Repair(turn.id, f"the call of {name} without an id was given one"))
                parts.append(part | {"functionCall": call | {"id": made}})
            elif isinstance(response, dict) and not response.get("id") and waiting[str(response.get("name", ""))]:
                made = waiting[str(response.get("name", ""))].popleft()
                parts.append(part | {"functionResponse": response | {"id": made}})
            else:
                parts.append(part)
        found.append(replace(turn, parts=tuple(parts)))
    return found


@dataclass(slots=True)
class _Answer:
    turn: int
    part: Part


def _paired(turns: Sequence[Turn], repairs: list[Repair]) -> Iterator[Turn]:
    """Put the one answer of each call right after it; what answers nothing, or again, goes."""
    answers: dict[str, deque[_Answer]] = defaultdict(deque)
    for at, turn in enumerate(turns):
        for part in turn.parts:
            if isinstance(response := part.get("functionResponse"), dict):
                answers[str(response.get("id"))].append(_Answer(at, part))
    used: set[str] = set()
    for at, turn in enumerate(turns):
        if turn.role != "model":
            yield from _without_responses(turn, used, repairs)
            continue
        answer = _each_call_once(turn, repairs)
        yield answer
        if calls := answer.calls:
            yield _answers_of(answer, calls, answers, at, repairs)
            used.update(str(call.get("id")) for call in calls)


def _each_call_once(turn: Turn, repairs: list[Repair]) -> Turn:
    seen: set[str] = set()
    parts: list[Part] = []
    for part in turn.parts:
        call = part.get("functionCall")
        if isinstance(call, dict):
            if str(call.get("id")) in seen:
                repairs.append(Repair(turn.id, f"the call {call.get('id')} stood there twice"))
                continue
            seen.add(str(call.get("id")))
        parts.append(part)
    return replace(turn, parts=tuple(parts))


def _answers_of(
    turn: Turn, calls: Sequence[JsonObject], answers: dict[str, deque[_Answer]], at: int, repairs: list[Repair]
) -> Turn:
    parts: list[Part] = []
    for call in calls:
        waiting = answers[str(call.get("id"))]
        while waiting and waiting[0].turn < at:
            waiting.popleft()
        if waiting:
            parts.append(waiting.popleft().part)
        else:
            repairs.append(
                Repair(turn.id, f"the call of {call.get('name')} had no result and got an error in its place")
            )
            named = {key: call[key] for key in ("id", "name") if key in call}
            parts.append({"functionResponse": named | {"response": {"error": NO_RESULT}}})
    return Turn(f"{turn.id}_response", "user", tuple(parts))


def _without_responses(turn: Turn, used: set[str], repairs: list[Repair]) -> Iterator[Turn]:
    """What is left of a user turn when its responses have gone to their calls."""
    for response in turn.responses:
        if str(response.get("id")) not in used:
            repairs.append(Repair(turn.id, f"a result of {response.get('name')} answers no call and was left out"))
    parts = tuple(part for part in turn.parts if not isinstance(part.get("functionResponse"), dict))
    if parts:
        yield replace(turn, parts=parts)
