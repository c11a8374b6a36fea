"""Columns as data: each with name, dtype, meaning and a typed way to its value; frames are built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
LARGEST = 2**63 - 1
"""The largest whole number that a column can hold; a file may tell any."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its name, its dtype, its meaning with unit, and how a row yields it."""

    name: str
    dtype: str
    """`str`, `Int64`, `Float64`, `boolean`, `category` or `datetime64[us, UTC]`."""
    meaning: str
    value: Callable[[T], object]


def to_frame(rows: Iterable[T], columns: Sequence[Column[T]]) -> pd.DataFrame:
    """One row for each of `rows`; no rows give the same columns and dtypes as many.

    Half characters become U+FFFD, so that every frame can be written as UTF-8.
    """
    import pandas as pd

    held = list(rows)
    return pd.DataFrame({c.name: series([c.value(row) for row in held], c.dtype) for c in columns})


def series(values: list[object], dtype: str) -> pd.Series:
    """`values` as a Series of `dtype`; what does not fit is NA."""
    import pandas as pd

    if dtype in ("str", "category"):
        texts = pd.Series([_whole_text(v) for v in values], dtype="str")
        return texts.astype("category") if dtype == "category" else texts
    if dtype.startswith("datetime64"):
        return pd.Series(pd.to_datetime(pd.Series(values, dtype="object"), utc=True).astype("datetime64[us, UTC]"))
    if dtype == "Int64":
        return pd.Series([v if isinstance(v, int) and -LARGEST <= v <= LARGEST else pd.NA for v in values], dtype=dtype)
    return pd.Series([pd.NA if v is None else v for v in values], dtype=dtype)


def describe(columns: Sequence[Column[T]]) -> str:
    """The columns as a Markdown table, for the documents."""
    lines = ["| column | dtype | meaning |", "|---|---|---|"]
    lines += [f"| `{c.name}` | `{c.dtype}` | {c.meaning} |" for c in columns]
    return "\n".join(lines)


def _whole_text(value: object) -> str | None:
    return None if value is None else str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
