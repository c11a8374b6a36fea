"""Named checkpoints of a project, as the client keeps them (FORMAT.md 1 and 8)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gemnb.errors import CheckpointError, UnsafePathError
from gemnb.model.records import JsonObject
from gemnb.store.files import write_whole
from gemnb.store.journal import open_regular, parse_json
from gemnb.store.paths import child, decode_tag, encode_tag, kind_of, private_folder

PREFIX, ENDING = "checkpoint-", ".json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A talk that was saved under a name."""

    tag: str
    saved_at: datetime
    """Aware UTC."""
    path: Path


class Checkpoints:
    """The checkpoints in a project's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[Checkpoint]:
        """All of them, by tag; one row for one tag, the encoded name before the older raw one."""
        found: dict[str, Checkpoint] = {}
        for path in sorted(self._files(), key=lambda p: "%" not in p.name):
            tag = decode_tag(path.name[len(PREFIX) : -len(ENDING)])
            at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            found.setdefault(tag, Checkpoint(tag, at, path))
        yield from sorted(found.values(), key=lambda c: c.tag)

    def save(
        self, tag: str, contents: Sequence[JsonObject], *, overwrite: bool = False, auth_type: str | None = None
    ) -> Checkpoint:
        """Save `contents` under `tag`; `auth_type` is how the client was signed in, which it looks at on loading.

        Raises:
            CheckpointError: the tag cannot be, or is there already and `overwrite` was not said, or the disk refused.
        """
        name = encode_tag(tag)
        if not overwrite and (there := self._find(tag)):
            raise CheckpointError(
                f"There is a checkpoint {tag!r} already ({there[0]}): "
                "take another tag, or `overwrite=True` (`--overwrite` after `%resume save`)."
            )
        path = child(self.folder, name)
        if kind_of(path) not in (None, "file"):
            raise CheckpointError(f"{path} is a link or a folder; nothing was written. Take another tag.")
        told: JsonObject = {"history": [*contents]} | ({"authType": auth_type} if auth_type else {})
        try:
            private_folder(self.folder)
            write_whole(path, json.dumps(told, indent=2).encode("ascii"))
        except OSError as error:
            raise CheckpointError(
                f"{path} could not be written: {error.strerror}; nothing was changed. Make it writable, then try again."
            ) from None
        return Checkpoint(tag, datetime.fromtimestamp(path.stat().st_mtime, UTC), path)

    def load(self, tag: str) -> Sequence[JsonObject]:
        """The Contents that were saved under `tag`, of either shape of the file.

        Raises:
            CheckpointError: there is none, it cannot be read, or it is of another shape.
        """
        path, told = self._told(tag)
        contents = told.get("history") if isinstance(told, dict) else told
        if not isinstance(contents, list) or not all(map(_is_content, contents)):
            raise CheckpointError(
                f"The checkpoint in {path} is of no known shape: a list of Contents is wanted, or an object with"
                " such a list as its `history`. Nothing was loaded. Look at the file, or give another tag."
            )
        return contents

    def read(self, tag: str) -> JsonObject:
        """What was saved under `tag`, as the client takes it: `history`, empty where none is told, and any `authType`.

        Raises:
            CheckpointError: there is none, or it cannot be read.
        """
        _, told = self._told(tag)
        contents = told.get("history") if isinstance(told, dict) else told
        history = [c for c in contents if isinstance(c, dict)] if isinstance(contents, list) else []
        auth = told.get("authType") if isinstance(told, dict) else None
        return {"history": history} | ({"authType": auth} if auth is not None else {})

    def _told(self, tag: str) -> tuple[Path, object]:
        """The file of `tag`, and the JSON in it."""
        paths = self._find(tag)
        if not paths:
            known = ", ".join(repr(c.tag) for c in self) or "none yet"
            raise CheckpointError(f"There is no checkpoint {tag!r} (there are: {known}); `%resume save TAG` makes one.")
        try:
            with open_regular(paths[0]) as file:
                return paths[0], parse_json(file.read().removeprefix(b"\xef\xbb\xbf"))
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"The checkpoint in {paths[0]} cannot be read: {error}. Look at the file, or give another tag."
            ) from None

    def delete(self, tag: str) -> bool:
        """Delete the checkpoint `tag`, under either name; whether there was one.

        Raises:
            CheckpointError: the disk refused.
        """
        paths = self._find(tag)
        for path in paths:
            try:
                path.unlink()
            except OSError as error:
                raise CheckpointError(
                    f"{path} could not be deleted: {error.strerror}; it stays. Make it writable, then try again."
                ) from None
        return bool(paths)

    def exists(self, tag: str) -> bool:
        """Whether there is a checkpoint `tag`."""
        return bool(self._find(tag))

    def _find(self, tag: str) -> Sequence[Path]:
        """Files of `tag`: the encoded name, then the older raw one where that is a plain file name."""
        names = [encode_tag(tag)]
        try:
            raw = child(self.folder, f"{PREFIX}{tag}{ENDING}")
        except (UnsafePathError, UnicodeEncodeError):
            raw = None
        paths = [self.folder / names[0]] + ([raw] if raw and raw.name != names[0] else [])
        return [path for path in paths if kind_of(path) == "file"]

    def _files(self) -> Iterator[Path]:
        if kind_of(self.folder) != "folder":
            return
        for path in sorted(self.folder.iterdir()):
            if path.name.startswith(PREFIX) and path.name.endswith(ENDING) and kind_of(path) == "file":
                yield path


def _is_content(value: object) -> bool:
    """Whether `value` is a Content: who spoke, and parts, if any."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    parts = value.get("parts")
    return parts is None or (isinstance(parts, list) and all(isinstance(part, dict) for part in parts))
