"""Proposed changes to memory files: listed, applied whole or not at all, dismissed. Being there applies none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemnb.errors import MemoryFileError
from gemnb.model.talk import clean_line
from gemnb.services.memory_edit import UTF16, changing, check_size, is_utf16, read_bytes
from gemnb.store.files import all_or_none
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of

LARGEST = 1_000_000
"""Bytes of a patch; a larger one is named, and never applied in part."""
KINDS = ("private", "global")
NONE = "No proposals wait."
NEW = "/dev/null"
"""What stands in the place of a file that is not there."""
STAYED = "It was not applied: `%memory dismiss` takes it out of the inbox."
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_HUNK = re.compile(r"@@ -[0-9]{1,9}(?:,([0-9]{1,9}))? \+[0-9]{1,9}(?:,([0-9]{1,9}))? @@")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff"
    "\U000e0000-\U000e007f]"
)
"""What would be written and not seen; the line end is told apart."""


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


def visible(text: str) -> str:
    """`text` with control, bidi and other characters that are not seen written out."""
    return _UNSEEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


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
    targets = [_target(patch, allowed[proposal.kind], proposal) for patch in _parsed(proposal)]
    with changing([folder, *(target.parent for target in targets)], proposal.path):
        _as_shown(proposal)
        changes = _changes(proposal, allowed[proposal.kind])
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


def _parsed(proposal: Proposal) -> Any:
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        patches = PatchSet(proposal.patch)
    except (UnidiffParseError, ValueError) as error:
        raise MemoryFileError(f"{proposal.path.name} is no patch ({error}); dismiss it.") from None
    if not patches or not all(patches):
        raise MemoryFileError(f"{proposal.path.name} changes no text; dismiss it.")
    return patches


def _changes(proposal: Proposal, allowed: Sequence[Path]) -> dict[Path, bytes]:
    """What each file will hold."""
    changes: dict[Path, bytes] = {}
    for patch in _parsed(proposal):
        target = _target(patch, allowed, proposal)
        before = changes[target] if target in changes else _held(target)
        if before and _name(patch.source_file) == NEW:
            raise MemoryFileError(f"{proposal.path.name} makes {target} new, and it is there by now. {STAYED}")
        changes[target] = _patched(before or b"", patch, proposal)
        check_size(target, changes[target])
    return changes


def _name(header: str) -> str:
    """The path in a header, without the prefix that git puts before it."""
    path = header.rstrip("\r")
    return path[2:] if path.startswith(("a//", "b//")) else path


def _target(patch: Any, allowed: Sequence[Path], proposal: Proposal) -> Path:
    """The file that a patch is for: named alike in both headers, absolute, one of those allowed, and no link."""
    source, target = _name(patch.source_file), _name(patch.target_file)
    path = Path(target)
    plain = path.is_absolute() and os.path.normpath(target) == target == visible(target) and source in (target, NEW)
    beside = any(
        place.suffix == "" and path.parent == place and path.suffix.lower() == ".md" and not path.name.startswith(".")
        for place in allowed
    )
    if not plain or not (path in allowed or beside):
        what = f"delete {source!r}" if target == NEW else f"change {target!r}"
        raise MemoryFileError(f"{proposal.path.name} would {what}, no {proposal.kind} memory file. {STAYED}")
    if Path(os.path.realpath(path)) != Path(os.path.realpath(path.parent)) / path.name:
        raise MemoryFileError(f"{proposal.path.name} would change a link, {target!r}. {STAYED}")
    return path


def _patched(before: bytes, patch: Any, proposal: Proposal) -> bytes:
    """`before` with every hunk in its place.

    Raises:
        MemoryFileError: a hunk does not fit.
    """
    lines = _LINES.findall(before.decode("utf-8", "surrogateescape"))
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    result: list[str] = []
    at = 0
    for hunk in patch:
        start = max(hunk.source_start - 1, 0)
        old = [line.value for line in hunk.source_lines()]
        if start < at or [_bare(line) for line in lines[start : start + len(old)]] != [_bare(line) for line in old]:
            raise MemoryFileError(f"{proposal.path.name} does not fit the file as it is now. {STAYED}")
        result += lines[at:start]
        at = start
        previous = None
        for line in hunk:
            if line.is_added:
                result.append(_bare(line.value) + end)
            elif line.is_context:
                result.append(lines[at])
            elif line.line_type == "\\" and previous is not None and previous.is_added:
                result[-1] = _bare(result[-1])
            at += line.is_context or line.is_removed
            previous = line
    result += lines[at:]
    # A last line without an end, with more after it now, would run into the next one.
    whole = [line if line.endswith("\n") or n == len(result) else line + end for n, line in enumerate(result, 1)]
    return "".join(whole).encode("utf-8", "surrogateescape")


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _held(path: Path) -> bytes | None:
    """The bytes of the file, None where there is none.

    Raises:
        MemoryFileError: it cannot be read.
    """
    data = read_bytes(path)
    if data is None and kind_of(path) is not None:
        raise MemoryFileError(f"{path} cannot be read; nothing was changed. Make it readable, then try again.")
    if is_utf16(data or b""):
        raise MemoryFileError(f"{path} is {UTF16}, then try again; nothing was changed.")
    return data
