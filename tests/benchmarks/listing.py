"""How quick a listing is: `python tests/benchmarks/listing.py [STORE] [ROUNDS]`, a folder with `home/` and `proj/`.

Without a store one of 2,000 sessions is made. The terminal client is compared where `GEMNB_GEMINI_CLI` names it,
ccusage where `GEMNB_CCUSAGE` names its native program (`npm install ccusage`, then `@ccusage/*/bin/ccusage`).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from measuring import (
    Command,
    Row,
    Store,
    copy_of,
    least,
    least_of_programs,
    orjson_all,
    python,
    show,
    stat_all,
    store_of,
    told_by,
)

from gemnb.store.rows import SETTLED_NS

LIST = """
import sys
import gemnb
ws = gemnb.open_workspace(sys.argv[2], home=sys.argv[1])
ws.index.on = False
len(str(ws.listing()))
"""
MEMORY = LIST + "print(peak())"
GROWTH_BYTES = 1000


def rows(store: Store, rounds: int) -> Iterator[Row]:
    """Every figure of a listing."""
    yield from in_process(store, rounds)
    yield from programs(store, rounds)
    yield memory(store)


def in_process(store: Store, rounds: int) -> Iterator[Row]:
    """Without the index, with a fresh one, and after a session grew."""
    with copy_of(store) as copy, tempfile.TemporaryDirectory() as folder:
        files, chats = copy.files, copy.chats
        without, fresh = copy.open(), copy.open(Path(folder, "fresh.sqlite"))
        jobs = {
            "orjson": lambda: orjson_all(files),
            "without": without.sessions,
            "stat": lambda: stat_all(chats),
            "fresh": fresh.sessions,
        }
        time.sleep(SETTLED_NS / 1e9 + 0.1)  # a file that was just copied is not remembered
        fresh.sessions()
        found = least(jobs, rounds)
        yield Row("list, no index", found["without"], "s", found["orjson"], "orjson of every line", 0.75)
        if len(files) == 1:  # what one file costs beside a database says nothing
            return
        yield Row("list again, index fresh", found["fresh"], "s", found["stat"], "stat of every file", 3.5)
        middle = sorted(files, key=lambda path: path.stat().st_size)[len(files) // 2]
        jobs = {"stat": jobs["stat"], "grown": fresh.sessions}
        found = least(jobs, rounds, before={"grown": lambda: grow(middle)})
        if fresh.sessions(hidden=True) != without.sessions(hidden=True):
            raise SystemExit("The index told another listing than the files.")
        yield Row("list again, one session grew by 1 KB", found["grown"], "s", found["stat"], "stat of every file", 5)


def grow(path: Path) -> None:
    """A prompt of 1 KB more."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    record = {"id": f"grown-{now}", "timestamp": now, "type": "user", "content": [{"text": "x" * GROWTH_BYTES}]}
    with path.open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")


def programs(store: Store, rounds: int) -> Iterator[Row]:
    """Whole programs side by side; the client without its own start-up and ours without ours."""
    ours = python(LIST, store.home, store.root)
    if program := os.environ.get("GEMNB_CCUSAGE"):
        theirs = Command(
            [program, "gemini", "session", "--offline", "--json"], os.environ | {"HOME": str(store.home)}, store.root
        )
        found = least_of_programs({"ours": ours, "ccusage": theirs}, rounds)
        yield Row("list, no index, whole program", found["ours"], "s", found["ccusage"], "ccusage", 0.8)
    if program := os.environ.get("GEMNB_GEMINI_CLI"):
        with copy_of(store) as copy, tempfile.TemporaryDirectory() as empty:
            environment = client_environment(copy.home)
            commands = {
                "ours": ours,
                "our start": python(LIST, empty, store.root),
                "client": Command([program, "--list-sessions"], environment, store.root),
                "client start": Command([program, "--version"], environment, store.root),
            }
            found = least_of_programs(commands, rounds)
        theirs_s = found["client"] - found["client start"]
        what = "list, no index, whole program without its start"
        yield Row(what, found["ours"] - found["our start"], "s", theirs_s, "the terminal client", 1 / 15)


def client_environment(home: Path) -> dict[str, str]:
    """The terminal client's variables: a home, a key that is none, and no service to reach."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(home / "none.json"),
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "NO_COLOR": "1",
    }


def memory(store: Store) -> Row:
    """Peak of a process that lists."""
    (peak,) = told_by(MEMORY, store.home, store.root)
    return Row(
        "list, no index, peak memory", peak, "MB", 64 + 2.5 * store.longest_line_mb, "64 + 2.5 x longest line", 1
    )


if __name__ == "__main__":
    with store_of(sys.argv[1:2]) as given:
        sys.exit(not show(rows(given, int(sys.argv[2]) if len(sys.argv) > 2 else 5)))
