"""How quick the session browser is: `python tests/benchmarks/browser.py STORE`, a folder with `home/` and `proj/`.

Prints milliseconds of wall time on the Python side: opening after the listing, the preview of a talk of 1,000 messages,
and from a letter in the search to its first rows (titles, 95th percentile) and to the first match in what was said.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

import gemnb
from gemnb.services import browsing
from gemnb.services.prices import list_price
from gemnb.services.search import search

WORDS = ("the", "error", "test", "file", "data", "row", "why", "函数", "plot", "port")
ROUNDS = 5


def milliseconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def long_talk(folder: Path) -> gemnb.Workspace:
    """A workspace with one session of 1,000 messages."""
    chats = folder / "home" / ".gemini" / "tmp" / "long" / "chats"
    chats.mkdir(parents=True)
    root = folder / "long"
    root.mkdir()
    (chats.parent / ".project_root").write_text(str(root))
    lines: list[dict[str, object]] = [{"sessionId": "aaaa", "startTime": "2026-05-01T10:00:00.000Z", "kind": "main"}]
    for number in range(500):
        lines.append({"id": f"u{number}", "type": "user", "content": f"Question {number}?"})
        lines.append({"id": f"g{number}", "type": "gemini", "content": f"**Answer** {number}\n\n```python\nx\n```"})
    text = "\n".join(map(json.dumps, lines))
    (chats / "session-2026-05-01T10-00-aaaa.jsonl").write_text(text + "\n")
    return gemnb.open_workspace(root, home=folder / "home")


def main(store: Path) -> None:
    """Measure and print."""
    ws = gemnb.open_workspace(store / "proj", home=store / "home")
    listed = browsing.keyed(ws.listing())
    print(f"{len(listed)} sessions")
    rows = [milliseconds(lambda: browsing.rows_of(listed, ws.clock())) for _ in range(ROUNDS)]
    print(f"rows after the listing: {median(rows):.1f} ms")
    titles = [
        milliseconds(lambda: browsing.rows_of(listed, ws.clock(), query=word)) for word in WORDS for _ in range(ROUNDS)
    ]
    print(f"a letter to its first rows, 95th percentile: {quantiles(titles, n=20)[-1]:.1f} ms")
    said = [milliseconds(lambda: next(search(word, listed.values(), ws.store.load), None)) for word in WORDS]
    print(f"to the first match in what was said, median: {median(said):.0f} ms, most {max(said):.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        long = long_talk(Path(folder))
        row = long.find(1)
        opened = [milliseconds(lambda: browsing.preview(long.load(1), row, price=list_price)) for _ in range(ROUNDS)]
        print(f"preview of {row.message_count} messages: {median(opened):.0f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
