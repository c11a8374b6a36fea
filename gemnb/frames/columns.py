"""Columns as data: each with name, dtype, meaning and a typed way to its value; frames are built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import filterfalse
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from gemnb.model.ledger import ODD
from gemnb.model.records import LARGEST_COUNT, as_count

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
ODD_VALUE: Final = object()
"""Stands for a value that a record should have and has not; like any odd value it becomes NA and is counted."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its name, its dtype, its meaning with unit, and how a row, or a table, yields it."""

    name: str
    dtype: str
    """`str`, `Int64` (a count, never negative), `Float64`, `boolean`, `category`, `datetime64[us]` (local time) or
    `datetime64[us, ZONE]`."""
    meaning: str
    value: Callable[[T], object]
    """None is NA; so is a value that does not fit the dtype, and that is counted as odd."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Values that stand in so many rows each, one after another."""

    values: Sequence[object]
    times: list[int]


def to_frame(
    rows: Iterable[T], columns: Sequence[Column[T]], facts: Mapping[str, object] | None = None
) -> pd.DataFrame:
    """One row for each of `rows`; no rows give the same columns and dtypes as many.

    `attrs["gemnb"]` holds `facts`, and in `odd` how many values of which column did not fit its dtype and are NA. Half
    characters become U+FFFD, so that every frame can be written as UTF-8.
    """
    told = list(rows)
    return _framed(columns, lambda column: [column.value(row) for row in told], facts)


def column_frame(table: T, columns: Sequence[Column[T]], facts: Mapping[str, object] | None = None) -> pd.DataFrame:
    """As `to_frame`, of columns whose `value` yields those of all rows at once."""
    return _framed(columns, lambda column: column.value(table), facts)


def _framed(
    columns: Sequence[Column[T]], values: Callable[[Column[T]], Any], facts: Mapping[str, object] | None
) -> pd.DataFrame:
    import pandas as pd

    made = {column.name: series(values(column), column.dtype) for column in columns}
    frame = pd.DataFrame({name: held for name, (held, _) in made.items()}, copy=False)
    frame.attrs["gemnb"] = {**(facts or {}), "odd": {name: odd for name, (_, odd) in made.items() if odd}}
    return frame


def series(values: Any, dtype: str) -> tuple[pd.Series, int]:
    """`values` as a Series of `dtype`, and how many of them were odd: neither None nor fit for it."""
    import pandas as pd

    if isinstance(values, Repeated):
        made, odd = series(values.values, dtype)
        return made.repeat(values.times).reset_index(drop=True), odd
    if not isinstance(values, Sequence):
        return _ready(values, dtype)
    fitted, odd = _fitted(values, FITS[dtype.partition("[")[0]])
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.DatetimeIndex([*fitted], dtype="datetime64[us, UTC]" if zone else "datetime64[us]")
        return pd.Series(times.tz_convert(zone) if zone else times), odd
    if dtype == "category":
        places = {value: place for place, value in enumerate(sorted({*fitted} - {None}))}
        codes = [-1 if value is None else places[value] for value in fitted]
        return pd.Series(pd.Categorical.from_codes(codes, pd.Index([*places], dtype="str"))), odd
    return pd.Series(fitted, dtype=dtype), odd


def _ready(values: Any, dtype: str) -> tuple[pd.Series, int]:
    """As `series`, of an array: counts as a `Ledger` has them, numbers that are NaN where unknown, or pandas' own."""
    import numpy as np
    import pandas as pd

    if dtype == "Int64":
        return pd.Series(pd.arrays.IntegerArray(values, values < 0)), int((values == ODD).sum())
    if dtype == "Float64":
        return pd.Series(pd.arrays.FloatingArray(values.copy(), ~np.isfinite(values))), int(np.isinf(values).sum())
    return pd.Series(values), 0


def _fitted(values: Sequence[object], fit: Fit) -> tuple[Sequence[Any], int]:
    """`values` made to fit, and how many of them were odd."""
    types = {*map(type, values)}
    if types <= {fit.type, NoneType}:
        told = [value for value in values if value is not None] if NoneType in types else values
        if not told or fit.ready(told):
            return values, 0
    fitted = [None if value is None else fit.make(value) for value in values]
    return fitted, sum(made is None and value is not None for value, made in zip(values, fitted, strict=True))


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


@dataclass(frozen=True, slots=True)
class Fit:
    """How values are made to fit a dtype."""

    type: type
    ready: Callable[[Sequence[Any]], bool]
    """Whether values, all of this type, fit as they are: a look at many at once, where most columns end."""
    make: Callable[[object], object]
    """A value made to fit; None where it cannot be."""


def _are_whole(told: Sequence[str]) -> bool:
    """Whether no half characters are in these texts."""
    try:
        for text in filterfalse(str.isascii, told):
            text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _always(_: Sequence[object]) -> bool:
    return True


FITS: Mapping[str, Fit] = {
    "str": Fit(str, _are_whole, _text),
    "category": Fit(str, _are_whole, _text),
    "Int64": Fit(int, lambda told: min(told) >= 0 and max(told) <= LARGEST_COUNT, as_count),
    "Float64": Fit(float, lambda told: all(map(isfinite, told)), _number),
    "boolean": Fit(bool, _always, _flag),
    "datetime64": Fit(datetime, _always, _moment),
}
