"""What an answer cost, and the shape of whatever tells it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from gemnb.model.records import Tokens


class Cost(NamedTuple):
    """The cost of one message in US dollars, by kind."""

    input: float
    """Of the prompt tokens that did not come from the cache."""
    cached: float
    output: float
    thoughts: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.input + self.cached + self.output + self.thoughts


Price = Callable[[str | None, Tokens, datetime | None], Cost | None]
"""Model, tokens and time of a message to its cost; None where no price is known."""
