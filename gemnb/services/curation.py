"""The client's curated history: what is left of a talk when turns that the API would refuse are gone."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gemnb.model.records import Part
from gemnb.model.turns import SKIPPED_SIGNATURE, Turn


def curated(turns: Sequence[Turn], *, keep_thoughts: bool = False) -> list[Turn]:
    """`turns` without empty parts and thoughts, neighbours of one role made one.

    Args:
        turns: the talk.
        keep_thoughts: for models that know nothing of signatures: thoughts stay, and turns stay apart.
    """
    kept = [
        replace(turn, parts=parts) for turn in _with_ids(turns) if (parts := tuple(_kept(turn.parts, keep_thoughts)))
    ]
    return kept if keep_thoughts else list(_joined(kept))


def _with_ids(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Give a call without an id the one that the client would, and the same to its response: by name, in order."""
    waiting: dict[str, deque[str]] = defaultdict(deque)
    for at, turn in enumerate(turns):
        parts: list[Part] = []
        for number, part in enumerate(turn.parts):
            call, response = part.get("functionCall"), part.get("functionResponse")
            if isinstance(call, dict) and not call.get("id"):
                name = str(call.get("name", ""))
                seed = "|".join(sorted((turn.id, str(at), str(number))))
                waiting[name].append(f"synth_{name}_{hashlib.sha256(seed.encode()).hexdigest()[:32]}")
                parts.append(part | {"functionCall": call | {"id": waiting[name][-1]}})
            elif isinstance(response, dict) and not response.get("id") and waiting[str(response.get("name", ""))]:
                made = waiting[str(response.get("name", ""))].popleft()
                parts.append(part | {"functionResponse": response | {"id": made}})
            else:
                parts.append(part)
        yield replace(turn, parts=tuple(parts))


def _kept(parts: Iterable[Part], keep_thoughts: bool) -> Iterator[Part]:
    after_thought = False
    for part in parts:
        if not part or part == {"text": ""}:
            continue
        if part.get("thought") and not keep_thoughts:
            after_thought = True
        elif after_thought and "functionCall" in part and "thoughtSignature" not in part:
            after_thought = False
            yield part | {"thoughtSignature": SKIPPED_SIGNATURE}
        else:
            yield part


def _joined(turns: Iterable[Turn]) -> Iterator[Turn]:
    held: Turn | None = None
    for turn in turns:
        if held is not None and held.role == turn.role:
            held = replace(held, parts=held.parts + turn.parts)
            continue
        if held is not None:
            yield held
        held = turn
    if held is not None:
        yield held
