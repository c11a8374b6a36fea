"""The injected start of a talk: date, system, workspace and its folder structure, as the client tells them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

MOST_ITEMS = 200
IGNORED = frozenset({"node_modules", ".git", "dist", "__pycache__"})


def session_context(root: Path, *, temp: Path, now: datetime) -> str:
    """The text of the first message of a talk in the project `root`.

    Args:
        root: the project's folder.
        temp: the project's folder in the store.
        now: aware; the date is told in its own zone.
    """
    date = f"{now:%A, %B} {now.day}, {now.year}"
    return "\n".join(
        [
            "<session_context>",
            "This talk goes on in a notebook, with gemnb. Here is what surrounds it.",
            f"Today's date is {date} (formatted according to the user's locale).",
            f"My operating system is: {sys.platform}",
            f"The project's temporary directory is: {temp}",
            "- **Workspace Directories:**",
            f"  - {root}",
            "- **Directory Structure:**",
            "",
            f"Showing up to {MOST_ITEMS} items (files + folders).",
            "",
            f"{root}{os.sep}",
            *_tree(root),
            "",
            "</session_context>",
        ]
    )


def _tree(root: Path) -> Iterator[str]:
    """The folders and files below `root`, nearest first, as a tree of at most `MOST_ITEMS` lines."""
    left = MOST_ITEMS

    def walk(folder: Path, indent: str) -> Iterator[str]:
        nonlocal left
        try:
            entries = sorted(os.scandir(folder), key=lambda e: (e.is_dir(follow_symlinks=False), e.name))
        except OSError:
            return
        for number, entry in enumerate(entries):
            if left <= 0:
                return
            left -= 1
            last = number == len(entries) - 1
            is_folder = entry.is_dir(follow_symlinks=False)
            name = entry.name.encode("utf-8", "replace").decode("utf-8").replace("\n", " ")
            skipped = is_folder and entry.name in IGNORED
            yield f"{indent}{'└' if last else '├'}───{name}{os.sep if is_folder else ''}{'...' if skipped else ''}"
            if is_folder and not skipped:
                yield from walk(Path(entry.path), indent + ("    " if last else "│   "))

    yield from walk(root, "")
