"""Columns as data: each with name, dtype, meaning and a typed way to its value; frames are built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gemnb.model.records import as_count

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
ABSENT: Final = object()
"""Stands for a value that every record has and this one lacks; like any odd value it becomes NA and is counted."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its name, its dtype, its meaning with unit, and how a row yields it."""

    name: str
    dtype: str
    """`str`, `Int64` (a count, never negative), `Float64`, `boolean`, `category`, `datetime64[us]` (local time) or
    `datetime64[us, ZONE]`."""
    meaning: str
    value: Callable[[T], object]
    """None is NA; so is a value that does not fit the dtype, and that is counted as odd."""


def to_frame(
    rows: Iterable[T], columns: Sequence[Column[T]], facts: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """One row for each of `rows`; no rows give the same columns and dtypes as many.

    `attrs["gemnb"]` holds `facts`, and in `odd` how many values of which column did not fit its dtype and are NA. Half
    characters become U+FFFD, so that every frame can be written as UTF-8.
    """
    import pandas as pd

    values: list[list[object]] = [[] for _ in columns]
    for row in rows:  # one at a time: a row may hold a whole session
        for held, column in zip(values, columns, strict=True):
            held.append(column.value(row))
    made = {c.name: series(held, c.dtype) for c, held in zip(columns, values, strict=True)}
    frame = pd.DataFrame({name: told for name, (told, _) in made.items()})
    frame.attrs["gemnb"] = {**(facts or {}), "odd": {name: odd for name, (_, odd) in made.items() if odd}}
    return frame


def series(values: Sequence[object], dtype: str) -> tuple[pd.Series, int]:
    """`values` as a Series of `dtype`, and how many of them were odd: neither None nor fit for it."""
    import pandas as pd

    fit = FITS[dtype.partition("[")[0]]
    fitted = [None if value is None else fit(value) for value in values]
    odd = sum(told is None and value is not None for value, told in zip(values, fitted, strict=True))
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.DatetimeIndex(fitted, dtype="datetime64[us, UTC]" if zone else "datetime64[us]")
        return pd.Series(times.tz_convert(zone) if zone else times), odd
    if dtype == "category":
        return pd.Series(fitted, dtype="str").astype("category"), odd
    return pd.Series(fitted, dtype=dtype), odd


def describe(columns: Iterable[Column[T]]) -> str:
    """The columns as a Markdown table, for the documents."""
    lines = ["| column | dtype | meaning |", "|---|---|---|"]
    lines += [f"| `{c.name}` | `{c.dtype}` | {c.meaning} |" for c in columns]
    return "\n".join(lines)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(value: object) -> float | None:
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if whole and isfinite(value) else None  # type: ignore[arg-type]


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _moment(value: object) -> datetime | None:
    return value if isinstance(value, datetime) else None


FITS: Mapping[str, Callable[[object], object]] = {
    "str": _text,
    "category": _text,
    "Int64": as_count,
    "Float64": _number,
    "boolean": _flag,
    "datetime64": _moment,
}
"""How a value is made to fit, by dtype; None where it cannot be."""
