"""Full texts of tool outputs that a compression trims, kept with the session's artifacts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from gemnb.model.records import ToolCall
from gemnb.store.files import write_whole
from gemnb.store.paths import is_safe_id, kind_of, private_folder


def save(folder: Callable[[], Path], session_id: str, call: ToolCall, text: str, write: bool = True) -> str:
    """Keep `text` below the project's folder, unless told only to name it, and give the path it is kept under.

    The name is made of the text's own hash: the same output is kept once, and no word of a file becomes a path.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode("utf-8", "replace")
    owner = session_id if is_safe_id(session_id) else "other"
    into = folder() / "tool-outputs" / f"session-{owner}"
    tool = "".join(char for char in call.name if (char.isascii() and char.isalnum()) or char == "_")[:40] or "tool"
    path = into / f"{tool}_{hashlib.sha256(data).hexdigest()[:16]}.txt"
    if write and kind_of(path) is None:
        private_folder(into)
        write_whole(path, data)
    return str(path)
