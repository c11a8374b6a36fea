"""A cleaning and its undo, killed at any moment: `python tests/attack/kill_cleaning.py --kills 500`.

A child applies a plan, or undoes one, and is killed with SIGKILL after a random while; now and then two are at it at
once. Then every file must be in the store byte for byte, or come back by an undo. The trash lies on the disk of the
store, or on another one. Prints as JSON what was killed, and stops at the first thing that is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from support import NOW, TALK, header, held, to_bytes

import gemnb

SESSIONS = 10
LATER = NOW + timedelta(days=90)
TOGETHER = 5
"""Every so manieth round two programs are at it at once."""


def open_store(base: Path) -> gemnb.Workspace:
    return gemnb.open_workspace(base / "work/app", home=base / "home", clock=lambda: LATER, environ={})


def make_store(base: Path, other_disk: Path | None) -> None:
    """A store of sessions that are all due, each with a log, outputs and a sub-agent; its trash on `other_disk`."""
    app = base / "home/.gemini/tmp/app"
    (base / "work/app").mkdir(parents=True)
    for number in range(SESSIONS):
        id = f"{number:08x}-0000-4000-8000-000000000000"
        content = to_bytes(header(id), *TALK)
        for place in (
            f"chats/session-2026-05-01T10-{number:02}-{id[:8]}.jsonl",
            f"logs/session-{id}.jsonl",
            f"tool-outputs/session-{id}/one.txt",
            f"tool-outputs/session-{id}/two.txt",
            f"chats/{id}/bb22cc33-0000-4000-8000-{number:012x}.jsonl",
        ):
            path = app / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content * (1 + number * 20))
            for each in (path, path.parent):
                os.utime(each, (NOW.timestamp(),) * 2)
    (app / "chats/not-a-session.txt").write_text("somebody's")
    (app / ".project_root").write_text(str(base / "work/app"))
    if other_disk:
        (base / "home/.gemnb").symlink_to(other_disk)


def child(act: Callable[[], Any]) -> tuple[int, int]:
    """A process that does `act` when it is let, and tells as JSON what came of it: its id, and where it tells that."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    try:
        os.write(writer, json.dumps(act()).encode())
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def ended(pid: int, reader: int) -> Any:
    """What a child told; None where it was killed before."""
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert told or os.WIFSIGNALED(status), "the child failed"
    return json.loads(told) if told else None


def apply(plan: Any) -> dict[str, Any]:
    done = plan.apply()
    counts = {name: getattr(done, name) for name in ("scanned", "deleted", "skipped", "failed", "vanished")}
    return counts | {"gone": [str(path) for path in done.gone]}


def undo(base: Path) -> int:
    """Undo all that can be undone; how many sessions came back."""
    back = 0
    with suppress(gemnb.GemnbError):
        while True:
            back += len(open_store(base).undo_deletion().entries)
    return back


def is_whole(base: Path, before: dict[str, Any]) -> None:
    """Nothing is lost and nothing is left over, once all is undone."""
    undo(base)
    assert held(base / "home/.gemini") == before, "something is not as it was"
    trash = open_store(base).cleanup.trash
    assert not trash.entries() and not trash.damaged()
    trash.purge()
    assert not trash.folder.exists() or not list(trash.folder.iterdir())


def killed(base: Path, act: Callable[[], Any], after: float) -> bool:
    """Do `act` in a child that is killed `after` so many seconds; whether it was."""
    pid, reader = child(act)
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    return ended(pid, reader) is None


def both(acts: list[Callable[[], Any]]) -> list[Any]:
    return [ended(*told) for told in [child(act) for act in acts]]


def at_once(base: Path, *, same_plan: bool) -> None:
    """Two programs apply a plan, then two undo it: each session goes once, is counted once, and is back."""
    first = open_store(base).retention()
    plans = [first, first if same_plan else open_store(base).retention()]
    one, two = both([lambda plan=plan: apply(plan) for plan in plans])  # type: ignore[misc]
    assert one["deleted"] + two["deleted"] == SESSIONS, (one, two)
    assert one["failed"] == two["failed"] == 0, (one, two)
    assert {told["deleted"] + told["vanished"] for told in (one, two)} == {SESSIONS}, (one, two)
    assert not set(one["gone"]) & set(two["gone"])
    assert sum(both([lambda: undo(base)] * 2)) == SESSIONS


def bench(kills: int, *, seed: int, other_disk: Path | None, folder: Path) -> Iterator[dict[str, Any]]:
    """Kill so many children, and tell what came of them so far; raises where anything was lost."""
    chosen = random.Random(seed)
    count: Counter[str] = Counter()
    base = folder / "store"
    make_store(base, other_disk)
    before = held(base / "home/.gemini")
    longest = {"apply": 0.05, "undo": 0.05}
    while count["apply"] + count["undo"] < kills:
        count["rounds"] += 1
        if count["rounds"] % TOGETHER == 0:
            at_once(base, same_plan=chosen.random() < 0.5)
            count["together"] += 1
            is_whole(base, before)
            continue
        what = chosen.choice(["apply", "undo"])
        plan = open_store(base).retention()
        assert len(plan.due) == SESSIONS, plan
        if what == "undo":
            plan.apply()
        act = (lambda plan=plan: apply(plan)) if what == "apply" else lambda: undo(base)  # type: ignore[misc]
        if killed(base, act, chosen.uniform(0, longest[what])):
            count[what] += 1
            longest[what] *= 1.02
            count["in the middle"] += 0 < len(open_store(base).cleanup.trash.entries()) < SESSIONS
            if chosen.random() < 0.3 and killed(base, lambda: undo(base), chosen.uniform(0, longest["undo"])):
                count["undo after that"] += 1
        else:
            longest[what] *= 0.9
        is_whole(base, before)
        yield dict(count)
    shutil.rmtree(base)


def main() -> int:
    """Kill as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--other-disk", type=Path, help="a folder of another file system, for the trash")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        told = list(bench(asked.kills, seed=asked.seed, other_disk=asked.other_disk, folder=Path(folder)))
    print(json.dumps(told[-1]), flush=True)  # noqa: T201 - a program
    return 0


if __name__ == "__main__":
    sys.exit(main())
