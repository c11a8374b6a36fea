"""Every path made from words in a file is made and checked here."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from gemnb.errors import CheckpointError, UnsafePathError

LONGEST_NAME = 255
"""Bytes in a file name, on every file system in use."""
RESERVED = frozenset(
    {"chats", "logs", "tool-outputs", "memory", "plans", "tracker", "tasks", "images", "shell_history"}
)
"""Folders of a project's own, which no session id may name."""

_SAFE_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
_SHORT_ID = re.compile(r"-([A-Za-z0-9]{8})\.jsonl?\Z")
_SLUG = re.compile(r"[a-z0-9-]+")
_UNESCAPED = "!'()*~"


def home_folder(environ: Mapping[str, str]) -> Path:
    """The folder that holds `.gemini`: `$GEMINI_CLI_HOME` where set and not empty, else the person's home."""
    return Path(environ.get("GEMINI_CLI_HOME") or environ.get("HOME") or Path.home())


def own_folder(home: Path, environ: Mapping[str, str]) -> Path:
    """Where gemnb keeps trash and archive: among the person's data, or beside a store that lies elsewhere."""
    if home != Path(environ.get("HOME") or Path.home()):
        return home / ".gemnb"
    from platformdirs import user_data_path

    return user_data_path("gemnb", appauthor=False)


def index_file() -> Path:
    """Where what listings read is remembered: in the person's cache folder, never in a store."""
    from platformdirs import user_cache_path

    return user_cache_path("gemnb", appauthor=False) / "index.sqlite"


def child(folder: Path, name: str) -> Path:
    """The path of `name` directly in `folder`.

    Raises:
        UnsafePathError: `name` would lead elsewhere, or can be no file's name.
    """
    encoded = name.encode("utf-8", "surrogateescape" if name.isprintable() else "backslashreplace")
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name or len(encoded) > LONGEST_NAME:
        raise UnsafePathError(
            f"{name[:80]!r} can be no file's name in {folder}: nothing was touched. Look at what names it in the store."
        )
    return folder / name


def is_safe_id(session_id: str) -> bool:
    """Whether `session_id` may become part of a path."""
    return bool(_SAFE_ID.fullmatch(session_id)) and session_id.lower() not in RESERVED


def is_slug(text: object) -> bool:
    """Whether `text` is a slug as the registry may hold it."""
    return isinstance(text, str) and bool(_SLUG.fullmatch(text)) and len(text) <= LONGEST_NAME


def project_hash(root: str) -> str:
    """The SHA-256 of a project's root, as sessions and the older folders name it."""
    return hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()


def session_file_name(started_at: datetime, session_id: str) -> str:
    """Name of a new session's file: the UTC minute of its start and the first 8 characters of its id."""
    return f"session-{started_at.astimezone(UTC):%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl"


def is_session_name(name: str) -> bool:
    """Whether a file of this name, directly in `chats/`, is a session."""
    return name.startswith("session-") and name.endswith((".json", ".jsonl"))


def short_id_of(name: str) -> str | None:
    """The 8 characters by which the client takes session files for one; None where the name does not end so."""
    match = _SHORT_ID.search(name)
    return match[1] if match else None


def kind_of(path: Path) -> str | None:
    """`file`, `folder`, or `other` (a link, a pipe, a device); None where nothing is."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return None
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def is_gone(path: Path) -> bool:
    """Whether nothing is at `path`; what only cannot be looked at is not gone."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def private_folder(folder: Path) -> None:
    """Make `folder` and the parents that it lacks, for the person alone; `mkdir` leaves parents to the umask.

    Raises:
        OSError: it cannot be made, or something else stands there.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def store_folder(folder: Path, *, below: Path) -> None:
    """Make `folder`, which lies below `below`, for the person alone; no link on the way is followed.

    What is written behind a link would be found by no listing, and may be anywhere.

    Raises:
        OSError: it cannot be made, or a link or something else stands on the way.
    """
    for part in [p for p in reversed(folder.parents) if below in p.parents] + [folder]:
        private_folder(part)
        if kind_of(part) != "folder":
            raise NotADirectoryError(errno.ENOTDIR, f"{part} is a link, and no folder of the store", str(part))


def artifacts(folder: Path, session_id: str, *, spared: Collection[str] = ()) -> list[Path]:
    """What belongs to a session beside its file: log, tool outputs, plans, tasks, its sub-agents and theirs.

    Only what is there, and nothing that is a link; nothing at all for an id that may not name a file. What belongs to
    one of the `spared` ids stays, wherever a file of that name lies.
    """
    return list(_artifacts(folder, session_id, spared, depth=0)) if is_safe_id(session_id) else []


def _artifacts(folder: Path, session_id: str, spared: Collection[str], *, depth: int) -> Iterator[Path]:
    own = [
        (folder / "logs", f"session-{session_id}.jsonl", "file"),
        (folder / "tool-outputs", f"session-{session_id}", "folder"),
        (folder, session_id, "folder"),
    ]
    for parent, name, kind in own:
        if kind_of(parent) == "folder" and kind_of(parent / name) == kind:
            yield parent / name
    agents = folder / "chats" / session_id
    if kind_of(folder / "chats") != "folder" or kind_of(agents) != "folder":
        return
    yield agents
    if depth < 4:  # sub-agents of sub-agents lie side by side; a deeper nest is nobody's
        for name in _names(agents):
            id, ending = Path(name).stem, Path(name).suffix
            if ending in (".jsonl", ".json") and is_safe_id(id) and id != session_id and id not in spared:
                yield from _artifacts(folder, id, spared, depth=depth + 1)


def _names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return []


def encode_tag(tag: str) -> str:
    """File name of the checkpoint `tag`, encoded as JavaScript's `encodeURIComponent` does.

    Raises:
        CheckpointError: `tag` is empty, holds half a character, or is too long for a file name.
    """
    if not tag.strip():
        raise CheckpointError("A checkpoint needs a tag: `%resume save TAG`.")
    try:
        name = f"checkpoint-{quote(tag, safe=_UNESCAPED)}.json"
    except UnicodeEncodeError:
        raise CheckpointError(f"The tag {tag!r} holds half a character; choose another.") from None
    if len(name) > LONGEST_NAME:
        raise CheckpointError(f"The tag {tag[:40]!r}… is too long for a file name; choose a shorter one.")
    return name


def decode_tag(name: str) -> str:
    """The tag that the encoded `name` (without prefix and ending) is; a badly encoded one is read byte by byte."""
    try:
        if not re.search(r"%(?![0-9A-Fa-f]{2})", name):
            return unquote(name, errors="strict")
    except UnicodeDecodeError:
        pass
    return re.sub(r"%([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), name)
