"""Where deleted sessions wait: moved out of the store with a manifest, brought back as they were, or gone for good."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gemnb.errors import TrashError
from gemnb.store import trashed
from gemnb.store.files import locked
from gemnb.store.moving import Disposed, bring_back, copy, dispose, drop, holds, move, part_of, reason
from gemnb.store.paths import kind_of, private_folder
from gemnb.store.trashed import ManifestError, Trashed

GONE = ".gone"
"""What a folder's name ends in that is being deleted for good."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What an undo brought back."""

    entries: tuple[Trashed, ...] = ()
    stayed: tuple[tuple[Trashed, str], ...] = ()
    """What is still in the trash, and why."""

    def __str__(self) -> str:
        sessions = [entry for entry in self.entries if entry.session_id]
        titles = "".join(f"\n  {entry.title} [{entry.session_id}]" for entry in sessions)
        others = sum(len(entry.paths) for entry in self.entries if not entry.session_id)
        also = f" {others} tool outputs are, too." if others else ""
        if not self.entries and not self.stayed:
            return "Nothing was brought back: the store has all of it."
        count = len(sessions)
        told = "1 session is back, as it was" if count == 1 else f"{count} sessions are back, as they were"
        left = "".join(f"\n  stayed in the trash: {_named(entry)}: {why}" for entry, why in self.stayed)
        left += "\nMend that, then undo once more." if left else ""
        return f"{told}.{also}{titles}{left}"


