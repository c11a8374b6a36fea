"""What answers cost, many at once: a price is looked up once for a model and a day, the rest is done by column."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import nan
from typing import TYPE_CHECKING, Any

from gemnb.model.cost import Cost, Price, PriceTable, Rates, Scale, charge
from gemnb.model.ledger import ABSENT, ODD, Ledger
from gemnb.model.records import TOKEN_KINDS, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNKNOWN = (nan,) * len(Cost._fields)


def joined(columns: Iterable[array[int]]) -> NDArray[Any]:
    """Counts of ledgers, one after another."""
    import numpy as np

    return np.frombuffer(bytearray().join(columns), np.int64)


def paid_places(ledgers: Sequence[Ledger]) -> list[int]:
    """Places of the messages that were paid for among those of all ledgers."""
    starts = accumulate((len(ledger.ids) for ledger in ledgers), initial=0)
    return [start + place for start, ledger in zip(starts, ledgers, strict=False) for place in ledger.paid]


def costs_of(ledgers: Sequence[Ledger], price: Price) -> NDArray[Any]:
    """US dollars of each message that was paid for, a row each, as `Cost` has them; NaN where they are unknown."""
    import numpy as np

    paid = np.array(paid_places(ledgers), np.intp)
    counts = {kind: joined(ledger.counts[kind] for ledger in ledgers)[paid] for kind in TOKEN_KINDS}
    models = [ledger.models[place] for ledger in ledgers for place in ledger.paid]
    times = [ledger.times[place] for ledger in ledgers for place in ledger.paid]
    costs = np.full((len(paid), len(UNKNOWN)), nan)
    if isinstance(price, PriceTable):
        by_scale: dict[Scale | None, list[int]] = {}
        by_day: dict[Any, list[int]] = {}
        for place, (model, at) in enumerate(zip(models, times, strict=True)):
            key = model, at and at.date()
            if (places := by_day.get(key)) is None:
                places = by_day[key] = by_scale.setdefault(price.scale(*key), [])
            places.append(place)
        for scale, places in by_scale.items():
            if scale:
                costs[places] = _by_scale(scale, {kind: counts[kind][places] for kind in TOKEN_KINDS})
    else:
        told = zip(*(column.tolist() for column in counts.values()), strict=True)
        for place, row in enumerate(told):
            tokens = Tokens(**{k: None if n == ABSENT else n for k, n in zip(TOKEN_KINDS, row, strict=True)})
            costs[place] = price(models[place], tokens, times[place]) or UNKNOWN
    return costs


def _by_scale(scale: Scale, counts: dict[str, NDArray[Any]]) -> NDArray[Any]:
    import numpy as np

    known = counts["input"] >= 0
    for kind in TOKEN_KINDS:
        known &= (counts[kind] != ODD) | (kind == "total")
    input, cached, output, thoughts, tool, _ = (np.maximum(counts[kind], 0) for kind in TOKEN_KINDS)
    rates = np.array([(rates.input, rates.cached, rates.output) for rates in scale.rates])
    told = Rates(*rates[np.searchsorted(scale.starts, input + tool)].T)
    costs = np.column_stack(charge(told, input + tool, np.minimum(cached, input), output, thoughts))
    costs[~known & rates.any()] = nan  # what is free is free, whatever was counted
    return costs
