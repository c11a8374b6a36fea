"""Suggestions as patches in the inbox, in the client's own form; those that wait are kept fitting."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemnb.errors import MemoryFileError
from gemnb.model.shown import clean_line
from gemnb.services.audit_facts import normal
from gemnb.services.memory_edit import changing
from gemnb.services.memory_inbox import Proposal, read_inbox
from gemnb.services.memory_patch import NEW
from gemnb.store.files import create, write_whole
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of

DISMISSED = "dismissed.txt"
"""In the inbox: the suggestions that a person threw away, a line each; they are not made again."""
_OURS = re.compile(r"suggested-([0-9]{4,})-[0-9a-f]{8}\.patch")


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a suggestion comes from."""

    session_id: str
    message_id: str

    def __str__(self) -> str:
        return f"session {clean_line(self.session_id)}, message {clean_line(self.message_id)}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A fact that may be worth keeping."""

    fact: str
    kind: str
    """`command`, `preference`, `correction`; or `model`, where only the model found it."""
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{self.fact}\n" + "\n".join(f"  from {source}" for source in self.sources)


def propose(suggestions: Sequence[Suggestion], folder: Path, target: Path, *, known: Iterable[str] = ()) -> list[Path]:
    """Write each suggestion as a patch of `target` into the inbox of the memory folder; the paths of the patches.

    Each fits whether or not the others are applied before it. What `target` holds, waits or was dismissed is left out.

    Args:
        suggestions: in the order in which they are to be listed.
        folder: the project's memory folder.
        target: the private memory file.
        known: texts of other memory files, whose lines need not be told again.

    Raises:
        MemoryFileError: the inbox cannot be written.
    """
    place = folder / ".inbox" / "private"
    for part in (folder, folder / ".inbox", place):
        if kind_of(part) not in (None, "folder"):
            raise MemoryFileError(f"{part} is no folder; nothing was proposed. Move it away, then try again.")
    if not suggestions:
        refit(folder, target)
        return []
    held = text_of(target)
    told = {normal(line.strip(" \t-*")) for text in (held, *known) for line in text.splitlines()}
    told |= {normal(_fact(p)) for p in _waiting(folder)} | {*text_of(folder / ".inbox" / DISMISSED).split("\n")}
    written: list[Path] = []
    with changing([folder, place], place):
        number = max((int(match[1]) for p in place.iterdir() if (match := _OURS.fullmatch(p.name))), default=0)
        for suggestion in suggestions:
            if normal(suggestion.fact) in told:
                continue
            told.add(normal(suggestion.fact))
            number += 1
            path = place / f"suggested-{number:04}-{uuid.uuid4().hex[:8]}.patch"
            create(path, patch_for(suggestion, held, target).encode("utf-8", "replace"))
            written.append(path)
    refit(folder, target)
    return written


def patch_for(suggestion: Suggestion, held: str, target: Path) -> str:
    """A unified diff that adds the fact after the last line of `held`, with its sources before the headers."""
    sources = "".join(f"# from {source}\n" for source in suggestion.sources)
    return sources + _diff(suggestion.fact, held, str(target), target)


def _diff(fact: str, held: str, source: str, target: Path) -> str:
    lines = held.removesuffix("\n").split("\n")
    end = "\r\n" if lines[-1].endswith("\r") else "\n"
    # A last line that lacks its end is told without the mark for it: with the mark only the first of several fits.
    start, context = ("0,0 +1", "") if not held else (f"{len(lines)} +{len(lines)},2", f" {lines[-1]}\n")
    hunk = f"@@ -{start} @@\n{context}+- {fact}{end}"
    return f"--- {source}\n+++ {target}\n{hunk}"


def refit(folder: Path, target: Path) -> None:
    """Write the suggestions that wait anew, so that each fits `target` as it is now.

    Where there is no such file, the first one makes it, as the client wants it: one patch is for a new file, the
    others, which are applied after it, for one that is there.

    Raises:
        MemoryFileError: one cannot be written.
    """
    waiting = _waiting(folder)
    if not waiting:
        return
    held = text_of(target)
    inbox = read_inbox(folder)
    made = kind_of(target) is not None or any(
        f"--- {NEW}\n+++ {target}\n" in p.patch for p in inbox if not _OURS.fullmatch(p.path.name)
    )
    with changing([folder], folder):
        for proposal in waiting:
            head = re.split("^--- ", proposal.patch, maxsplit=1, flags=re.MULTILINE)[0]
            if fact := _fact(proposal):
                told = head + _diff(fact, held, str(target) if made else NEW, target)
                made = True
                if told != proposal.patch:
                    write_whole(proposal.path, told.encode("utf-8", "replace"))


def note_dismissal(proposal: Proposal, folder: Path) -> None:
    """Keep in mind that a person does not want what was suggested.

    Raises:
        MemoryFileError: it cannot be written.
    """
    if _OURS.fullmatch(proposal.path.name):
        path = folder / ".inbox" / DISMISSED
        with changing([path.parent], path):
            told = sorted({*text_of(path).split("\n"), normal(_fact(proposal))} - {""})
            write_whole(path, "".join(f"{line}\n" for line in told).encode("utf-8", "replace"))


def _waiting(folder: Path) -> list[Proposal]:
    return [p for p in read_inbox(folder) if p.kind == "private" and _OURS.fullmatch(p.path.name) and not p.problem]


def _fact(proposal: Proposal) -> str:
    """The fact that a suggestion adds: its last line."""
    added = [line[3:].strip() for line in proposal.patch.split("\n") if line.startswith("+- ")]
    return added[-1] if added else ""


def text_of(path: Path) -> str:
    """The text of a file; empty where there is none that can be read."""
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
