"""The ledgers of many sessions as one table: whole columns at once, no object for a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from gemnb.model.ledger import NUMBERS, Ledger, parted

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAMED = ("type", "model", "outcome")


@dataclass(frozen=True, slots=True)
class Coded:
    """Values that are few and stand often."""

    codes: NDArray[Any]
    """Places among `names`; as in a `Ledger`, less than 0 where there is none."""
    names: Sequence[str]
    """Each once, in order."""


@dataclass(frozen=True, slots=True)
class Words:
    """Texts as UTF-8, one after another."""

    joined: bytes | bytearray
    sizes: NDArray[Any]

    def told(self) -> list[str]:
        """Each by itself."""
        return [*parted(self.joined, self.sizes.tolist())]


@dataclass(frozen=True, slots=True)
class Joined:
    """The messages of ledgers, one after another."""

    counts: list[int]
    """How many messages each ledger has."""
    numbers: Mapping[str, NDArray[Any]]
    """`NUMBERS`; those of a name are places among `names`."""
    names: Sequence[str]
    """Each once, in order."""

    def name(self, code: int) -> str | None:
        """What it stands for; None where there is none."""
        return None if code < 0 else self.names[code]

    def coded(self, name: str) -> Coded:
        """Types, models or outcomes."""
        return Coded(self.numbers[name], self.names)

    def words(self, parts: Sequence[bytearray], sizes: str) -> Words:
        """Ids or texts, those of a ledger each."""
        return Words(parts[0] if len(parts) == 1 else b"".join(parts), self.numbers[sizes])


def joined(ledgers: Sequence[Ledger]) -> Joined:
    """`ledgers` as one table."""
    import numpy as np

    empty = np.empty((len(NUMBERS), 0), np.int64)
    parts = [np.frombuffer(ledger.numbers, np.int64).reshape(len(NUMBERS), -1) for ledger in ledgers if ledger.numbers]
    numbers = dict(zip(NUMBERS, np.concatenate([empty, *parts], axis=1), strict=True))
    told = [*chain.from_iterable(ledger.names for ledger in ledgers)]
    names = sorted({*told})
    places = {name: place for place, name in enumerate(names)}
    own = np.array([places[name] for name in told], np.int64)
    sizes = np.array([len(ledger.names) for ledger in ledgers], np.int64)
    counts = [ledger.count for ledger in ledgers]
    starts = np.repeat(np.cumsum(sizes) - sizes, counts)
    for name in NAMED:
        codes = numbers[name]
        known = codes >= 0
        codes[known] = own[codes[known] + starts[known]]
    return Joined(counts, numbers, names)
