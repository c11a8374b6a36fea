"""How quick a search is: `python tests/benchmarks/search.py [STORE] [ROUNDS] [RARE CJK FREQUENT]`.

Without a store one of 2,000 sessions is made; the words are those of the generated stores.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import Row, Store, least, read_all, show, store_of

from gemnb.services.search import search

WORDS = ("zqxneedle42", "量子纠缠实验失败了", "error")
"""A rare one, a rare one of nine CJK characters, and one of every day."""


def rows(store: Store, rounds: int, words: Sequence[str] = WORDS) -> Iterator[Row]:
    """Every figure of a search; the listing is there already, as it is where a person searches."""
    rare, cjk, frequent = words
    with tempfile.TemporaryDirectory() as folder:
        ws = store.open(Path(folder, "index.sqlite"))
        listed, files = ws.sessions(), store.files

        def hits(word: str) -> int:
            return sum(1 for _ in search(word, listed, ws.store.load))

        jobs = {
            "read": lambda: read_all(files),
            "rare": lambda: hits(rare),
            "cjk": lambda: hits(cjk),
            "first": lambda: next(search(frequent, listed, ws.store.load), None),
        }
        found = least(jobs, rounds)
        for name, word in (("rare", rare), ("cjk", cjk)):
            yield Row(
                f"search of {word!r}, hits: {hits(word)}", found[name], "s", found["read"], "reading every byte", 3
            )
        yield Row(f"first hit of {frequent!r}", found["first"] * 1000, "ms", 50, "", 1)


if __name__ == "__main__":
    with store_of(sys.argv[1:2]) as given:
        sys.exit(not show(rows(given, int(sys.argv[2]) if len(sys.argv) > 2 else 5, sys.argv[3:] or WORDS)))
