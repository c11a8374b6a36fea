"""Estimates of tokens by the rule of FORMAT.md 6."""

from __future__ import annotations

from typing import Any

import pytest

from gemnb.services.tokens import context_limit, estimate_tokens, json_units, units

PNG = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([], 0),
        ([{"text": "abc"}], 0),
        ([{"text": "abc"}, {"text": "abc"}, {"text": "ab"}], 2),
        ([{"text": "日本"}], 3),
        ([{"text": "😀"}], 3),
        ([{"text": "日" * 100_000}], 150_000),
        ([{"text": "日" * 100_001}], 25_000),
        ([PNG], 3_000),
        ([{"fileData": {"mimeType": "application/pdf", "fileUri": "x"}}], 25_800),
        ([{"functionResponse": {"name": "f", "response": {"output": "ok"}, "parts": [PNG]}}], 3_004),
        ([{}], 0),
    ],
    ids=[
        "none",
        "floor",
        "sum first",
        "not ASCII",
        "two units",
        "long enough",
        "longer",
        "image",
        "pdf",
        "nested",
        "empty",
    ],
)
def test_an_estimate_is_the_floor_of_the_sum(parts: list[dict[str, Any]], expected: int) -> None:
    assert estimate_tokens(parts) == expected


def test_lengths_are_javascripts() -> None:
    assert units("a😀") == 3
    assert json_units({"t": "\ud83d"}) == len('{"t":"\\ud83d"}')
    assert json_units({"t": "日\x01"}) == len('{"t":"日\\u0001"}')


def test_limits_go_by_the_models_name() -> None:
    assert context_limit("gemini-2.5-pro") == 1_048_576
    assert context_limit("gemma-4-31b-it") == 256_000
    assert context_limit(None) == 1_048_576
