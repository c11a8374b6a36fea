"""What is killed in the middle of its work loses nothing that it was told is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import crash

KILLS = 12


def test_a_writer_that_is_killed_loses_nothing_that_had_returned(tmp_path: Path) -> None:
    command = [sys.executable, crash.__file__, "--kills", str(KILLS), "--seed", "7"]
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(command, capture_output=True, text=True, env=environ)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == KILLS and told["torn"] <= KILLS and told["returned"]["say"]
