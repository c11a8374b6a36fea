"""The session files of a folder as rows with their ledgers: read, or remembered where they did not change."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Collection
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gemnb.model.ledger import Counts, Ledger, make_ledger
from gemnb.model.progress import Progress, watched
from gemnb.model.session import SessionInfo
from gemnb.model.talk import prompts
from gemnb.store.index import LEDGERS, Index
from gemnb.store.replay import Fold, read_fold
from gemnb.store.rows import (
    READING,
    Remembered,
    described,
    in_time,
    info_of,
    is_settled,
    packed,
    remember,
    session_names,
    stamp_of,
    unreadable,
)
from gemnb.store.tabled import settled, tabled_records

HELD_BYTES = 16 << 20
"""How much is made ready for the index before it is written."""


class Kept(msgspec.Struct, array_like=True, gc=False):
    """A row and its ledger as the index keeps them."""

    row: Remembered
    ledger: Ledger


def ledgers_of(
    folder: Path, *, index: Index | None, now: datetime, calls: bool, progress: Progress | None = None
) -> list[tuple[SessionInfo, Ledger | None]]:
    """Every session file of a project's folder as a row that has no number yet, with its ledger; each is read once.

    There is no ledger of a file that cannot be read. With `calls` each tool call is measured; else only told.
    """
    index = index if index and index.on else None
    known = index.read(folder, LEDGERS) if index else {}
    begun = time.time_ns()
    found: list[tuple[SessionInfo, Ledger | None]] = []
    rows: dict[str, bytes] = {}
    fresh: dict[str, bytes] = {}
    held = 0
    chats = folder / "chats"
    for name in watched(session_names(folder), READING, progress):
        path = chats / name
        try:
            status = os.lstat(path)
            kept = _kept(known.pop(name, None), status, calls=calls)
            row, ledger = (info_of(kept.row, path), kept.ledger) if kept else _read(path, status, calls=calls)
        except (OSError, ValueError) as error:
            found.append((unreadable(path, str(error)), None))
            continue
        if index and not kept and is_settled(status, begun) and (entry := _packed(row, ledger, status)):
            rows |= packed(name, row, status)
            fresh[name] = entry
            held += len(entry)
            if held > HELD_BYTES:
                index.write(folder, rows, ledgers=fresh)
                rows, fresh, held = {}, {}, 0
        found.append((in_time(row, status, now), ledger))
    if index and (fresh or known):
        index.write(folder, rows, ledgers=fresh, gone=known)
    return found


def ledger_in(found: Fold, asked: Collection[str], *, calls: bool) -> Ledger:
    """The ledger of a file, from its fold and the ids of its prompts; the fold is emptied, see `make_ledger`."""
    told = [settled(line) for line in found.live.values()]
    gone = (settled(line) for line in found.known.values() if line.tokens and line.id not in found.live)
    told += [message for message in gone if message.tokens]
    live = len(found.live)
    found.live, found.known = {}, {}
    return make_ledger(told, live=live, asked=asked, rewound=found.rewinds, anew=found.anew, calls=calls)


def _read(path: Path, status: os.stat_result, *, calls: bool) -> tuple[SessionInfo, Ledger]:
    found = read_fold(path, records=partial(tabled_records, calls=calls))
    asked = list(prompts(found.live.values()))
    row = described(found, path, status, asked=asked)
    ids = {line.id or "" for line in asked}
    del asked
    return row, ledger_in(found, ids, calls=calls)


def _kept(entry: bytes | None, status: os.stat_result, *, calls: bool) -> Kept | None:
    """What `entry` holds; None where it is none, or of a file that is another by now, or lacks the calls."""
    if entry is None:
        return None
    try:
        kept: Kept = _decode(entry)
    except msgspec.MsgspecError:
        return None
    lacks = calls and kept.ledger.calls is None
    return None if lacks or kept.row.stamp != stamp_of(status) else kept


def _packed(row: SessionInfo, ledger: Ledger, status: os.stat_result) -> bytes | None:
    """The entry of one ledger; None where half a character is among its words."""
    try:
        return _encode(Kept(remember(row, status), ledger))
    except UnicodeEncodeError:
        return None


def _counts(_: type, value: Any) -> Counts:
    return array("q", value)


_encode = msgspec.msgpack.Encoder(enc_hook=array.tobytes).encode
_decode = msgspec.msgpack.Decoder(Kept, dec_hook=_counts).decode
