"""All benchmarks: `python tests/benchmarks/run.py [--rounds N] [STORE …]`, stores with `home/` and `proj/`.

Without stores the three that the bars were set for are made: 2,000 sessions of 400 MB, one session of 500 MB, and one
with a line of 60 MB. Prints one table for each, then what `frames.py` and `browser.py` tell of the first. It takes some
ten minutes, and wants a machine that does little else; CPU seconds stand more of that than wall time does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import listing
import search
import tables
from measuring import Row, Store, show, store_of

KINDS = ("M", "L", "L2")


def rows(store: Store, rounds: int) -> Iterator[Row]:
    """Every figure that has a bar."""
    yield from listing.rows(store, rounds)
    if len(store.files) > 1:
        yield from search.rows(store, rounds)
    yield from tables.rows(store, rounds)


def main() -> bool:
    """Measure and print; whether every bar was met."""
    parser = argparse.ArgumentParser(description="All benchmarks of gemnb.")
    parser.add_argument("stores", nargs="*", help="folders with `home/` and `proj/`; by default they are made")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with ExitStack() as made:
        wanted = [store_of([folder]) for folder in args.stores] or [store_of([], kind=kind) for kind in KINDS]
        stores = [made.enter_context(store) for store in wanted]
        met = [_told(store, args.rounds) for store in stores]
        for name in ("frames.py", "browser.py"):
            print(f"\n{name}", flush=True)
            subprocess.run([sys.executable, Path(__file__).with_name(name), stores[0].root.parent], check=True)
    return all(met)


def _told(store: Store, rounds: int) -> bool:
    size = sum(path.stat().st_size for path in store.files) / 1e6
    print(f"\n{len(store.files):,} sessions, {size:,.0f} MB, longest line {store.longest_line_mb:.1f} MB")
    return show(rows(store, rounds))


if __name__ == "__main__":
    sys.exit(not main())
