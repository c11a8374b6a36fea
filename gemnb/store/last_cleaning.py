"""What the last cleaning of a store did, kept beside its trash so that it can be told later."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from gemnb.model.shown import clean_line
from gemnb.store.files import write_whole
from gemnb.store.paths import kind_of, private_folder

NAME = "last-cleaning.json"


@dataclass(frozen=True, slots=True)
class LastCleaning:
    """When it was, in which project, and what it did."""

    at: str
    """ISO 8601, UTC."""
    project: str
    deleted: int
    skipped: int
    failed: int
    outputs: int
    purged: bool

    def __str__(self) -> str:
        where = "for good" if self.purged else "to the trash"
        told = f"{self.at[:16].replace('T', ' ')} UTC in {self.project}: {self.deleted} sessions went {where}"
        return f"{told}, {self.outputs} tool outputs, {self.skipped} stayed, {self.failed} failed"


def write(own: Path, told: LastCleaning) -> None:
    """Keep `told` in gemnb's own folder; where that cannot be written, the cleaning was done all the same."""
    with suppress(OSError):
        private_folder(own)
        write_whole(own / NAME, json.dumps(asdict(told), ensure_ascii=False).encode("utf-8", "replace"))


def read(own: Path) -> LastCleaning | None:
    """What was kept; None where nothing was, or it cannot be read."""
    if kind_of(own / NAME) != "file":
        return None
    try:
        told = json.loads((own / NAME).read_bytes())
        at, project = (clean_line(str(told[name])) for name in ("at", "project"))
        deleted, skipped, failed, outputs = (int(told[name]) for name in ("deleted", "skipped", "failed", "outputs"))
        return LastCleaning(at, project, deleted, skipped, failed, outputs, bool(told["purged"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
