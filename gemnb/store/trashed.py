"""One entry of the trash: a folder that holds what was deleted, and the manifest that says what it was."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemnb.model.shown import clean_line
from gemnb.store.journal import open_regular
from gemnb.store.moving import drop, reason, same
from gemnb.store.paths import kind_of

MANIFEST = "manifest.json"
TIMES = "times.json"
"""Apart from the manifest, which is written once: a crash cannot leave half of it."""
VERSION = 1
LARGEST = 16 * 1024 * 1024
"""Bytes of a manifest; one of ours has some hundred."""
_NUMBER_DIGITS = 9


class ManifestError(ValueError):
    """A manifest that says nothing of use, and why."""


@dataclass(frozen=True, slots=True)
class Trashed:
    """One session in the trash, with all that belonged to it."""

    folder: Path
    """Its folder in the trash; what was moved lies in it as `0`, `1`, …"""
    session_id: str
    """Empty for what belongs to no session that went."""
    title: str
    deleted_at: datetime
    how: str
    """`delete`, or `retention`."""
    batch: str
    """What was deleted together is brought back together."""
    paths: tuple[Path, ...]
    """Where each came from."""
    times: tuple[tuple[Path, int, int], ...] = ()
    """Each folder that lost something: its modification time in ns before and after."""

    @property
    def held(self) -> list[tuple[Path, Path]]:
        """What really is in the trash, and where it came from: a move that was cut off left the rest in the store."""
        pairs = [(self.folder / str(number), path) for number, path in enumerate(self.paths)]
        return [(inside, path) for inside, path in pairs if kind_of(inside) is not None]

    @property
    def place(self) -> tuple[int, datetime, str]:
        """Where it stands among the others: in the order of deletion, whatever the clock said."""
        return number_of(self.folder), self.deleted_at, self.folder.name


def name_of(number: int, at: datetime, mark: str) -> str:
    """Name of the folder of entry `number`; `mark` is of this one alone."""
    return f"{number:0{_NUMBER_DIGITS}}-{at:%Y%m%dT%H%M%S}-{mark}"


def number_of(folder: Path) -> int:
    """The number of an entry; 0 for those of older versions, which stand in the order of their times."""
    number = folder.name.partition("-")[0]
    return int(number) if len(number) == _NUMBER_DIGITS and number.isascii() and number.isdecimal() else 0


def begin(entry: Trashed) -> None:
    """Make the folder of `entry` with its manifest, on disk; or nothing.

    Raises:
        OSError: it cannot be made.
    """
    told: dict[str, Any] = {
        "version": VERSION,
        "sessionId": entry.session_id,
        "title": entry.title,
        "deletedAt": entry.deleted_at.isoformat(),
        "how": entry.how,
        "batch": entry.batch,
        "paths": [os.fspath(path) for path in entry.paths],
    }
    entry.folder.mkdir(mode=0o700)
    try:
        _write(entry.folder / MANIFEST, told, durable=True)
    except OSError:
        clear(entry.folder)
        raise


def note_times(entry: Trashed, times: Sequence[tuple[Path, int, int | None]]) -> None:
    """Keep the folders' times before and after the deletion; without them only the times do not come back."""
    with suppress(OSError):
        told = [[os.fspath(path), before, after] for path, before, after in times]
        _write(entry.folder / TIMES, told, durable=False)


def read(folder: Path, *, store: Path) -> Trashed:
    """The entry of `folder`, all of whose paths lie in `store`.

    Raises:
        ManifestError: there is none that can be understood.
    """
    told = _json(folder / MANIFEST)
    if not isinstance(told, dict) or told.get("version") != VERSION:
        raise ManifestError("it is of no version that is known here")
    listed = told.get("paths")
    if not isinstance(listed, list) or not listed or not all(isinstance(path, str) for path in listed):
        raise ManifestError("it names no paths")
    paths = tuple(map(Path, listed))
    for path in paths:
        if ".." in path.parts or "\0" in str(path) or not path.is_relative_to(store) or path == store:
            raise ManifestError(f"{clean_line(str(path))} does not lie in {store}")
    if len(set(paths)) < len(paths):
        raise ManifestError("it names a path twice")
    try:
        at = datetime.fromisoformat(told["deletedAt"]).astimezone(UTC)
        session_id, title, how, batch = (clean_line(str(told[name])) for name in ("sessionId", "title", "how", "batch"))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ManifestError(f"it lacks what an entry has ({error})") from error
    return Trashed(folder, session_id, title, at, how, batch, paths, _times(folder / TIMES))


def is_copy(entry: Trashed) -> bool:
    """Whether `entry` holds all of its paths as they are now."""
    try:
        return len(entry.held) == len(entry.paths) and all(same(inside, path) for inside, path in entry.held)
    except OSError:
        return False


def is_leftover(folder: Path) -> bool:
    """Whether nothing lies in the folder of an entry that was deleted.

    A move or an undo that was cut off leaves such a folder, and copies that are not whole: their originals are.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return False
    own = {MANIFEST, TIMES, f"{MANIFEST}.part", f"{TIMES}.part"}
    return all(name in own or (name.startswith(".") and name.endswith(".gemnb-part")) for name in names)


def clear(folder: Path) -> bool:
    """Remove the folder of an entry where it is a leftover; whether it was."""
    if is_leftover(folder):
        drop(folder)
        return True
    return False


def _json(path: Path) -> object:
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise ManifestError(f"it cannot be read ({reason(error)})") from error
    if len(data) > LARGEST:
        raise ManifestError("it is far too large")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ManifestError("it is no JSON") from error


def _times(path: Path) -> tuple[tuple[Path, int, int], ...]:
    """The folders' times that a deletion noted; none where it did not come to that."""
    try:
        told = _json(path)
        assert isinstance(told, list)
        return tuple((Path(text), int(before), int(after)) for text, before, after in told if after)
    except (ValueError, TypeError, AssertionError, OverflowError):
        return ()


def _write(path: Path, told: object, *, durable: bool) -> None:
    part = path.with_name(f"{path.name}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(json.dumps(told, indent=1).encode())  # escaped: a name may hold any bytes, a title half a character
        if durable:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
