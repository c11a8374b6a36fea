"""A kernel that talks on in one session until its input ends: `python tests/attack/talker.py ROOT HOME SESSION NAME`.

Prints, as JSON, the prompts that it sent and the warnings that it gave.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gemnb
from gemnb.testing import ScriptedLlm

PACE_S = 0.02


class Talker:
    """The process of such a kernel."""

    def __init__(self, root: Path, home: Path, session: str, name: str) -> None:
        command = [sys.executable, __file__, root, home, session, name]
        environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)

    def wait(self) -> None:
        """Wait for it to say its next prompt."""
        assert self._process.stdout and self._process.stdout.readline() == "said\n"

    def end(self) -> dict[str, Any]:
        """Let it end, and give what it tells."""
        told, _ = self._process.communicate()
        assert self._process.returncode == 0
        found: dict[str, Any] = json.loads(told.splitlines()[-1])
        return found


def main(root: str, home: str, session: str, name: str) -> None:
    """Talk until there is nothing more to read, then look at the file a last time."""
    ws = gemnb.open_workspace(root, home=Path(home), llm=ScriptedLlm(default=f"Heard by {name}."))
    said = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        chat = ws.resume(session)
        while not select.select([sys.stdin], [], [], PACE_S)[0]:
            said.append(f"{name} {len(said)}")
            chat.send(said[-1])
            print("said", flush=True)  # noqa: T201 - a program
        sys.stdin.read()
        chat.sync()
    print(json.dumps({"said": said, "warned": sorted({str(w.message) for w in warned})}))  # noqa: T201 - a program


if __name__ == "__main__":
    main(*sys.argv[1:])
