"""A live session's file: appends records, notices what others wrote, tells its health. No disk makes it raise."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gemnb.errors import GemnbWarning
from gemnb.model.records import JsonObject
from gemnb.store.files import put
from gemnb.store.journal import UnreadableFileError, to_line

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class RecordingHealth:
    """Whether the talk is being saved; apart from whether it succeeds."""

    active: bool
    path: Path
    reason: str | None = None
    """Why nothing is being saved; None while it is."""
    unsaved: int = 0
    """Records that wait in memory for a write that succeeds."""
    since: datetime | None = None
    """Since when nothing is being saved."""

    def __str__(self) -> str:
        if self.active:
            return f"recorded in {self.path}"
        since = f" since {self.since:%H:%M:%S}" if self.since else ""
        return f"NOT being saved{since}: {self.reason}; {self.unsaved} records wait in memory"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a file was when we looked: another's change shows as a difference."""

    device: int
    inode: int
    size: int
    changed_ns: int


class Recorder:
    """Appends the records of one session to its file.

    A new file is made with its first records, in one go; one line is one write on an append-only descriptor;
    a missing final newline is closed first. What cannot be written waits, and is written in order when a later
    append succeeds.

    Args:
        path: the session's file.
        begin: gives the records that a new file begins with.
        whole: gives the records that make the file anew, should it be gone: the talk as it stands, unsaved records too.
        prepare: makes the folders and may change the path; called before the file is made.
        clock: aware time, for `RecordingHealth.since`.
        attached: what the file was before it was read, where it is there already.
    """

    def __init__(
        self,
        path: Path,
        *,
        begin: Callable[[], Sequence[JsonObject]],
        whole: Callable[[], Sequence[JsonObject]],
        prepare: Callable[[Path], Path],
        clock: Clock,
        attached: Seen | None,
    ) -> None:
        self.path = path
        self._begin = begin
        self._whole = whole
        self._prepare = prepare
        self._clock = clock
        self._pending: deque[bytes] = deque()
        self._made = attached is not None
        self._made_anew = False
        self._forsaken = False
        self._reason: str | None = None
        self._since: datetime | None = None
        self._seen = attached
        self._foreign = False

    @property
    def health(self) -> RecordingHealth:
        """How recording stands."""
        return RecordingHealth(self._reason is None, self.path, self._reason, len(self._pending), self._since)

    def record(self, records: Iterable[JsonObject]) -> None:
        """Append `records`; what cannot be written now is kept and tried again with the next."""
        self._pending.extend(map(to_line, records))
        self.flush()

    def flush(self) -> None:
        """Write what waits, in order, as far as it goes."""
        if not self._pending:
            return
        try:
            self._write()
        except OSError as error:
            self._failed(error)
        else:
            self._reason = self._since = None
            self._made_anew = False

    def changed(self) -> Seen | None:
        """What the file is now, where we left it otherwise: grown, cut, replaced. One that is gone is no change."""
        if self._seen is None:
            return None
        now = look(self.path)
        return now if self._foreign or now != self._seen else None

    def accept(self, seen: Seen) -> None:
        """Take the file for known as it was when it was `seen`, before it was read: its reader has folded it in."""
        self._seen = seen
        self._foreign = False

    def forsake(self) -> None:
        """Leave the file as it is, for it is another session's now: the next record makes a new one, whole."""
        self._forsaken = True
        self._seen = None
        self._foreign = False

    def _write(self) -> None:
        if self._forsaken:
            self._make(list(map(to_line, self._whole())))
            return
        if not self._made:
            self._make([*map(to_line, self._begin()), *self._pending])
            return
        try:
            descriptor = _open_own(self.path)
        except FileNotFoundError:
            if self._made_anew:
                raise
            self._made_anew = True
            self._make(list(map(to_line, self._whole())))
            return
        try:
            self._append(descriptor)
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int) -> None:
        _lock(descriptor)
        before = _seen(descriptor)
        self._foreign = self._foreign or before != self._seen
        while self._pending:
            line = self._pending[0]
            data = line if _ends_whole(descriptor) else b"\n" + line
            written = 0
            try:
                written = os.write(descriptor, data)
            finally:
                before, expected = _seen(descriptor), before.size + written
                self._note(before, expected)
            if written < len(data):
                # what a short write left is closed by the next line's leading newline
                raise OSError(errno.ENOSPC, "the disk is full: only a part of a record could be written")
            self._pending.popleft()

    def _note(self, seen: Seen | None, expected: int) -> None:
        """Note what the file is after a write of ours; another size than expected is another program's doing."""
        self._seen = seen
        self._foreign = self._foreign or seen is None or seen.size != expected

    def _make(self, lines: list[bytes]) -> None:
        """Make the file whole; it appears complete or not at all, even where we are killed, and never over another.

        Half a new file would count as a corrupted session, and the client would delete its namesakes with it.
        """
        self.path = self._prepare(self.path)
        data = b"".join(lines)
        put(self.path, data)
        self._note(look(self.path), len(data))
        self._pending.clear()
        self._made = True
        self._forsaken = False

    def _failed(self, error: OSError) -> None:
        first = self._reason is None
        self._reason = error.strerror or str(error)
        self._since = self._since or self._clock()
        if first:
            warnings.warn(
                f"Nothing is being saved since {self._since:%H:%M:%S}: {self._reason} ({self.path}). The talk goes on;"
                " what is unsaved stays in memory and is written when a later write succeeds.",
                GemnbWarning,
                stacklevel=2,
            )


def look(path: Path) -> Seen | None:
    """What the file at `path` is now; None where nothing is."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return Seen(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _open_own(path: Path) -> int:
    """Open a session's file to append to it; never through a link, never waiting for a pipe.

    Raises:
        OSError: it cannot be opened, is no regular file, or is a file that has another name elsewhere.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    what = "has another name elsewhere (a hard link)" if stat.S_ISREG(status.st_mode) else "is no regular file"
    raise UnreadableFileError(f"the session's file {what}")


def _seen(descriptor: int) -> Seen:
    status = os.fstat(descriptor)
    return Seen(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _lock(descriptor: int) -> None:
    """Keep other kernels of ours out for the length of an append; where locks are not to be had, go without."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return


def _ends_whole(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size == 0 or os.pread(descriptor, 1, size - 1) == b"\n"
