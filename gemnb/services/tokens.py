"""Estimates of tokens, and how many a model takes (FORMAT.md 6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from gemnb.model.records import JsonObject, Part
from gemnb.model.turns import Turn

LONG_TEXT = 100_000
"""Characters (UTF-16 units); a longer text is estimated by its length alone."""
IMAGE_TOKENS = 3_000
PDF_TOKENS = 25_800
DEEPEST = 3
DEFAULT_LIMIT = 1_048_576
LIMITS = {"gemma-4": 256_000}
"""By the beginning of a model's name."""


def context_limit(model: str | None) -> int:
    """Tokens that `model` takes in one request."""
    return next((limit for start, limit in LIMITS.items() if model and model.startswith(start)), DEFAULT_LIMIT)


def estimate_turns(turns: Iterable[Turn]) -> int:
    """Tokens of `turns`, estimated."""
    return estimate_tokens([part for turn in turns for part in turn.parts])


def estimate_tokens(parts: Sequence[Part], *, depth: int = 0) -> int:
    """Tokens of `parts`, estimated: the floor of the sum."""
    return int(sum(_part(part, depth) for part in parts)) if depth <= DEEPEST else 0


def _part(part: Part, depth: int) -> float:
    text, response = part.get("text"), part.get("functionResponse")
    if isinstance(text, str):
        return _text(text)
    if isinstance(response, dict):
        told = response.get("response")
        inner = response.get("parts")
        said = units(told) / 4 if isinstance(told, str) else json_units(told) / 4 if told is not None else 0
        nested = estimate_tokens(inner, depth=depth + 1) if isinstance(inner, list) else 0
        return units(str(response.get("name") or "")) / 4 + said + nested
    kind = _media_type(part)
    if kind.startswith("image/"):
        return IMAGE_TOKENS
    if kind == "application/pdf":
        return PDF_TOKENS
    return json_units(part) / 4


def _media_type(part: Part) -> str:
    media = part.get("inlineData") or part.get("fileData")
    return str(media.get("mimeType") or "") if isinstance(media, dict) else ""


def _text(text: str) -> float:
    length = units(text)
    if length > LONG_TEXT:
        return length / 4
    ascii_units = length if text.isascii() else sum(char < "\x80" for char in text)
    return ascii_units / 4 + (length - ascii_units) * 1.5


def units(text: str) -> int:
    """Length of `text` as JavaScript counts it: in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def json_units(value: object) -> int:
    """Length of `value` as JSON, in UTF-16 units; half characters are escapes there."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return units(text) + 5 * sum("\ud800" <= char <= "\udfff" for char in text)


def content_units(content: JsonObject) -> int:
    """Length of a Content as JSON, by which a talk is split."""
    return json_units(content)
