"""A talk on a file system that is really full: `python tests/attack/full_disk.py FOLDER`, FOLDER a small disk's own."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from support import tree
from test_disk import holds, store


def fill(filler: Path, space: int) -> None:
    """Let `filler` take all but about `space` bytes of its disk."""
    with filler.open("ab", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            file.truncate(max(0, file.tell() - space))


def main(disk: Path) -> None:
    """Fill the disk, talk on, make room, and look; for several sizes of what is left."""
    ws = store(disk)
    chat = ws.resume("1")
    before = tree(ws.home)
    for space in (0, 1, 100, 4096, 9000):
        fill(disk / "filler", space)
        for _ in range(6):
            assert chat.send("A prompt that takes room. " * 400).outcome == "completed"
        assert not chat.recording.active and chat.recording.unsaved, chat.recording
        (disk / "filler").unlink()
        holds(ws, chat, before, torn=99)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
