"""What listings and tables read of unchanged files, in the person's cache folder: one SQLite file.

It is never needed and never believed: entries are bytes with a checksum. Whatever is wrong with the file costs time and
nothing else: a damaged index is dropped and made anew, one that is locked or cannot be written is done without.
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import msgspec

from gemnb.store.paths import kind_of, private_folder

if TYPE_CHECKING:  # loaded when first needed
    from sqlite3 import Connection

T = TypeVar("T")

WAIT_SECONDS = 1.0
"""How long another program's write is waited for, before this listing does without."""
_PASSING = tuple(
    f"SQLITE_{name}"
    for name in ("PERM", "BUSY", "LOCKED", "NOMEM", "READONLY", "IOERR", "FULL", "CANTOPEN", "PROTOCOL", "INTERRUPT")
)
"""What SQLite says of a file that may be well and is out of reach; all else is damage."""
_CHECK_BYTES = 4
FILES, LEDGERS = "files", "ledgers"
"""The tables: what a listing needs of a file, one row for a folder, since it asks for all at once; and what tables
need, one row for a file."""
_TABLES = {
    FILES: "folder TEXT NOT NULL PRIMARY KEY, entries BLOB NOT NULL",
    LEDGERS: "folder TEXT NOT NULL, name TEXT NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (folder, name)",
}
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(dict[str, bytes]).decode

_log = logging.getLogger(__name__)


class Index:
    """Entries of files by folder and name; several processes may use one at once.

    Args:
        path: the SQLite file; made with its folder when there is something to keep.
        version: of what the entries mean; an index of another version is dropped.
    """

    def __init__(self, path: Path, *, version: int) -> None:
        self.path = path
        self.on = True
        """Whether it is used at all."""
        self._version = version

    def read(self, folder: Path, table: str = FILES) -> dict[str, bytes]:
        """The entries of `folder` in a table by name; none where there is no index or it is of no use."""
        key = _key(folder)
        if not self.on or key is None or kind_of(self.path) != "file":
            return {}

        def entries(database: Connection) -> dict[str, bytes]:
            if table == FILES:
                return _files(database, key)
            found = {}
            for name, entry in database.execute("SELECT name, entry FROM ledgers WHERE folder = ?", (key,)):
                if not isinstance(name, str):
                    raise TypeError(f"a name that is no text: {name!r}")
                value = _proven(entry)
                if value is not None:
                    found[name] = value
            return found

        return self._use(entries) or {}

    def write(
        self,
        folder: Path,
        entries: Mapping[str, bytes],
        *,
        ledgers: Mapping[str, bytes] = MappingProxyType({}),
        gone: Iterable[str] = (),
    ) -> None:
        """Keep `entries` and `ledgers` of `folder`; drop what is `gone`, or of another state of these files, or of
        folders that are no more.
        """
        key = _key(folder)
        if not self.on or key is None or not self._make():
            return

        def change(database: Connection) -> None:
            database.execute("PRAGMA secure_delete = ON")  # words of a deleted session do not stay behind
            database.execute("BEGIN IMMEDIATE")
            dropped = {name for name in (*gone, *entries) if _is_utf8(name)}
            files = {name: value for name, value in _files(database, key).items() if name not in dropped}
            files |= {name: value for name, value in entries.items() if _is_utf8(name)}
            database.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (key, _checked(_pack(files))))
            database.executemany("DELETE FROM ledgers WHERE folder = ? AND name = ?", [(key, name) for name in dropped])
            kept = ((key, name, _checked(value)) for name, value in ledgers.items() if _is_utf8(name))
            database.executemany("INSERT OR REPLACE INTO ledgers VALUES (?, ?, ?)", kept)
            for (known,) in database.execute("SELECT folder FROM files").fetchall():
                if kind_of(Path(known)) != "folder":
                    for table in _TABLES:
                        database.execute(f"DELETE FROM {table} WHERE folder = ?", (known,))
            database.execute("COMMIT")

        self._use(change)

    def count(self) -> int | None:
        """How many entries it holds; None where there is no index or it is of no use."""
        if kind_of(self.path) != "file":
            return None

        def entries(database: Connection) -> int:
            folders = database.execute("SELECT folder FROM files").fetchall()
            return sum(len(_files(database, folder)) for (folder,) in folders)

        return self._use(entries)

    def drop(self) -> None:
        """Delete the file; it is made anew with the next listing."""
        for ending in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):
                self.path.with_name(self.path.name + ending).unlink()

    def _make(self) -> bool:
        """Whether the file is there, for the person alone; SQLite gives those beside it the same mode."""
        try:
            private_folder(self.path.parent)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
        except OSError as error:
            _log.info("The index %s cannot be written, so nothing is kept: %s", self.path, error)
            return False
        return kind_of(self.path) == "file"

    def _use(self, work: Callable[[Connection], T]) -> T | None:
        """What `work` makes of the database; None, and a line in the log, where SQLite cannot serve."""
        try:
            import sqlite3
        except ImportError as error:  # a Python can be built without it
            _log.info("There is no index: %s", error)
            return None
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)) as database:
                self._prepare(database)
                return work(database)
        except (sqlite3.Error, msgspec.MsgspecError, TypeError, ValueError) as error:
            name = getattr(error, "sqlite_errorname", "")
            if not name.startswith(_PASSING):
                self.drop()
            _log.info("The index %s was of no use this time: %s %s", self.path, name, error)
            return None

    def _prepare(self, database: Connection) -> None:
        """Bring the file to this version's form; what another one kept goes."""
        database.execute("PRAGMA synchronous = OFF")  # what a power cut leaves is checked when it is read
        if self._is_current(database):
            return
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        if not self._is_current(database):  # another process may have been first
            for table, columns in _TABLES.items():
                database.execute(f"DROP TABLE IF EXISTS {table}")
                database.execute(f"CREATE TABLE {table} ({columns}) WITHOUT ROWID")
            database.execute(f"PRAGMA user_version = {self._version:d}")
        database.execute("COMMIT")

    def _is_current(self, database: Connection) -> bool:
        return bool(database.execute("PRAGMA user_version").fetchone()[0] == self._version)


def _files(database: Connection, key: str) -> dict[str, bytes]:
    """What is known of a folder's files, by name; nothing where it is damaged."""
    found = database.execute("SELECT entries FROM files WHERE folder = ?", (key,)).fetchone()
    value = _proven(found[0]) if found else None
    return {} if value is None else _unpack(value)


def _checked(value: bytes) -> bytes:
    return zlib.crc32(value).to_bytes(_CHECK_BYTES) + value


def _proven(entry: bytes) -> bytes | None:
    """What was kept, or None where it is another by now."""
    value = entry[_CHECK_BYTES:]
    return value if zlib.crc32(value).to_bytes(_CHECK_BYTES) == entry[:_CHECK_BYTES] else None


def _key(folder: Path) -> str | None:
    """What `folder` is called in the index; None where no text can tell it."""
    path = os.path.abspath(folder)  # noqa: PTH100 - `Path.resolve` would follow links
    return path if _is_utf8(path) else None


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
