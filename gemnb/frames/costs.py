"""What answers cost, many at once: a price is looked up once for a model and a day, the rest is done by column."""

from __future__ import annotations

from datetime import date
from math import nan
from typing import TYPE_CHECKING, Any

from gemnb.frames.joined import Joined
from gemnb.model.cost import Cost, Price, PriceTable, Rates, Scale, charge
from gemnb.model.ledger import ABSENT, NO_TIME, ODD, moment
from gemnb.model.records import TOKEN_KINDS, Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNKNOWN = (nan,) * len(Cost._fields)
DAY = 86_400_000_000
"""Microseconds."""
FIRST_DAY = date(1970, 1, 1).toordinal()


def costs_of(told: Joined, price: Price) -> NDArray[Any]:
    """US dollars of each message that was paid for, a row each, as `Cost` has them; NaN where they are unknown."""
    import numpy as np

    paid = told.numbers["paid"] == 1
    counts = {kind: told.numbers[kind][paid] for kind in TOKEN_KINDS}
    models, times = told.numbers["model"][paid], told.numbers["at"][paid]
    costs = np.full((len(times), len(UNKNOWN)), nan)
    if isinstance(price, PriceTable):
        for scale, places in _scales(told, models, times // DAY, price).items():
            costs[places] = _by_scale(scale, {kind: counts[kind][places] for kind in TOKEN_KINDS})
    else:
        rows = zip(models.tolist(), times.tolist(), *(column.tolist() for column in counts.values()), strict=True)
        for place, (model, at, *row) in enumerate(rows):
            tokens = Tokens(**{k: None if n == ABSENT else n for k, n in zip(TOKEN_KINDS, row, strict=True)})
            costs[place] = price(told.name(model), tokens, moment(at)) or UNKNOWN
    return costs


def _scales(told: Joined, models: NDArray[Any], days: NDArray[Any], price: PriceTable) -> dict[Scale, NDArray[Any]]:
    """Which messages have which rates; those whose rates are unknown are left out."""
    import numpy as np

    most = len(told.names) - ODD
    keys, which = np.unique(days * most + (models - ODD), return_inverse=True)
    found: dict[Scale, list[int]] = {}
    for key, (day, model) in enumerate(divmod(one, most) for one in keys.tolist()):
        at = None if day == NO_TIME // DAY else date.fromordinal(FIRST_DAY + day)
        if scale := price.scale(told.name(model + ODD), at):
            found.setdefault(scale, []).append(key)
    return {scale: np.flatnonzero(np.isin(which, some)) for scale, some in found.items()}


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
