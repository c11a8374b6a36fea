"""SECURITY.md promises nothing without a test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = re.findall(r"^\| (?!Promise)(\S.*?) \| (.*) \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)


def test_each_promise_names_tests_that_are_there() -> None:
    assert len(ROWS) > 10
    for promise, shown in ROWS:
        named = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", shown)
        assert named, f"no test shows: {promise}"
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path} has no {name}"
