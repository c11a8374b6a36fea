"""What is killed in the middle of its work loses nothing that it was told is done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import crash
import kill_cleaning
import pytest
from support import missing

from gemnb.store.projects import Projects

KILLS = 12


def test_a_writer_that_is_killed_loses_nothing_that_had_returned(tmp_path: Path) -> None:
    command = [sys.executable, crash.__file__, "--kills", str(KILLS), "--seed", "7"]
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(command, capture_output=True, text=True, env=environ)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["kills"] == KILLS and told["torn"] <= KILLS and told["returned"]["say"]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["one-disk", "two-disks"])
def test_a_cleaning_that_is_killed_loses_no_file(tmp_path: Path, elsewhere: bool) -> None:
    command = [sys.executable, kill_cleaning.__file__, "--kills", str(KILLS), "--seed", "7"]
    here = Path(__file__).parent
    environ = os.environ | {"TMPDIR": str(tmp_path)}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, (here.parents[1], here.parent)))
    with ExitStack() as held:
        if elsewhere:
            if not os.access("/dev/shm", os.W_OK):
                missing("a second file system")
            command += ["--other-disk", held.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm"))]

        done = subprocess.run(command, capture_output=True, text=True, env=environ)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["apply"] + told["undo"] == KILLS and told["together"]


def claims(home: Path, root: str, *, killed_at: int) -> bool:
    """Claim `root` in a process of its own, killed at its call number `killed_at` of a C function; whether it ended."""
    calls = count(1)

    def kill(_frame: object, event: str, _what: object) -> None:
        if event == "c_call" and next(calls) == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        sys.setprofile(kill)
        Projects(home).claim(root)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def test_a_claim_that_is_killed_at_any_call_costs_a_project_nothing(tmp_path: Path) -> None:
    root = "/work/app"
    for at in count(1):
        home = tmp_path / str(at)
        ended = claims(home, root, killed_at=at)
        for lock in home.rglob("*.lock"):
            os.utime(lock, (1, 1))  # what the killed one held is stale ten seconds later

        assert Projects(home).claim(root) == "app"
        if ended:
            break
    assert at > 100
