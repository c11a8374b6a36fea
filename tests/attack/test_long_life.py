"""A session that goes on for long costs no handles, and writes its lines and nothing else."""

from __future__ import annotations

import pytest
from long_life import live


@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_two_hundred_turns_keep_no_file_open_and_write_only_their_lines() -> None:
    told = live(200)

    assert told["handles"][0] == told["handles"][1]
    assert told["bytes_written"] == told["bytes_more_in_file"]
    assert told["reads_back"]
