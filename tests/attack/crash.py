"""A writer that is killed at any moment: `python tests/attack/crash.py --kills 1000`.

A child works in a store and tells, over a pipe, what it begins and what has returned; it is killed with SIGKILL, and
the parent looks at what is there. Prints as JSON, now and then and at the end, what was killed, and stops at
the first thing that is lost.
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
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import gemnb
from gemnb.testing import DemoLlm

OLDER = "bb22cc33-0000-4000-8000-00000000000b"
LONGEST = 400_000
"""Characters of a prompt: a long write is cut in two where a short one is not."""
STORE_LIVES = 20
"""Kills before a new store is taken: what is there is read after each."""
TELL_EVERY = 50


def open_store(base: Path, root: str = "app") -> gemnb.Workspace:
    (base / "work" / root).mkdir(parents=True, exist_ok=True)
    found = gemnb.open_workspace(base / "work" / root, home=base / "home", llm=DemoLlm(), environ={})
    found.inject = False
    return found


def older_file(base: Path) -> Path:
    """A session of the older form, one object, as a resume migrates it."""
    path = open_store(base).folder / "chats" / f"session-2026-05-01T10-00-{OLDER[:8]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parents[1] / ".project_root").write_text(str(base / "work" / "app"))
    said = {"id": "old", "timestamp": "2026-05-01T10:00:05.000Z", "type": "user", "content": [{"text": "From before."}]}
    path.write_text(json.dumps({"sessionId": OLDER, "startTime": "2026-05-01T10:00:00.000Z", "messages": [said]}))
    return path


class Child:
    """What is killed: it does one thing after another, and says so before and after."""

    def __init__(self, base: Path, pipe: int, seed: int) -> None:
        self.base, self.pipe, self.random = base, pipe, random.Random(seed)
        self.ws = open_store(base)

    def tell(self, **what: Any) -> None:
        os.write(self.pipe, json.dumps(what).encode() + b"\n")

    def run(self) -> NoReturn:
        steps: list[Callable[[], None]] = [self.say] * 5 + [self.compress, self.rewind, self.undo]
        steps += [self.start, self.delete, self.migrate, self.register]
        self.start()
        while True:
            self.random.choice(steps)()

    def during(self, what: str, does: Callable[[], object]) -> None:
        chat = self.ws.attached()
        self.tell(begins=what, session=chat.session_id)
        with suppress(gemnb.GemnbError):  # there was nothing to take back
            does()
        self.tell(ended=what, session=chat.session_id, ids=[m.id for m in chat.messages])

    def say(self) -> None:
        text = "".join(self.random.choices("words and more ", k=self.random.choice([20, 2000, LONGEST])))
        self.during("say", lambda: self.ws.attached().send(text))

    def compress(self) -> None:
        self.during("compress", lambda: self.ws.attached().compress(floor={}))

    def rewind(self) -> None:
        self.during("rewind", lambda: self.ws.attached().rewind(self.random.randint(1, 3)))

    def undo(self) -> None:
        self.during("undo", self.ws.attached().undo_rewind)

    def start(self) -> None:
        self.ws.new_chat()
        self.say()

    def delete(self) -> None:
        others = [s.id for s in self.ws.sessions() if s.id != self.ws.attached().session_id]
        if others:
            gone = self.random.choice(others)
            self.tell(begins="delete", session=gone)
            self.ws.delete(gone)
            self.tell(ended="delete", session=gone)

    def migrate(self) -> None:
        if any(s.id == OLDER for s in self.ws.sessions()):
            self.ws.resume(OLDER)
            self.during("migrate", lambda: self.ws.attached().send("Go on from there."))

    def register(self) -> None:
        name = f"other-{self.random.randrange(10**9)}"
        self.tell(begins="register", root=name)
        open_store(self.base, name).new_chat().send("First words.")
        self.tell(ended="register", root=name)


def killed(base: Path, seed: int, after: float) -> list[dict[str, Any]]:
    """What a child told before it was killed, `after` seconds from its first words."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        warnings.simplefilter("ignore")
        try:
            Child(base, writer, seed).run()
        except BaseException:
            traceback.print_exc()
        os._exit(3)  # a child that ends of itself is a finding
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        first = pipe.readline()
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        told = first + pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended of itself: {status}"
    return [json.loads(line) for line in told.splitlines() if line.endswith(b"}")]


