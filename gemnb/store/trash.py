"""Where deleted sessions wait: moved out of the store with a manifest, brought back as they were, or gone for good."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from gemnb.errors import TrashError
from gemnb.store.moving import Disposed, copy, dispose, move, remove, same
from gemnb.store.paths import kind_of, private_folder

MANIFEST = "manifest.json"
TIMES = "times.json"
"""Apart from the manifest, which is written once: a crash cannot leave half of it."""
VERSION = 1


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


@dataclass(frozen=True, slots=True)
class Restored:
    """What an undo brought back."""

    entries: tuple[Trashed, ...] = ()

    def __str__(self) -> str:
        sessions = [entry for entry in self.entries if entry.session_id]
        titles = "".join(f"\n  {entry.title} [{entry.session_id}]" for entry in sessions)
        others = sum(len(entry.paths) for entry in self.entries if not entry.session_id)
        also = f" {others} tool outputs are, too." if others else ""
        count = len(sessions)
        told = "1 session is back, as it was" if count == 1 else f"{count} sessions are back, as they were"
        return f"{told}.{also}{titles}"


class Trash:
    """The trash of one store.

    Args:
        folder: where it stands, outside the store; made with the first deletion.
        store: the `.gemini` folder that things come from; nothing is brought back outside it.
        clock: aware time.
    """

    def __init__(self, folder: Path, *, store: Path, clock: Callable[[], datetime]) -> None:
        self.folder = folder
        self._store = store
        self._clock = clock
        self._numbers = count()

    def entries(self) -> list[Trashed]:
        """What is in the trash, oldest first; a folder without a manifest that can be read is no entry."""
        if kind_of(self.folder) != "folder":
            return []
        found = (self._read(path) for path in sorted(self.folder.iterdir()) if kind_of(path) == "folder")
        return sorted((entry for entry in found if entry), key=lambda entry: (entry.deleted_at, entry.folder.name))

    def put(self, paths: Sequence[Path], *, session_id: str, title: str, how: str, batch: str) -> Disposed:
        """Move `paths` of one session here, its files first; where one of these stays, the rest stays too.

        The manifest is on disk before the first move, so that whatever stops it, nothing is lost.
        """
        return self._take(paths, move, session_id=session_id, title=title, how=how, batch=batch)

    def keep(self, paths: Sequence[Path], *, session_id: str, title: str) -> Disposed:
        """Keep a copy of `paths` of one session here; an earlier copy of it goes when this one is whole."""
        earlier = [entry for entry in self.entries() if entry.session_id == session_id]
        for entry in earlier:
            if entry.paths == tuple(paths) and all(same(inside, path) for inside, path in entry.held):
                return Disposed(tuple(paths))
        done = self._take(paths, copy, session_id=session_id, title=title, how="rescue", batch=session_id)
        if not done.stayed:
            for entry in earlier:
                shutil.rmtree(entry.folder, ignore_errors=True)
        return done

    def _take(
        self,
        paths: Sequence[Path],
        act: Callable[[Path, Path], None],
        *,
        session_id: str,
        title: str,
        how: str,
        batch: str,
    ) -> Disposed:
        at = self._clock().astimezone(UTC)
        entry = self.folder / f"{at:%Y%m%dT%H%M%S}-{next(self._numbers):06}-{uuid.uuid4().hex[:12]}"
        before = {path.parent: _mtime_ns(path.parent) for path in paths}
        told: dict[str, Any] = {
            "version": VERSION,
            "sessionId": session_id,
            "title": title,
            "deletedAt": at.isoformat(),
            "how": how,
            "batch": batch,
            "paths": [os.fspath(path) for path in paths],
        }
        try:
            private_folder(self.folder)
            entry.mkdir(mode=0o700)
            _write(entry / MANIFEST, told, durable=True)
        except OSError as error:
            why = f"the trash {self.folder} cannot be written ({error.strerror or error}); `--purge` deletes without it"
            return Disposed((), tuple((path, why) for path in paths))
        targets = {path: entry / str(number) for number, path in enumerate(paths)}
        done = dispose(paths, lambda path: act(path, targets[path]))
        if done.gone:
            times = [[os.fspath(p), ns, _mtime_ns(p)] for p, ns in before.items() if ns is not None]
            with suppress(OSError):  # the manifest will do: only the folders' times are not known then
                _write(entry / TIMES, times, durable=False)
        else:
            shutil.rmtree(entry, ignore_errors=True)
        return done

    def undo(self, how: str | None = None) -> Restored:
        """Bring back what was deleted last, with everything that was deleted together with it.

        Args:
            how: only a deletion of this kind, `retention` or `delete`.

        Raises:
            TrashError: nothing is there, or something stands in the way; nothing was moved.
        """
        entries = [entry for entry in self.entries() if how in (None, entry.how)]
        if not entries:
            raise TrashError(f"There is no deletion to undo: look into the trash, {self.folder}, for what it holds.")
        together = [entry for entry in entries if entry.batch == entries[-1].batch]
        self.restore(together)
        return Restored(tuple(together))

    def restore(self, entries: Sequence[Trashed]) -> None:
        """Bring `entries` back to where they came from, byte for byte and with their times.

        Raises:
            TrashError: something stands in the way, or a way leads out of the store; nothing was moved.
        """
        for entry in entries:
            for inside, path in entry.held:
                self._check(inside, path)
        for entry in reversed(entries):
            as_left = [(folder, before) for folder, before, after in entry.times if _mtime_ns(folder) == after]
            try:
                for inside, path in entry.held:
                    _bring_back(inside, path)
            except OSError as error:
                raise TrashError(
                    f"{entry.title!r} could not be brought back whole ({error.strerror or error}); what is missing is"
                    f" still in {entry.folder}. Undo once more when that is mended."
                ) from error
            for folder, before in as_left:
                os.utime(folder, ns=(before, before))
            shutil.rmtree(entry.folder, ignore_errors=True)

    def purge(self, older_than: timedelta = timedelta(0)) -> int:
        """Delete for good what has been here longer than `older_than`; how many sessions that were."""
        last = self._clock() - older_than
        old = [entry for entry in self.entries() if entry.deleted_at <= last]
        for entry in old:
            shutil.rmtree(entry.folder, ignore_errors=True)
        return len(old)

    def _check(self, inside: Path, path: Path) -> None:
        store = self._store.resolve()
        parents = [parent for parent in path.parents if parent.is_relative_to(self._store)]
        if ".." in path.parts or not parents or not path.parent.resolve().is_relative_to(store):
            raise TrashError(
                f"{path} does not lie in {self._store}: nothing was brought back. Look at the manifest in {inside}."
            )
        if kind_of(path) is not None and not same(inside, path):
            raise TrashError(f"{path} is there again: nothing was brought back. Move it away, then undo once more.")

    def _read(self, folder: Path) -> Trashed | None:
        path = folder / MANIFEST
        if kind_of(path) != "file":
            return None
        try:
            told = json.loads(path.read_bytes())
            at = datetime.fromisoformat(told["deletedAt"])
            paths = tuple(Path(text) for text in told["paths"])
            named = (str(told[name]) for name in ("sessionId", "title", "how", "batch"))
            session_id, title, how, batch = named
            return Trashed(folder, session_id, title, at, how, batch, paths, _times(folder / TIMES))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def _bring_back(inside: Path, path: Path) -> None:
    if kind_of(path) is not None:  # the same bytes: the move was cut off after its copy
        remove(inside)
        return
    private_folder(path.parent)
    move(inside, path)


def _mtime_ns(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return None


def _times(path: Path) -> tuple[tuple[Path, int, int], ...]:
    """The folders' times that a deletion noted; none where it did not come to that."""
    try:
        told = json.loads(path.read_bytes()) if kind_of(path) == "file" else []
        return tuple((Path(text), int(before), int(after)) for text, before, after in told if after)
    except (OSError, ValueError, TypeError):
        return ()


def _write(path: Path, told: object, *, durable: bool) -> None:
    part = path.with_name(f"{path.name}.part")
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        json.dump(told, file, ensure_ascii=False, indent=1)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
