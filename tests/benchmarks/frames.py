"""How quick the tables are: `python tests/benchmarks/frames.py STORE [ROUNDS]`, a folder with `home/` and `proj/`.

Prints for each table, without and with the index, the least CPU and wall seconds of the interleaved rounds in one
process, and the CPU beside that of `orjson.loads` over the same lines (`pip install orjson`). Then the peak memory of a
process that makes the table of messages.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import orjson
import pandas as pd

import gemnb
from gemnb.store.index import Index
from gemnb.store.rows import rows_version, session_files
from gemnb.workspace import Workspace

TABLES = (gemnb.messages_df, gemnb.tool_calls_df, gemnb.usage_df, gemnb.sessions_df)
MEMORY = """
import pandas, sys
import gemnb
from pathlib import Path

def peak():  # `ru_maxrss` would tell the largest of the parent, too
    told = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(told.split()[1])

store = Path(sys.argv[1])
ws = gemnb.open_workspace(store / "proj", home=store / "home")
ws.index.on = False
pandas.Series(["x"]).astype("category")
print(peak(), len(gemnb.messages_df(ws)), peak())
"""


class Spent(NamedTuple):
    """Seconds of one call."""

    cpu: float
    wall: float


def orjson_lines(ws: Workspace) -> int:
    """Decode every line of the store and keep nothing."""
    count = 0
    for folder in ws.store.folders:
        for path in session_files(folder):
            with path.open("rb", buffering=1 << 18) as file:
                for line in file:
                    try:
                        orjson.loads(line)
                    except orjson.JSONDecodeError:
                        continue
                    count += 1
    return count


def compared(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Spent]:
    """The least seconds of each job over interleaved rounds."""
    best: dict[str, Spent] = {}
    for _ in range(rounds):
        for name, job in jobs.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            job()
            spent = Spent(time.process_time() - cpu, time.perf_counter() - wall)
            held = best.get(name, spent)
            best[name] = Spent(min(held.cpu, spent.cpu), min(held.wall, spent.wall))
    return best


def without_index(table: Callable[[Workspace], pd.DataFrame], ws: Workspace) -> pd.DataFrame:
    """`table` of files that are all read."""
    ws.index.on = False
    try:
        return table(ws)
    finally:
        ws.index.on = True


def main(store: Path, rounds: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder) / "index.sqlite", version=rows_version())
        ws = gemnb.open_workspace(store / "proj", home=store / "home")
        ws.index, ws.store._index = index, index  # the person's own stays as it is
        jobs: dict[str, Callable[[], object]] = {"orjson": lambda: orjson_lines(ws)}
        for table in TABLES:
            jobs[table.__name__] = lambda table=table: without_index(table, ws)
            jobs[f"{table.__name__}, index"] = lambda table=table: table(ws)
        found = compared(jobs, rounds)
    print(f"{'':22} {'cpu s':>7} {'wall s':>7} {'/ orjson':>8}")
    for name, spent in found.items():
        print(f"{name:22} {spent.cpu:7.3f} {spent.wall:7.3f} {spent.cpu / found['orjson'].cpu:8.2f}")
    told = subprocess.run([sys.executable, "-c", MEMORY, str(store)], capture_output=True, text=True, check=True)
    before, messages, peak = map(int, told.stdout.split())
    print(f"memory: {before / 1024:.0f} MB with pandas, {peak / 1024:.0f} MB with the table of {messages:,} messages")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
