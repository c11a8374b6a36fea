"""Files that are far larger or deeper than any talk: read in bounded memory, and nothing around them is lost."""

from __future__ import annotations

from pathlib import Path

import huge
import pytest

BASE_MB = 150
"""What Python and gemnb take for an ordinary store, with room."""


@pytest.mark.parametrize(
    ("kind", "size", "found", "most_mb"),
    [
        ("line", 40, 5, 300),
        ("open line", 40, 4, 300),
        ("lines", 300_000, 4, 0),
        ("blank", 1_000_000, 4, 0),
        ("messages", 20_000, 20_004, 100),
        ("deep", 100_000, 4, 0),
        ("deep objects", 100_000, 4, 0),
        ("keys", 100_000, 5, 50),
    ],
)
def test_a_huge_file_is_listed_and_gone_on_with(tmp_path: Path, kind: str, size: int, found: int, most_mb: int) -> None:
    listed, sent = huge.measure(tmp_path, kind, size, errands=("list", "send"))

    assert listed["came"] == [found] and sent["came"] == "completed"
    assert max(listed["peak_mb"], sent["peak_mb"]) < BASE_MB + most_mb
