"""Where a talk may be cut in two, for a summary in the place of its older part (FORMAT.md 6)."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gemnb.model.records import JsonObject
from gemnb.model.talk import SNAPSHOT
from gemnb.model.turns import Turn
from gemnb.services.tokens import content_units, estimate_turns

SPLIT = 0.7
"""Part of the talk's characters that is summed up."""
ACKNOWLEDGED = "I have read the snapshot and go on from there."


def split_point(contents: Sequence[JsonObject], fraction: float) -> int:
    """Where to cut `contents`: the number of those that go.

    A cut stands only before a user Content without a function response: the first at or after `fraction` of the
    characters; else everything, if the last one ends an answer; else the last such place before.

    Raises:
        ValueError: `fraction` is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"a fraction between 0 and 1 is wanted, not {fraction}")
    lengths = [content_units(content) for content in contents]
    target = sum(lengths) * fraction
    passed = last = 0
    for number, content in enumerate(contents):
        if is_cut(content):
            if passed >= target:
                return number
            last = number
        passed += lengths[number]
    ended = contents and contents[-1].get("role") != "user" and not _has(contents[-1], "functionCall")
    return len(contents) if ended else last


def is_cut(content: JsonObject) -> bool:
    """Whether a talk may be cut before `content`."""
    return content.get("role") == "user" and not _has(content, "functionResponse")


def _has(content: JsonObject, key: str) -> bool:
    return any(isinstance(part, dict) and part.get(key) for part in content.get("parts") or ())


def kept_from(turns: Sequence[Turn], ids: Container[str]) -> int:
    """How many of `turns` go; the last prompt and what follows it always stay.

    `ids` are those of the messages: results of tools that are no function responses look like a prompt and are none.
    """
    cuts = [n for n, turn in enumerate(turns) if is_cut(turn.content) and turn.id in ids]
    wanted = split_point([turn.content for turn in turns], SPLIT)
    split = max((n for n in cuts if n <= wanted), default=0)
    return 0 if all(_is_opening(turn) for turn in turns[:split]) else split


def _is_opening(turn: Turn) -> bool:
    """Whether `turn` is a snapshot, or its acknowledgement: nothing that would be summed up anew."""
    return turn.text.lstrip().startswith(SNAPSHOT) or (turn.role == "model" and turn.text == ACKNOWLEDGED)


def pieces(turns: Sequence[Turn], limit: int) -> list[list[Turn]]:
    """`turns` in pieces of at most `limit` estimated tokens, cut only where a talk may be cut."""
    found: list[list[Turn]] = [[]]
    size = 0
    for turn in turns:
        length = estimate_turns([turn])
        if found[-1] and size + length > limit and is_cut(turn.content):
            found.append([])
            size = 0
        found[-1].append(turn)
        size += length
    return found
