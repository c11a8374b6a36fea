"""What an answer cost, and the shape of whatever tells it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars a token."""

    input: float
    cached: float
    output: float


@dataclass(frozen=True, slots=True)
class Scale:
    """The rates of a model on one day, by the size of the prompt."""

    starts: tuple[int, ...]
    """Prompts of more tokens than the first of these pay the second rates, and so on."""
    rates: tuple[Rates, ...]

    def of(self, prompt: int) -> Rates:
        """The rates of a prompt of so many tokens."""
        return self.rates[bisect_left(self.starts, prompt)]


def charge(rates: Rates, prompt: Any, cached: Any, output: Any, thoughts: Any) -> tuple[Any, Any, Any, Any]:
    """The cost as `Cost` has it; of numbers, or of arrays where `rates` holds such."""
    return rates.input * (prompt - cached), rates.cached * cached, rates.output * output, rates.output * thoughts


Price = Callable[[str | None, Tokens, datetime | None], Cost | None]
"""Model, tokens and time of a message to its cost; None where no price is known."""


@runtime_checkable
class PriceTable(Protocol):
    """A `Price` that can tell the rates once for many messages."""

    def scale(self, model: str | None, day: date | None) -> Scale | None:
        """The rates of `model` on `day`; None where they are not known."""
