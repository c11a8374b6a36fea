"""Tool outputs on disk: the full texts that a compression trims, and what a folder of them holds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gemnb.model.records import ToolCall
from gemnb.store.files import write_whole
from gemnb.store.paths import is_safe_id, kind_of, store_folder

FOLDER = "tool-outputs"
OF_SESSION = "session-"


def save(folder: Callable[[], Path], session_id: str, call: ToolCall, text: str, write: bool = True) -> str:
    """Keep `text` below the project's folder, unless told only to name it, and give the path it is kept under.

    The name is made of the text's own hash: the same output is kept once, and no word of a file becomes a path.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode("utf-8", "replace")
    owner = session_id if is_safe_id(session_id) else "other"
    into = folder() / FOLDER / f"{OF_SESSION}{owner}"
    tool = "".join(char for char in call.name if (char.isascii() and char.isalnum()) or char == "_")[:40] or "tool"
    path = into / f"{tool}_{hashlib.sha256(data).hexdigest()[:16]}.txt"
    if write and kind_of(path) is None:
        store_folder(into, below=folder().parents[1])
        write_whole(path, data)
    return str(path)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A file of outputs, or the folder of all that one session has."""

    path: Path
    session_id: str | None
    """Whose folder it is; None for a single file, which older versions kept for nobody in particular."""
    changed_at: datetime
    """When the newest of it was changed."""
    size_bytes: int


def tool_outputs(folder: Path) -> Iterator[ToolOutput]:
    """The tool outputs of a project's folder, by name; links are none, and whose a folder is must show in its name."""
    outputs = folder / FOLDER
    if kind_of(outputs) != "folder":
        return
    try:
        names = sorted(os.listdir(outputs))  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return
    chats = folder / "chats"
    told = kind_of(chats) is None or os.access(chats, os.R_OK | os.X_OK)
    for name in names:
        output = look_at(outputs / name)
        if output is not None and (told or output.session_id is None):  # else nobody knows which sessions there are
            yield output


def look_at(path: Path) -> ToolOutput | None:
    """The tool output at `path` as it is now; None where there is none, or not all of it can be looked at."""
    kind = kind_of(path)
    session_id = path.name.removeprefix(OF_SESSION) if kind == "folder" else None
    if kind not in ("file", "folder"):
        return None
    if session_id is not None and not (path.name.startswith(OF_SESSION) and is_safe_id(session_id)):
        return None
    found = [path]
    try:
        if kind == "folder":
            for place, folders, files in os.walk(path, onerror=_raise):
                found += [Path(place, name) for name in (*folders, *files)]
        looked = [each.lstat() for each in found]
    except OSError:
        return None
    sizes = (status.st_size for each, status in zip(found, looked, strict=True) if kind_of(each) != "folder")
    newest = max(status.st_mtime for status in looked)
    return ToolOutput(path, session_id, datetime.fromtimestamp(newest, UTC), sum(sizes))


def _raise(error: OSError) -> None:
    raise error
