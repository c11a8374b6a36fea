"""Columns as data: each with name, dtype, meaning and a typed way to its value; frames are built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import filterfalse
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gemnb.frames.joined import Coded, Words
from gemnb.model.ledger import ODD
from gemnb.model.records import LARGEST_COUNT, as_count, encoded

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


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
    if isinstance(values, Words):
        return _texts(values), 0
    if isinstance(values, Coded):
        return _categories(values.codes, values.names), int((values.codes == ODD).sum())
    if not isinstance(values, Sequence):
        return _ready(values, dtype)
    fitted, odd = _fitted(values, FITS[dtype.partition("[")[0]])
    if dtype.startswith("datetime64"):
        zone = dtype.partition(", ")[2].rstrip("]")
        times = pd.DatetimeIndex([*fitted], dtype="datetime64[us, UTC]" if zone else "datetime64[us]")
        return pd.Series(times.tz_convert(zone) if zone else times), odd
    if dtype == "category":
        names = sorted({*fitted} - {None})
        places = {value: place for place, value in enumerate(names)}
        return _categories([-1 if value is None else places[value] for value in fitted], names), odd
    return pd.Series(fitted, dtype=dtype), odd


def _ready(values: Any, dtype: str) -> tuple[pd.Series, int]:
    """As `series`, of an array: numbers as a `Ledger` has them, or NaN where they are unknown, or flags."""
    import numpy as np
    import pandas as pd

    if dtype == "Int64":
        return pd.Series(pd.arrays.IntegerArray(values, values < 0)), int((values == ODD).sum())
    if dtype == "Float64":
        return pd.Series(pd.arrays.FloatingArray(values.copy(), ~np.isfinite(values))), int(np.isinf(values).sum())
    if dtype.startswith("datetime64"):
        times = values.view("datetime64[us]")
        return pd.Series(pd.DatetimeIndex(times, tz="UTC")), int(np.isnat(times).sum())
    return pd.Series(values, dtype=dtype), 0


def _texts(words: Words) -> pd.Series:
    """No text is made an object where Arrow is there, which takes them as they are."""
    import numpy as np
    import pandas as pd

    try:
        import pyarrow as pa
    except ImportError:
        return pd.Series(words.told(), dtype="str")
    ends = np.concatenate([[0], np.cumsum(words.sizes)])
    held = pa.LargeStringArray.from_buffers(len(words.sizes), pa.py_buffer(ends), pa.py_buffer(words.joined))
    return pd.Series(held, dtype="str")


def _categories(codes: Any, names: Sequence[str]) -> pd.Series:
    """Names that stand nowhere are no category."""
    import numpy as np
    import pandas as pd

    found, places = np.unique(np.maximum(np.asarray(codes, np.int64), -1), return_inverse=True)
    held = [names[code] for code in found.tolist() if code >= 0]
    missing = len(found) - len(held)
    return pd.Series(pd.Categorical.from_codes(places - missing, pd.Index(held, dtype="str")))


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
    return encoded(value).decode()


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
