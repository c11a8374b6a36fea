"""Memory: what every new talk is given, and what a person does with it: add a fact, decide on a proposal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gemnb.errors import MemoryFileError
from gemnb.model.shown import visible
from gemnb.services.memory_edit import add_fact, read_bytes
from gemnb.services.memory_files import USUAL, MemoryFile, MemoryReader
from gemnb.services.memory_inbox import Inbox, Proposal, apply_proposal, dismiss_proposal, pick, read_inbox
from gemnb.services.memory_propose import note_dismissal, refit

SCOPES = ("project", "private", "global")


class MemoryText(str):
    """What the model is given; shown line by line, and what cannot be seen is written out then."""

    __slots__ = ()

    def __repr__(self) -> str:
        return visible(self)


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one project, as it was read."""

    files: tuple[MemoryFile, ...]
    skipped: tuple[str, ...]
    """What is not used, and why, in sentences."""
    targets: dict[str, Path] = field(default_factory=dict)
    """The file that a fact of each scope goes to."""
    seen: dict[Path, bytes | None] = field(default_factory=dict, repr=False)
    """The bytes of each target when it was read; None where there was no file."""

    folder: Path = Path()
    """The project's private memory folder."""
    within: dict[str, tuple[Path, ...]] = field(default_factory=dict, repr=False)
    """Where the file of each scope may lie, if it is a link; a person's own global file may lie anywhere."""
    shown: list[Proposal] = field(default_factory=list, repr=False)
    """The proposals as they were numbered when a person last looked."""

    def inbox(self, *notes: str) -> Inbox:
        """The changes that were proposed and wait for a person; `apply` and `dismiss` take their numbers.

        Args:
            notes: sentences to show beside them.
        """
        found = Inbox(read_inbox(self.folder), notes)
        self.shown[:] = found
        return found

    def apply(self, number: int | str) -> list[Path]:
        """Make the change that a proposal asks for; the files that were changed. Those left are numbered anew.

        Raises:
            MemoryFileError: there is none of that number, it is not as it was shown, or it is not to be had; nothing
                was changed then.
        """
        allowed = {"private": [self.targets["private"], self.folder], "global": [self.targets["global"]]}
        done = apply_proposal(self._picked(number), allowed, self.folder)
        self._number_anew()
        return done

    def dismiss(self, number: int | str) -> None:
        """Throw a proposal away. Those left are numbered anew.

        Raises:
            MemoryFileError: there is none of that number, it is not as it was shown, or it cannot be removed.
        """
        proposal = self._picked(number)
        dismiss_proposal(proposal, self.folder)
        with suppress(MemoryFileError):  # it is gone; at worst it is suggested again
            note_dismissal(proposal, self.folder)
        self._number_anew()

    def _number_anew(self) -> None:
        with suppress(MemoryFileError):  # what could not be made to fit again says so when it is applied
            refit(self.folder, self.targets["private"])
        self.inbox()

    def _picked(self, number: int | str) -> Proposal:
        return pick(self.shown or self.inbox(), number)

    @property
    def text(self) -> MemoryText:
        """Everything that the model is given, in its order."""
        return MemoryText("\n\n".join(file.section for file in self.files if file.text.strip()))

    def add(self, fact: str, scope: str = "project", *, force: bool = False) -> Path:
        """Add a fact to the file of `scope`, once; every other byte stays. The path of that file.

        Raises:
            MomentaryFactError: it looks as if it would not stay true, and `force` was not said.
            MemoryFileError: no such scope; the file is not one, a link out of the project, or too long to be read; or
                another program changed it since it was read.
        """
        line = " ".join(fact.split())
        if scope not in self.targets or not line:
            raise MemoryFileError(
                f"No fact {fact!r} for the scope {scope!r}: give a text, and one of {', '.join(SCOPES)}."
            )
        path = self.targets[scope]
        self.seen[path] = add_fact(path, line, seen=self.seen.get(path), within=self.within.get(scope, ()), force=force)
        return path

    def __str__(self) -> str:
        lines = [str(file) for file in self.files] or ['No memory files yet: `%memory add "..."` makes one.']
        return "\n".join(map(visible, [*lines, *(f"skipped: {why}" for why in self.skipped)]))


def load_memory(
    root: Path,
    home: Path,
    folder: Path,
    *,
    cwd: Path | None = None,
    names: Sequence[str] = (USUAL,),
    flat: bool = False,
    shown: list[Proposal] | None = None,
) -> Memory:
    """Read the memory of the project `root`.

    Args:
        root: the project's folder.
        home: the folder that holds `.gemini`.
        folder: the project's folder in the store; it may not be there yet.
        cwd: the working directory; by default the root.
        names: the names that memory files have; see `names_of`.
        flat: whether imports stand one after another; see `Resolver`.
        shown: keeps the numbers that a person was last shown from one reading to the next.
    """
    reader = MemoryReader(root, home, folder, cwd or root, names, flat)
    reader.read()
    seen = {path: read_bytes(Path(os.path.realpath(path))) for path in reader.targets.values()}
    numbered = [] if shown is None else shown
    return Memory(
        tuple(reader.files), tuple(reader.skipped), reader.targets, seen, folder / "memory", reader.within, numbered
    )
