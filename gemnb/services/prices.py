"""What a message cost, by the prices of its own day (genai-prices, offline)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from gemnb.model.records import Tokens


@dataclass(frozen=True, slots=True)
class Cost:
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


def list_price(model: str | None, tokens: Tokens, at: datetime | None) -> Cost | None:
    """The cost by Google's list price on the day of the message, tiers and cache included.

    None where the model, its price or the time is unknown: never zero, never today's price.
    """
    if not model or at is None or tokens.input is None:
        return None
    cached = min(tokens.cached or 0, tokens.input)
    output, thoughts = tokens.output or 0, tokens.thoughts or 0
    prompt = tokens.input + (tokens.tool or 0)
    priced = _priced(model, prompt, cached, output + thoughts, at)
    if priced is None:
        return None
    told_input, told_output = priced
    whole = _priced(model, prompt, 0, 0, at)
    per_token = whole[0] / prompt if whole and prompt else 0.0
    plain = per_token * (prompt - cached)
    share = told_output / (output + thoughts) if output + thoughts else 0.0
    return Cost(plain, max(told_input - plain, 0.0), share * output, share * thoughts)


def _priced(model: str, prompt: int, cached: int, output: int, at: datetime) -> tuple[float, float] | None:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=output)
    try:
        price = calc_price(usage, model, provider_id="google", genai_request_timestamp=at)
    except (LookupError, ValueError):
        return None
    return float(price.input_price), float(price.output_price)


@cache
def table_version() -> str:
    """Name and version of the price table."""
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"
