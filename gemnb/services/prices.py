"""What a message cost, by the prices of its own day (genai-prices, offline)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache, lru_cache
from typing import Any

from gemnb.errors import FrameError
from gemnb.model.cost import Cost, Price, Rates, Scale, charge
from gemnb.model.records import Tokens, as_count

FREE = Cost(0.0, 0.0, 0.0, 0.0)
NOTHING = Scale((), (Rates(0.0, 0.0, 0.0),))
SAMPLE = 1_000_000
"""Tokens that a rate is read off."""


@dataclass(frozen=True, slots=True)
class PriceList:
    """Google's list prices, with models that a person has for nothing.

    It is a `Price`: call it with model, tokens and time of a message.
    """

    free: frozenset[str] = frozenset()
    """Models on a free tier; `*` is every model."""

    def __call__(self, model: str | None, tokens: Tokens, at: datetime | None) -> Cost | None:
        """The cost of one message; None where its price is unknown."""
        if "*" in self.free or model in self.free:
            return FREE
        return list_price(model, tokens, at)

    def scale(self, model: str | None, day: date | None) -> Scale | None:
        """The rates of `model` on `day`; None where they are not known."""
        if "*" in self.free or model in self.free:
            return NOTHING
        return _scale(model, day) if model and day else None

    def __str__(self) -> str:
        free = ", ".join(sorted(self.free)).replace("*", "every model")
        return f"{table_version()}; free: {free}" if free else table_version()


def price_of(prices: str | Collection[str] | Price) -> Price:
    """What a person means by `prices=`.

    Args:
        prices: `"list"` for list prices, `"free"` for a tier on which nothing costs anything, names of models that
            are on a free tier while the others have list prices, or a function of one's own.

    Raises:
        FrameError: it is none of these.
    """
    if callable(prices):
        return prices
    if isinstance(prices, str):
        if prices not in ("list", "free"):
            raise FrameError(
                f'There are no prices {prices!r}: give "list", "free", names of free models, or a function.'
            )
        return PriceList(frozenset("*" if prices == "free" else ()))
    return PriceList(frozenset(prices))


def name_of(price: Price) -> str:
    """What `price` goes by, for the record: table and version, or the function's name."""
    return str(price) if isinstance(price, PriceList) else getattr(price, "__qualname__", None) or type(price).__name__


def list_price(model: str | None, tokens: Tokens, at: datetime | None) -> Cost | None:
    """The cost by Google's list price on the day of the message, tiers and cache included.

    None where the model, its price or the time is unknown, or a count of tokens is none: never zero, never today's.
    """
    told = (tokens.input, tokens.cached, tokens.output, tokens.thoughts, tokens.tool)
    input, cached, output, thoughts, tool = [0 if count is None else as_count(count) for count in told]
    if (
        not model
        or at is None
        or tokens.input is None
        or input is None
        or cached is None
        or output is None
        or thoughts is None
        or tool is None
    ):
        return None
    scale = _scale(model, at.astimezone(UTC).date())
    if scale is None:
        return None
    prompt = input + tool
    cached = min(cached, input)
    rates = scale.of(prompt)
    return Cost(*charge(rates, prompt, cached, output, thoughts))


@lru_cache(maxsize=4096)
def _scale(model: str, day: date) -> Scale | None:
    """The rates of `model` on `day`: read off the table's own sums, once for each step in the size of a prompt."""
    from genai_prices.data_snapshot import get_snapshot
    from genai_prices.types import TieredPrices

    try:
        _, found = get_snapshot().find_provider_model(model, None, "google", None)
    except (LookupError, ValueError):
        return None
    price = found.get_prices(datetime.combine(day, time(), UTC))
    tiered = [p for p in vars(price).values() if isinstance(p, TieredPrices)]
    starts = sorted({tier.start for p in tiered for tier in p.tiers})
    rates = tuple(_rates(price, size) for size in (1, *(start + 1 for start in starts)))
    known = any(rate.input or rate.output for rate in rates)
    return Scale(tuple(starts), rates) if known else None


def _rates(price: Any, prompt: int) -> Rates:
    """The rates of a prompt of so many tokens by `price`, a `genai_prices.types.ModelPrice`."""
    from genai_prices import Usage

    plain = price.calc_price(Usage(input_tokens=prompt))["input_price"]
    cached = price.calc_price(Usage(input_tokens=prompt, cache_read_tokens=prompt))["input_price"]
    output = price.calc_price(Usage(input_tokens=prompt, output_tokens=SAMPLE))["output_price"]
    return Rates(float(plain / prompt), float(cached / prompt), float(output / SAMPLE))


@cache
def table_version() -> str:
    """Name and version of the price table."""
    from importlib.metadata import version

    return f"genai-prices {version('genai-prices')}"
