"""Proposed changes to memory files: listed, applied whole or not at all, dismissed. Being there applies none."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.errors import MemoryFileError
from gemnb.model.talk import UNSEEN, clean_line
from gemnb.store.files import write_whole
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of, private_folder

LARGEST = 1_000_000
KINDS = ("private", "global")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Proposal:
    """One patch of the inbox."""

    number: int
    """As `%memory apply` takes it, from 1."""
    kind: str
    """`private` or `global`: which files it may change."""
    path: Path
    patch: str

    def __str__(self) -> str:
        return UNSEEN.sub("", f"{self.number}. {self.kind} ({clean_line(self.path.name)})\n{self.patch.rstrip()}")


class Inbox(list[Proposal]):
    """The proposals that wait for a person."""

    def __repr__(self) -> str:
        how = "`%memory apply N` makes the change, `%memory dismiss N` throws it away."
        return "\n\n".join([*map(str, self), how]) if self else "No proposals wait."


def read_inbox(folder: Path) -> Inbox:
    """The proposals below a project's memory folder, by name; nothing is changed."""
    found = Inbox()
    for kind in KINDS:
        place = folder / ".inbox" / kind
        if kind_of(folder) != "folder" or kind_of(folder / ".inbox") != "folder" or kind_of(place) != "folder":
            continue
        for path in sorted(place.glob("*.patch")):
            try:
                with open_regular(path) as file:
                    text = file.read(LARGEST).decode("utf-8", "replace")
            except (OSError, ValueError):
                continue
            found.append(Proposal(len(found) + 1, kind, path, text))
    return found


def pick(inbox: Sequence[Proposal], number: object) -> Proposal:
    """The proposal with that number.

    Raises:
        MemoryFileError: there is none.
    """
    told = str(number).strip()
    if told.isascii() and told.isdigit() and 0 < int(told) <= len(inbox):
        return inbox[int(told) - 1]
    raise MemoryFileError(f"There is no proposal {told!r}: `%memory inbox` lists {len(inbox)} of them.")


def apply_proposal(proposal: Proposal, allowed: Mapping[str, Sequence[Path]]) -> list[Path]:
    """Make the change that a proposal asks for, and take it out of the inbox. The files that were changed.

    Args:
        proposal: what to apply.
        allowed: for each kind, the files that it may change and the folders whose Markdown files it may.

    Raises:
        MemoryFileError: it is no patch, names another file, or does not fit; nothing was changed then.
    """
    changes = _changes(proposal, allowed[proposal.kind])
    held = {path: _bytes_of(path) for path in changes}
    done: list[Path] = []
    try:
        for path, data in changes.items():
            _replace(path, data)
            done.append(path)
    except OSError as error:
        for path in done:
            before = held[path]
            path.unlink() if before is None else _replace(path, before)
        raise MemoryFileError(
            f"{error.filename} could not be written: {error.strerror}; nothing was changed."
        ) from None
    proposal.path.unlink()
    return done


def _changes(proposal: Proposal, allowed: Sequence[Path]) -> dict[Path, bytes]:
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        patches = PatchSet(proposal.patch)
    except (UnidiffParseError, ValueError) as error:
        raise MemoryFileError(f"{proposal.path.name} is no patch ({error}); dismiss it.") from None
    if not patches or not all(patches):
        raise MemoryFileError(f"{proposal.path.name} changes nothing; dismiss it.")
    changes: dict[Path, bytes] = {}
    for patch in patches:
        target = _target(patch.source_file, patch.target_file, allowed, proposal)
        before = changes.get(target, _bytes_of(target) or b"")
        changes[target] = _patched(before, patch, proposal)
    return changes


def _target(source: str, target: str, allowed: Sequence[Path], proposal: Proposal) -> Path:
    """The file that a patch is for: named alike in both headers, absolute, one of those allowed, and no link."""
    path = Path(target)
    plain = path.is_absolute() and os.path.normpath(target) == target and source in (target, "/dev/null")
    beside = any(place.suffix == "" and path.parent == place and path.suffix == ".md" for place in allowed)
    if (
        not plain
        or not (path in allowed or beside)
        or Path(os.path.realpath(path)) != Path(os.path.realpath(path.parent)) / path.name
    ):
        raise MemoryFileError(
            f"{proposal.path.name} would change {target!r}, no {proposal.kind} memory file; it was not applied."
        )
    return path


def _patched(before: bytes, patch: object, proposal: Proposal) -> bytes:
    """`before` with every hunk in its place.

    Raises:
        MemoryFileError: a hunk does not fit.
    """
    lines = _LINES.findall(before.decode("utf-8", "surrogateescape"))
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    result: list[str] = []
    at = 0
    for hunk in patch:  # type: ignore[attr-defined]
        start = max(hunk.source_start - 1, 0)
        old = [line.value for line in hunk.source_lines()]
        if start < at or [_bare(line) for line in lines[start : start + len(old)]] != [_bare(line) for line in old]:
            raise MemoryFileError(f"{proposal.path.name} does not fit the file as it is now; it was not applied.")
        result += lines[at:start]
        at = start
        for line in hunk:
            if line.is_added:
                result.append(_bare(line.value) + (end if line.value.endswith("\n") else ""))
            elif line.is_context:
                result.append(lines[at])
            at += line.is_context or line.is_removed
    result += lines[at:]
    # A last line without an end, with more after it now, would run into the next one.
    whole = [line if line.endswith("\n") or n == len(result) else line + end for n, line in enumerate(result, 1)]
    return "".join(whole).encode("utf-8", "surrogateescape")


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _bytes_of(path: Path) -> bytes | None:
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemoryFileError(f"{path} cannot be read: {error.strerror}; nothing was changed.") from None


def _replace(path: Path, data: bytes) -> None:
    private_folder(path.parent)
    write_whole(path, data)
