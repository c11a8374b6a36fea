"""How a session is named and its age told in a listing (FORMAT.md 3 and 8)."""

from __future__ import annotations

from datetime import datetime, timedelta

from gemnb.model.shown import clean_line
from gemnb.model.talk import EMPTY_TITLE

LONGEST_TITLE = 100
"""Graphemes; a longer title is cut to `CUT_TITLE` and three dots."""
CUT_TITLE = 97


def title_of(summary: str | None, prompt: str | None, first_prompt: str | None) -> str:
    """The summary, else the first prompt of the live talk, else the first prompt ever seen."""
    for text in (summary, prompt, first_prompt):
        if text and (line := clean_line(text)):
            return shorten(line)
    return EMPTY_TITLE


def shorten(line: str) -> str:
    """`line` cut to the length of a title, never inside a character as a person sees it."""
    if len(line) <= LONGEST_TITLE:
        return line
    import regex  # the standard library knows no graphemes

    graphemes = regex.findall(r"\X", line[: 40 * LONGEST_TITLE])
    return line if len(graphemes) <= LONGEST_TITLE else "".join(graphemes[:CUT_TITLE]) + "..."


def age_of(at: datetime, now: datetime) -> str:
    """How long ago `at` was: whole days, else hours, else minutes, else `Just now`."""
    seconds = (now - at) // timedelta(seconds=1)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "Just now"


def short_age(at: datetime, now: datetime) -> str:
    """`age_of` in a few characters: `now`, `59s`, `5m`, `3h`, `29d`, `1mo`, `2y`."""
    seconds = (now - at) // timedelta(seconds=1)
    for unit, length in (("y", 31_536_000), ("mo", 2_592_000), ("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s" if seconds >= 1 else "now"
