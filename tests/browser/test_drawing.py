"""The browser's drawing, under node."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from support import missing

import gemnb

SCRIPT = Path(gemnb.__file__).parent / "notebook" / "browser.js"


def test_the_drawing_under_node(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        missing("needs Node.js")
    module = tmp_path / "browser.mjs"
    module.write_bytes(SCRIPT.read_bytes())
    ran = subprocess.run(
        [node, "--test", str(Path(__file__).parent / "drawing.test.mjs")],
        env={**os.environ, "BROWSER_JS": module.as_uri()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout
