"""The injected start of a talk: date, system, workspace and its folder structure, as the client tells them."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
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
    tree = _look(root)
    limit = f"Showing up to {MOST_ITEMS} items (files + folders)."
    if any(folder.cut for folder in tree.below()):
        limit += (
            " Folders or files indicated with ... contain more items not shown, were ignored,"
            f" or the display limit ({MOST_ITEMS} items) was reached."
        )
    shown = _plain(str(root))
    return "\n".join(
        [
            "<session_context>",
            "This talk goes on in a notebook, with gemnb. Here is what surrounds it.",
            f"Today's date is {date} (formatted according to the user's locale).",
            f"My operating system is: {sys.platform}",
            f"The project's temporary directory is: {_plain(str(temp))}",
            "- **Workspace Directories:**",
            f"  - {shown}",
            "- **Directory Structure:**",
            "",
            limit,
            "",
            f"{shown}{os.sep}",
            *_lines(tree, ""),
            "",
            "</session_context>",
        ]
    )


@dataclass(slots=True)
class _Folder:
    """What of a folder is shown."""

    path: Path
    files: list[str] = field(default_factory=list)
    folders: list[_Folder] = field(default_factory=list)
    ignored: bool = False
    more_files: bool = False
    more_folders: bool = False

    @property
    def cut(self) -> bool:
        """Whether something in it is not shown."""
        return self.ignored or self.more_files or self.more_folders

    def below(self) -> Iterator[_Folder]:
        """It and every folder below it that is shown."""
        yield self
        for folder in self.folders:
            yield from folder.below()


def _look(root: Path) -> _Folder:
    """The folders and files below `root`, nearest first, at most `MOST_ITEMS` of them; links are not followed."""
    top = _Folder(root)
    waiting = deque([top])
    left = MOST_ITEMS
    while waiting and left:
        folder = waiting.popleft()
        files, folders = _entries(folder.path)
        folder.files = files[:left]
        folder.more_files = len(files) > left
        left -= len(folder.files)
        folder.folders = [_Folder(folder.path / name, ignored=name in IGNORED) for name in folders[:left]]
        folder.more_folders = len(folders) > left
        left -= len(folder.folders)
        waiting.extend(inner for inner in folder.folders if not inner.ignored)
    return top


def _entries(path: Path) -> tuple[list[str], list[str]]:
    """The names of the files and of the folders in a folder; none where it cannot be read."""
    try:
        with os.scandir(path) as entries:
            told = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError:
        return [], []
    return [name for name, is_folder in told if not is_folder], [name for name, is_folder in told if is_folder]


def _lines(folder: _Folder, indent: str) -> Iterator[str]:
    """The lines of a folder's tree."""
    below: list[str | _Folder] = [*folder.folders, *(["..."] if folder.more_folders else [])]
    files = [*map(_plain, folder.files), *(["..."] if folder.more_files else [])]
    for number, name in enumerate(files, 1):
        # The client draws the last file as the last line, though the mark of what is missing follows it.
        yield f"{indent}{'└' if not below and number >= len(folder.files) else '├'}───{name}"
    for number, item in enumerate(below, 1):
        branch, deeper = ("└───", "    ") if number == len(below) else ("├───", "│   ")
        if isinstance(item, str):
            yield f"{indent}{branch}{item}"
        else:
            yield f"{indent}{branch}{_plain(item.path.name)}{os.sep}{'...' if item.ignored else ''}"
            yield from _lines(item, indent + deeper)


def _plain(name: str) -> str:
    """`name` on one line, and unable to end the context."""
    text = " ".join(name.encode("utf-8", "replace").decode("utf-8").splitlines())
    return text.replace("</session_context>", "<\u2215session_context>")
