"""Files without measure, each errand in its own process: `python tests/attack/huge.py --line-mb 1024 --lines 10000000`.

Prints, as JSON for each file and errand, seconds and the most memory that it took.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support import SID, TALK, gemini, header, to_bytes, user

import gemnb
from gemnb.testing import DemoLlm

NAME = f"session-2026-05-01T10-00-{SID[:8]}.jsonl"
START = to_bytes(header(), *TALK)
END = to_bytes(user("last", "The last river?"), gemini("end", "It is the end."))
MB = 1024 * 1024


def pieces(kind: str, size: int) -> Iterator[bytes]:
    """What is written of a huge file of this kind, a piece at a time."""
    if kind == "line":  # one message, `size` MB long
        yield b'{"id":"long","timestamp":"2026-05-01T10:00:05.000Z","type":"user","content":"'
        yield from (b"x" * MB for _ in range(size))
        yield b'"}\n'
    elif kind == "open line":  # a line that nothing ends
        yield from (b"x" * MB for _ in range(size))
    elif kind == "lines":  # `size` records that say little
        yield from (b'{"$set":{"lastUpdated":"2026-05-01T10:00:09.000Z"}}\n' * 1000 for _ in range(size // 1000))
    elif kind == "messages":  # `size` messages
        for n in range(size):
            yield b'{"id":"m%d","timestamp":"2026-05-01T10:00:05.000Z","type":"user","content":"river %d"}\n' % (n, n)
    elif kind == "blank":  # `size` line ends
        yield from (b"\n" * 1000 for _ in range(size // 1000))
    elif kind == "deep":  # lists in lists
        yield b'{"id":"deep","type":"user","content":' + b"[" * size + b"]" * size + b"}\n"
    elif kind == "deep objects":
        yield b'{"id":"deep","type":"user","content":' + b'{"a":' * size + b"1" + b"}" * (size + 1) + b"\n"
    elif kind == "keys":  # an object of `size` keys
        yield b'{"id":"keys","type":"user","content":[{' + b",".join(b'"k%d":1' % n for n in range(size)) + b"}]}\n"


def make(base: Path, kind: str, size: int) -> None:
    """A store with one session, between whose first and last words the huge part stands."""
    folder = base / "home" / ".gemini" / "tmp" / "app"
    (folder / "chats").mkdir(parents=True)
    (base / "work" / "app").mkdir(parents=True)
    (folder / ".project_root").write_text(str(base / "work" / "app"))
    with (folder / "chats" / NAME).open("wb") as file:
        file.write(START)
        file.writelines(pieces(kind, size))
        file.write(END)


ERRANDS: dict[str, Callable[[gemnb.Workspace], Any]] = {
    "list": lambda ws: [row.message_count for row in ws.sessions(hidden=True)],
    "load": lambda ws: len(ws.load(SID).messages),
    "search": lambda ws: len(list(ws.search("the last river"))),
    "send": lambda ws: ws.resume(SID).send("And on?").outcome,
}


def peak_mb() -> int:
    """The most memory that this process took; what `getrusage` tells begins with its parent's."""
    told = Path("/proc/self/status").read_text()
    return int(told.split("VmHWM:")[1].split()[0]) // 1024


def run(base: Path, errand: str) -> dict[str, Any]:
    """Run one errand, in this process."""
    warnings.simplefilter("ignore")
    ws = gemnb.open_workspace(base / "work" / "app", home=base / "home", llm=DemoLlm(), environ={})
    ws.inject = False
    start = time.monotonic()
    try:
        came = ERRANDS[errand](ws)
    except gemnb.GemnbError as error:
        came = str(error)
    return {"came": came, "seconds": round(time.monotonic() - start, 2), "peak_mb": peak_mb()}


def measure(base: Path, kind: str, size: int, *, errands: Any = ERRANDS) -> Iterator[dict[str, Any]]:
    """Make the file, and run each errand over it in a process of its own."""
    make(base, kind, size)
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here.parents[1], here.parent)))
    environ = os.environ | {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(base / "cache")}
    for errand in errands:
        command = [sys.executable, __file__, "--inside", base, errand]
        done = subprocess.run(command, capture_output=True, text=True, env=environ)
        told = (
            json.loads(done.stdout) if not done.returncode else {"failed": done.returncode, "why": done.stderr[-500:]}
        )
        yield {"kind": kind, "size": size, "errand": errand} | told


def main() -> None:
    """Measure all kinds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--line-mb", type=int, default=1024)
    parser.add_argument("--lines", type=int, default=10_000_000)
    told = parser.parse_args()
    sizes = {"line": told.line_mb, "open line": told.line_mb, "lines": told.lines, "blank": told.lines}
    sizes |= {"messages": told.lines // 10, "deep": 1_000_000, "deep objects": 1_000_000, "keys": 1_000_000}
    for kind, size in sizes.items():
        with tempfile.TemporaryDirectory() as scratch:
            for result in measure(Path(scratch), kind, size):
                print(json.dumps(result), flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        print(json.dumps(run(Path(sys.argv[2]), sys.argv[3])))  # noqa: T201 - a program
    else:
        main()
