"""How quick the table of messages is, for `run.py`; `frames.py` tells of every table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from measuring import Row, Store, least, orjson_all, told_by

import gemnb

MEMORY = """
import sys
import gemnb
ws = gemnb.open_workspace(sys.argv[2], home=sys.argv[1])
ws.index.on = False
print(len(gemnb.messages_df(ws)), peak())
"""


def rows(store: Store, rounds: int) -> Iterator[Row]:
    """The table of messages without the index and from it, and its memory."""
    with tempfile.TemporaryDirectory() as folder:
        files, without, fresh = store.files, store.open(), store.open(Path(folder, "index.sqlite"))
        gemnb.messages_df(fresh)
        jobs = {
            "orjson": lambda: orjson_all(files),
            "without": lambda: gemnb.messages_df(without),
            "fresh": lambda: gemnb.messages_df(fresh),
        }
        found = least(jobs, rounds)
    yield Row("messages_df, no index", found["without"], "s", found["orjson"], "orjson of every line", 1.2)
    yield Row("messages_df, from the index", found["fresh"], "s", found["orjson"], "orjson of every line", 0.25)
    messages, peak = told_by(MEMORY, store.home, store.root)
    allowed = 130 + 2.5 * store.longest_line_mb + messages * 0.0015
    yield Row("messages_df, peak memory", peak, "MB", allowed, "130 + 2.5 x line + 1.5 KB each", 1)
