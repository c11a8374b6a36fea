"""Proposed changes to memory files: shown, applied whole or not at all, dismissed. Being there applies none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.errors import MemoryFileError
from gemnb.model.shown import clean_line, visible
from gemnb.services.memory_edit import changing
from gemnb.services.memory_patch import Patch
from gemnb.store.files import all_or_none
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of

LARGEST = 1_000_000
"""Bytes of a patch; a larger one is named, and never applied in part."""
KINDS = ("private", "global")
NONE = "No proposals wait."
_HUNK = re.compile(r"@@ -[0-9]{1,9}(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@")


@dataclass(frozen=True, slots=True)
class Proposal:
    """One patch of the inbox."""

    number: int
    """As `%memory apply` takes it, from 1."""
    kind: str
    """`private` or `global`: which files it may change."""
    path: Path
    patch: str
    problem: str | None = None
    """Why it cannot be applied, where that is plain to see; it can be dismissed."""

    @property
    def title(self) -> str:
        """Its number, its kind and its name, in one line."""
        return f"{self.number}. {self.kind} ({clean_line(self.path.name)})"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What each line of its patch is, and the line, with what cannot be seen made visible.

        `added`, `removed` or `kept`, by the counts of the hunks; else `about`, whatever it looks like.
        """
        found = []
        old = new = 0
        for line in self.patch.rstrip().replace("\r\n", "\n").split("\n"):
            kind = "about"
            if old > 0 or new > 0:
                kind = {"+": "added", "-": "removed", "\\": "about"}.get(line[:1], "kept")
                old -= kind in ("removed", "kept")
                new -= kind in ("added", "kept")
            elif hunk := _HUNK.match(line):
                old, new = int(hunk[1] or 1), int(hunk[2] or 1)
            found.append((kind, visible(line)))
        return found

    def __str__(self) -> str:
        body = [f"cannot be applied: {visible(self.problem)}"] if self.problem else [line for _, line in self.lines]
        return "\n".join([self.title, *body])


class Inbox(list[Proposal]):
    """The proposals that wait for a person."""

    how = "`%memory apply N` makes the change, `%memory dismiss N` throws it away."
    """What a person can do."""

    def __init__(self, proposals: Sequence[Proposal] = (), notes: Sequence[str] = ()) -> None:
        super().__init__(proposals)
        self.notes = tuple(notes)
        """What a person should know beside the proposals, in sentences."""

    def __repr__(self) -> str:
        waiting = [*map(str, self), self.how] if self else [NONE]
        return "\n\n".join([*map(visible, self.notes), *waiting])


def read_inbox(folder: Path) -> Inbox:
    """The proposals below a project's memory folder, by name; nothing is changed."""
    found = Inbox()
    for kind in KINDS:
        for path in sorted(_patches(folder, kind)):
            text, problem = _read(path)
            found.append(Proposal(len(found) + 1, kind, path, text, problem))
    return found


def _patches(folder: Path, kind: str) -> Iterator[Path]:
    """The paths in the places of patches, in folders of the inbox too, as the client looks for them."""
    place = folder / ".inbox" / kind
    if all(kind_of(part) == "folder" for part in (folder, folder / ".inbox", place)):
        for inside, _, names in os.walk(place):
            yield from (Path(inside, name) for name in names if name.endswith(".patch"))


def _read(path: Path) -> tuple[str, str | None]:
    """The patch, or why there is none."""
    try:
        with open_regular(path) as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        kind = "it is no regular file" if kind_of(path) == "other" else None
        return "", kind or getattr(error, "strerror", None) or str(error)
    if len(data) > LARGEST:
        return "", f"it is longer than {LARGEST:,} bytes"
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), "it is not all UTF-8"


def pick(inbox: Sequence[Proposal], number: object) -> Proposal:
    """The proposal with that number.

    Raises:
        MemoryFileError: there is none.
    """
    told = str(number).strip()
    if not told:
        raise MemoryFileError("Say which proposal, as in `%memory apply 1`: `%memory inbox` lists them.")
    if told.isascii() and told.isdigit() and len(told) < 10 and 0 < int(told) <= len(inbox):
        return inbox[int(told) - 1]
    raise MemoryFileError(f"There is no proposal {told!r}: `%memory inbox` lists {len(inbox)} of them.")


def apply_proposal(proposal: Proposal, allowed: Mapping[str, Sequence[Path]], folder: Path) -> list[Path]:
    """Make the change that a proposal asks for, and take it out of the inbox. The files that were changed.

    Args:
        proposal: what to apply, as it was shown.
        allowed: for each kind, the files that it may change and the folders whose Markdown files it may.
        folder: the project's memory folder.

    Raises:
        MemoryFileError: it is no patch, names another file, or does not fit; nothing was changed then.
    """
    if proposal.problem:
        raise MemoryFileError(f"{proposal.path.name} cannot be applied: {proposal.problem}; dismiss it.")
    patch = Patch(proposal.path.name, proposal.kind, proposal.patch, allowed[proposal.kind])
    with changing([folder, *(target.parent for target in patch.targets)], proposal.path):
        _as_shown(proposal)
        changes = patch.changes()
        with all_or_none(changes):
            proposal.path.unlink()
    return list(changes)


def dismiss_proposal(proposal: Proposal, folder: Path) -> None:
    """Take a proposal out of the inbox, and make no change.

    Raises:
        MemoryFileError: it is not as it was shown, or cannot be removed.
    """
    with changing([folder], proposal.path):
        _as_shown(proposal)
        proposal.path.unlink()


def _as_shown(proposal: Proposal) -> None:
    if kind_of(proposal.path) is None or _read(proposal.path) != (proposal.patch, proposal.problem):
        raise MemoryFileError(
            f"{proposal.path.name} is not as it was shown: another program changed, applied or dismissed it. Nothing"
            " was done; `%memory inbox` shows what waits."
        )
