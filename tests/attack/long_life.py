"""One process, one session, thousands of turns: `python tests/attack/long_life.py --turns 5000 [--base-url URL]`.

Prints, as JSON, how memory, file handles and the time of a turn went, and what was written. With a URL the model is the
real one's library against a service there, which must call `look` where a prompt names it, and sum up where asked.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import gemnb
from gemnb.services.genai import GenaiLlm
from gemnb.testing import DemoLlm

COMPRESS_EVERY = 25
CALL_EVERY = 5


def look(table: str) -> str:
    """Look at a table."""
    return f"{table}: " + "forty-two rivers, and more. " * 40


def memory_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def written_bytes() -> int:
    """Bytes that this process gave to `write`, whatever the file."""
    told = Path("/proc/self/io").read_text()
    return int(told.split("wchar:")[1].split()[0])


class Forgetful(DemoLlm):
    """The scripted model; what it was asked is not kept, so that only the talk can grow."""

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        yield from super().stream(*args, **kwargs)
        self.asked.clear()
        self.systems.clear()


def live(turns: int, *, base_url: str | None = None) -> dict[str, Any]:
    """Talk for `turns` prompts, with tools and compressions."""
    llm = GenaiLlm("gemini-2.5-pro", api_key="x", base_url=base_url) if base_url else Forgetful()
    called = 0
    with tempfile.TemporaryDirectory() as scratch:
        ws = gemnb.open_workspace(scratch, home=Path(scratch) / "home", llm=llm, environ={})
        chat = ws.new_chat()
        chat.tools = [look]
        chat.send("First words.")  # this makes the file, the folders and the entry in the registry
        path = chat.recording.path
        size, written = path.stat().st_size, written_bytes()
        rows = []
        for number in range(turns):
            start = time.process_time()
            prompt = f"Prompt {number}: `look` at 'rivers'" if number % CALL_EVERY == 0 else f"Prompt {number}: why?"
            called += len(chat.send(prompt).tool_calls)
            if number % COMPRESS_EVERY == COMPRESS_EVERY - 1:
                chat.compress(floor={})
            rows.append((number, time.process_time() - start, memory_kb(), len(os.listdir("/proc/self/fd"))))  # noqa: PTH208
        size, written = path.stat().st_size - size, written_bytes() - written
        found = ws.load(chat.session_id)
        same = [m.id for m in found.messages] == [m.id for m in chat.messages]
    half = rows[len(rows) // 2 :]
    numbers, times, memory, handles = zip(*half, strict=True)
    return {
        "turns": turns,
        "calls": called,
        "bytes_more_in_file": size,
        "bytes_written": written,
        "reads_back": same,
        "handles": [min(handles), max(handles)],
        "memory_kb": [memory[0], memory[-1]],
        "memory_kb_per_turn": round(statistics.linear_regression(numbers, memory).slope, 3),
        "ms_per_turn": round(statistics.mean(times) * 1000, 3),
        "ms_more_in_a_thousand_turns": round(statistics.linear_regression(numbers, times).slope * 1_000_000, 3),
    }


def main() -> int:
    """Live as long as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5000)
    parser.add_argument("--base-url")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    print(json.dumps(live(told.turns, base_url=told.base_url)))  # noqa: T201 - a program
    return 0


if __name__ == "__main__":
    sys.exit(main())