def session_files(base: Path) -> dict[Path, bytes]:
    return {p: p.read_bytes() for p in (base / "home" / ".gemini" / "tmp").glob("*/chats/session-*")}


def damage(base: Path) -> int:
    return sum(s.damage_count for s in open_store(base).sessions(hidden=True))


def look(base: Path, told: list[dict[str, Any]], before: dict[Path, bytes], damaged: int) -> None:
    """Nothing that had returned is lost, nothing that stood before changed, and at most one record is torn."""
    now = session_files(base)
    begun = {t["session"] for t in told if t.get("begins") == "delete"}
    kept = [p.read_bytes() for p in (base / "home" / ".gemnb").rglob("*") if p.is_file()]
    for path, data in before.items():
        if path not in now:
            assert data in kept or any(whole.startswith(data) for whole in kept), f"{path} is gone"
        else:
            assert now[path].startswith(data), f"{path} lost what it held"
    assert damage(base) <= damaged + 1, "more than one record is torn"

    last: dict[str, dict[str, Any]] = {t["session"]: t for t in told if "session" in t and t.get("ids") is not None}
    open_end = told[-1] if "begins" in told[-1] else {}
    store = open_store(base)
    there = {s.id for s in store.sessions(hidden=True)}
    for session, ended in last.items():
        if session in begun:
            continue
        if not ended["ids"] and session not in there:
            continue
        found = [m.id for m in store.load(session).messages]
        if open_end.get("session") != session:
            assert found == ended["ids"], f"{session} is not as it was left"
        elif open_end["begins"] == "say":
            assert found[: len(ended["ids"])] == ended["ids"], f"{session} lost messages"
        else:
            past = [ended["ids"], *(list(step.before) for step in store.load(session).history)]
            assert found == ended["ids"] or ended["ids"] in past, f"{session} lost its past"

    path = base / "home" / ".gemini" / "projects.json"
    registry = json.loads(path.read_text())["projects"] if path.exists() else {}  # killed before its first was made
    for root in {t["root"] for t in told if t.get("ended") == "register"}:
        assert registry.get(str(base / "work" / root)), f"{root} is not registered"


def go_on(base: Path) -> None:
    """The next writer records cleanly, in a session that was in use and in a project that is new."""
    lock = base / "home" / ".gemini" / "projects.json.lock"
    if lock.is_dir():  # the killed one held it; ten seconds later it is stale
        os.utime(lock, (1, 1))
    store = open_store(base)
    chat = store.resume("latest")
    chat.send("Are you there?")
    found = store.load(chat.session_id)
    assert [m.id for m in found.messages] == [m.id for m in chat.messages] and chat.recording.active
    assert found.messages[-2].text == "Are you there?"
    open_store(base, f"next-{random.randrange(10**9)}").new_chat().send("First words.")
    assert not lock.exists()


def bench(kills: int, *, seed: int, longest_s: float) -> Iterator[dict[str, Any]]:
    """Kill `kills` writers, each after a random while, and tell what came of them so far; raises where any was lost."""
    chosen = random.Random(seed)
    during: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    torn = locks = 0
    base = Path()
    for number in range(kills):
        if number % STORE_LIVES == 0:
            if number:
                shutil.rmtree(base)
            base = Path(tempfile.mkdtemp(prefix="crash-"))
            older_file(base)
        before, damaged = session_files(base), damage(base)
        told = killed(base, seed + number, chosen.uniform(0, longest_s))
        look(base, told, before, damaged)
        during[told[-1].get("begins", "between")] += 1
        ended.update(t["ended"] for t in told if "ended" in t)
        torn += damage(base) - damaged
        locks += (base / "home" / ".gemini" / "projects.json.lock").is_dir()
        go_on(base)
        yield {"kills": number + 1, "during": during, "returned": ended, "torn": torn, "locks_left": locks}
    shutil.rmtree(base)


def main() -> int:
    """Kill as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=0.25, help="seconds that a child may live")
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    for so_far in bench(told.kills, seed=told.seed, longest_s=told.longest):
        if so_far["kills"] % TELL_EVERY == 0 or so_far["kills"] == told.kills:
            print(json.dumps(so_far), flush=True)  # noqa: T201 - a program
    return 0


if __name__ == "__main__":
    sys.exit(main())
