"""How far a long job is: told to whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much; often, so it should be quick."""


def watched(things: Sequence[T], what: str, progress: Progress | None) -> Iterator[T]:
    """The things one by one; `progress` is told before each, and after the last.

    >>> list(watched("ab", "Reading letters", print))
    Reading letters 0 2
    Reading letters 1 2
    Reading letters 2 2
    ['a', 'b']
    """
    for number, thing in enumerate(things):
        if progress:
            progress(what, number, len(things))
        yield thing
    if progress:
        progress(what, len(things), len(things))