class Trash:
    """The trash of one store; one program at a time is at it.

    Args:
        folder: where it stands, outside the store; made with the first deletion.
        store: the folder that things come from; nothing is brought back outside it.
        clock: aware time.
    """

    def __init__(self, folder: Path, *, store: Path, clock: Callable[[], datetime]) -> None:
        self.folder = folder
        self._store = store
        self._clock = clock
        self._last: tuple[str, int] = ("", 0)

    def entries(self) -> list[Trashed]:
        """What is in the trash, in the order of deletion; see `damaged` for the rest."""
        return self._look()[0]

    def damaged(self) -> list[tuple[Path, str]]:
        """The folders in the trash whose manifest cannot be understood, and why; they are never touched."""
        return self._look()[1]

    def put(self, paths: Sequence[Path], *, session_id: str, title: str, how: str, batch: str) -> Disposed:
        """Move `paths` of one session here, its files first; where one of these stays, the rest stays too.

        The manifest is on disk before the first move, so that whatever stops it, nothing is lost.
        """
        return self._take(paths, move, session_id=session_id, title=title, how=how, batch=batch)

    def keep(self, paths: Sequence[Path], *, session_id: str, title: str, earlier: Sequence[Trashed]) -> Disposed:
        """Keep a copy of `paths` of one session here; its `earlier` ones go when this one is whole."""
        if any(entry.paths == tuple(paths) and trashed.is_copy(entry) for entry in earlier):
            return Disposed(tuple(paths))
        done = self._take(paths, copy, session_id=session_id, title=title, how="rescue", batch=session_id)
        if done.gone and not done.stayed:
            for entry in earlier:
                self._discard(entry)
        return done

    def undo(self, how: str | None = None) -> Restored:
        """Bring back what was deleted last, with everything that was deleted together with it.

        Args:
            how: only a deletion of this kind, `retention` or `delete`.

        Raises:
            TrashError: nothing is there, or something stands in the way of all of it; nothing was overwritten.
        """
        with self._undoing():
            found, damaged = self._look()
            entries = [entry for entry in found if how in (None, entry.how)]
            if not entries:
                odd = "".join(f" {folder / trashed.MANIFEST} is of no use: {why}." for folder, why in damaged)
                raise TrashError(
                    f"There is no deletion to undo: look into the trash, {self.folder}, for what it holds.{odd}"
                )
            return self._restore([entry for entry in entries if entry.batch == entries[-1].batch])

    def restore(self, entries: Sequence[Trashed]) -> Restored:
        """Bring `entries` back to where they came from, byte for byte and with their times.

        One that something stands in the way of stays whole, and stops no other.

        Raises:
            TrashError: that is so for all of them; nothing was overwritten.
        """
        with self._undoing():
            return self._restore(entries)

    def purge(self, older_than: timedelta = timedelta(0)) -> int:
        """Delete for good what has been here longer than `older_than`, and leftovers; how many sessions that were."""
        last = self._clock() - older_than
        old = []
        with suppress(OSError), self._alone():
            for folder in self._folders():
                trashed.clear(folder)
            for name in _names(self.folder):
                if name.endswith(GONE):
                    drop(self.folder / name)
            old = [entry for entry in self.entries() if entry.deleted_at <= last]
            for entry in old:
                self._discard(entry)
        return len(old)

    def _look(self) -> tuple[list[Trashed], list[tuple[Path, str]]]:
        found: list[Trashed] = []
        damaged: list[tuple[Path, str]] = []
        for folder in self._folders():
            try:
                entry = trashed.read(folder, store=self._store)
            except ManifestError as error:
                if not trashed.is_leftover(folder):
                    damaged.append((folder, str(error)))
            else:
                if entry.held:  # else a deletion was stopped before it began, or an undo after its end
                    found.append(entry)
        return sorted(found, key=lambda entry: entry.place), damaged

    def _folders(self) -> list[Path]:
        paths = (self.folder / name for name in _names(self.folder) if not name.startswith("."))
        return [path for path in paths if kind_of(path) == "folder"]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        private_folder(self.folder)
        with locked([self.folder]):
            yield

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        with ExitStack() as held:
            try:
                if kind_of(self.folder) is not None:
                    held.enter_context(locked([self.folder]))
            except OSError as error:
                raise TrashError(
                    f"The trash {self.folder} cannot be used ({reason(error)}): nothing was brought back. Undo once"
                    " more when that is mended."
                ) from error
            yield

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
        with ExitStack() as held:
            try:
                held.enter_context(self._alone())
                at = self._clock().astimezone(UTC)
                folder = self.folder / trashed.name_of(self._next(batch), at, uuid.uuid4().hex[:12])
                entry = Trashed(folder, session_id, title, at, how, batch, tuple(paths))
                before = {path.parent: _mtime_ns(path.parent) for path in paths}
                trashed.begin(entry)
            except OSError as error:
                why = f"the trash {self.folder} cannot be written ({reason(error)}); `--purge` deletes without it"
                return Disposed((), tuple((path, why) for path in paths))
            targets = {path: folder / str(number) for number, path in enumerate(paths)}
            done = dispose(paths, lambda path: act(path, targets[path]))
            if not trashed.clear(folder):
                trashed.note_times(entry, [(p, ns, _mtime_ns(p)) for p, ns in before.items() if ns is not None])
            return done

    def _next(self, batch: str) -> int:
        """The number of the next entry, counted on: clocks are set back, and other kernels delete, too."""
        known, number = self._last
        if batch != known:
            number = max(map(trashed.number_of, self._folders()), default=0)
        self._last = (batch, number + 1)
        return number + 1

    def _restore(self, entries: Sequence[Trashed]) -> Restored:
        back: list[Trashed] = []
        stayed: list[tuple[Trashed, str]] = []
        for entry in reversed(entries):
            why = self._in_the_way(entry) or self._bring_back(entry)
            if why:
                stayed.append((entry, why))
            else:
                back.append(entry)
        if stayed and not back:
            entry, why = stayed[-1]
            more = f" The same is so of {len(stayed) - 1} more." if len(stayed) > 1 else ""
            raise TrashError(f"{_named(entry)} stays in the trash: {why}.{more} Mend that, then undo once more.")
        return Restored(tuple(reversed(back)), tuple(reversed(stayed)))

    def _in_the_way(self, entry: Trashed) -> str | None:
        """Why nothing of `entry` can come back; None where nothing stands in its way."""
        for inside, path in entry.held:
            if not self._is_inside(path):
                return f"{path} does not lie in {self._store}. Look for a link on the way"
            try:
                free = kind_of(path) is None or holds(path, inside) or holds(inside, path)
            except OSError as error:
                return f"{path} cannot be compared ({reason(error)})"
            if not free:
                return f"{path} is there again. Move it away"
        return None

    def _bring_back(self, entry: Trashed) -> str | None:
        """Bring back all of `entry` that can be; why the rest cannot."""
        as_left = [(folder, ns) for folder, ns, after in entry.times if _mtime_ns(folder) == after]
        left = []
        for inside, path in entry.held:
            try:
                bring_back(inside, path)
            except OSError as error:
                left.append(f"{path} could not be brought back ({reason(error)})")
        if left:
            return f"{left[0]}; what is missing is in {entry.folder}"
        for folder, ns in as_left:
            if self._is_inside(folder):
                with suppress(OSError, OverflowError):  # somebody else's folder, or a time that is none
                    os.utime(folder, ns=(ns, ns))
        trashed.clear(entry.folder)
        return None

    def _discard(self, entry: Trashed) -> None:
        """Delete `entry` for good, under another name first: what is cut off is no entry that lost a part."""
        gone = self.folder / f".{entry.folder.name}{GONE}"
        with suppress(OSError):
            entry.folder.rename(gone)
            for path in entry.paths:
                if self._is_inside(path):
                    drop(part_of(path))
            drop(gone)

    def _is_inside(self, path: Path) -> bool:
        """Whether `path` lies in the store, also when links on the way are followed."""
        try:
            return ".." not in path.parts and path.parent.resolve().is_relative_to(self._store.resolve())
        except (OSError, ValueError, RuntimeError):  # a loop of links, or no path at all
            return False


def _named(entry: Trashed) -> str:
    return f"{entry.title} [{entry.session_id}]" if entry.session_id else entry.title


def _names(folder: Path) -> list[str]:
    """The names in a folder; none where it is not there or cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return []


def _mtime_ns(path: Path) -> int | None:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return None
