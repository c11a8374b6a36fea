"""What an answer cost: the table's own sums, on its own day, and never a number where none is known."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import pandas as pd
import pytest
from genai_prices import Usage, calc_price
from hypothesis import given
from hypothesis import strategies as st
from support import gemini

import gemnb
from gemnb.errors import FrameError
from gemnb.model.cost import Cost, PriceTable
from gemnb.model.records import TOKEN_KINDS, Header, Tokens, parse_time
from gemnb.model.session import Session
from gemnb.services.prices import list_price, name_of, price_of
from gemnb.store.codec import decode_message

DAY = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = ["gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro-preview", "gemini-2.0-flash-lite", "gemini-1.5-pro"]


@pytest.mark.parametrize(
    ("tokens", "usd"),
    [
        (Tokens(input=1000, cached=0, output=100, thoughts=0), 1000 * 1.25e-6 + 100 * 1e-5),
        (Tokens(input=1000, cached=1000, output=0, thoughts=100), 1000 * 0.125e-6 + 100 * 1e-5),
        (Tokens(input=200_000, cached=0, output=0, thoughts=0), 200_000 * 1.25e-6),
        (Tokens(input=200_001, cached=0, output=0, thoughts=0), 200_001 * 2.5e-6),
        (Tokens(input=300_000, cached=0, output=10, thoughts=0), 300_000 * 2.5e-6 + 10 * 1.5e-5),
        (Tokens(input=0, output=0), 0.0),
    ],
    ids=["plain", "cached", "at the tier", "past the tier", "above", "nothing"],
)
def test_prices_know_cache_and_tiers(tokens: Tokens, usd: float) -> None:
    cost = list_price("gemini-2.5-pro", tokens, DAY)

    assert cost and cost.total == pytest.approx(usd)


COUNTS = st.integers(0, 400_000)


@given(st.sampled_from(MODELS), COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, st.dates(date(2024, 1, 1), date(2027, 6, 1)))
def test_a_cost_is_what_the_table_says(
    model: str, input: int, cached: int, output: int, thoughts: int, tool: int, day: date
) -> None:
    at = datetime.combine(day, time(12), UTC)
    cached = min(cached, input)
    usage = Usage(input_tokens=input + tool, cache_read_tokens=cached, output_tokens=output + thoughts)

    tokens = Tokens(input=input, cached=cached, output=output, thoughts=thoughts, tool=tool)
    cost = list_price(model, tokens, at)

    told = calc_price(usage, model, provider_id="google", genai_request_timestamp=at)
    assert cost and cost.total == pytest.approx(float(told.total_price))
    assert cost.input + cost.cached == pytest.approx(float(told.input_price))


def test_a_price_that_changes_is_that_of_the_day() -> None:
    before, after = (
        list_price("gemini-3.6-flash", Tokens(input=1_000_000, output=0), parse_time(at))
        for at in ("2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z")
    )

    assert before and after and after.total == pytest.approx(2 * before.total)


@pytest.mark.parametrize(
    ("model", "at"), [("no-such-model", DAY), (None, DAY), ("gemini-2.5-pro", None)], ids=["unknown", "none", "no time"]
)
def test_no_price_is_never_zero(model: Any, at: Any) -> None:
    assert list_price(model, Tokens(input=5, output=5), at) is None


@pytest.mark.parametrize("odd", [-5, 10**400, -(10**400), 2**53, "5", 1.5, True, [1]], ids=lambda v: str(v)[:8])
@pytest.mark.parametrize("kind", ["input", "cached", "output", "thoughts", "tool"])
def test_a_count_that_is_none_has_no_price(kind: str, odd: Any) -> None:
    assert list_price("gemini-2.5-pro", Tokens(**{"input": 10, "output": 1, kind: odd}), DAY) is None


def test_what_is_free_is_a_choice() -> None:
    tokens = Tokens(input=1000, output=10)

    assert price_of("free")("gemini-2.5-pro", tokens, DAY) == Cost(0, 0, 0, 0)
    some = price_of({"gemini-2.5-flash"})
    assert some("gemini-2.5-flash", tokens, DAY) == Cost(0, 0, 0, 0)
    assert some("gemini-2.5-pro", tokens, DAY) == price_of("list")("gemini-2.5-pro", tokens, DAY)
    assert some("mystery-1", tokens, DAY) is None


def test_the_record_tells_which_prices() -> None:
    assert name_of(price_of("list")).startswith("genai-prices 0.")
    assert name_of(price_of(["b", "a"])).endswith("; free: a, b")
    assert name_of(price_of("free")).endswith("; free: every model")
    assert name_of(price_of(list_price)) == "list_price"


def test_prices_that_are_none_are_told() -> None:
    with pytest.raises(FrameError, match="'cheap'"):
        price_of("cheap")


ODD_COUNTS = st.integers(0, 400_000) | st.sampled_from([None, -5, 1.5, "many", 2**70])
ANSWERS = st.lists(
    st.builds(
        lambda model, at, tokens: {"model": model, "timestamp": at, "tokens": tokens},
        st.sampled_from([*MODELS, "mystery-1", None]),
        st.sampled_from(["2026-01-01T10:00:00Z", "2026-04-01T23:59:59-05:00", "2020-01-01T10:00:00Z", "yesterday"]),
        st.fixed_dictionaries({}, optional=dict.fromkeys(TOKEN_KINDS, ODD_COUNTS)),
    ),
    max_size=6,
)


@given(ANSWERS, st.sampled_from([frozenset[str](), frozenset({"gemini-2.5-flash"})]))
def test_many_answers_cost_what_each_costs(told: list[dict[str, Any]], free: frozenset[str]) -> None:
    messages = tuple(decode_message(gemini(f"g{place}", "x") | one) for place, one in enumerate(told))
    session = Session(header=Header(session_id="s"), messages=messages, usage={m.id: m for m in messages})
    price = price_of(free)
    assert isinstance(price, PriceTable) and not isinstance(price.__call__, PriceTable)

    many, each = (gemnb.messages_df(session, prices=one) for one in (free, price.__call__))

    pd.testing.assert_frame_equal(many, each)
