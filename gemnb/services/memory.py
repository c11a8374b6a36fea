"""Memory: the files that every new talk is given, in their order, and facts added to them (FORMAT.md 7 and 8)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from gemnb.errors import MemoryFileError
from gemnb.services.memory_edit import LARGEST, add_fact, leads_out, read_bytes
from gemnb.services.memory_imports import Imported, Resolver
from gemnb.services.memory_inbox import Inbox, Proposal, apply_proposal, dismiss_proposal, pick, read_inbox, visible
from gemnb.services.memory_propose import note_dismissal, refit
from gemnb.services.tokens import estimate_tokens
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of

SCOPES = ("project", "private", "global")


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One file that is in use."""

    path: Path
    scope: str
    """`global`, `private` or `project`."""
    text: str
    """Imports in their place."""
    size_bytes: int
    imports: tuple[Imported, ...] = ()
    link: str = ""
    """Where it really is, in words, if it is a link."""

    @property
    def tokens(self) -> int:
        """Estimated tokens of its text."""
        return estimate_tokens([{"text": self.text}])

    @property
    def section(self) -> str:
        """As the model is given it."""
        return f"--- Context from: {self.path} ---\n{self.text.strip()}\n--- End of Context from: {self.path} ---"

    def __str__(self) -> str:
        return f"{self.scope}: {self.path}{self.link} ({self.size_bytes:,} bytes, about {self.tokens:,} tokens)"


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
    names: Sequence[str] = ("GEMINI.md",),
    flat: bool = False,
    shown: list[Proposal] | None = None,
) -> Memory:
    """Read the memory of the project `root`.

    Args:
        root: the project's folder.
        home: the folder that holds `.gemini`.
        folder: the project's folder in the store; it may not be there yet.
        cwd: the working directory; by default the root.
        names: the file names that the settings give.
        flat: whether imports stand one after another; see `Resolver`.
        shown: keeps the numbers that a person was last shown from one reading to the next.
    """
    skipped: list[str] = []
    files: list[MemoryFile] = []
    read: set[str] = set()
    top = git_root(cwd or root) or root
    gemini = home / ".gemini"
    within = {"project": (root, top, gemini), "private": (gemini, folder)}
    for scope, path, boundary in _places(root, home, folder, cwd or root, top, names):
        file = _read(scope, path, boundary, within.get(scope, ()), read, skipped, flat=flat)
        if file is not None:
            files.append(file)
    targets = {
        "project": root / names[0],
        "private": _private(folder),
        "global": gemini / names[0],
    }
    seen = {path: read_bytes(Path(os.path.realpath(path))) for path in targets.values()}
    numbered = [] if shown is None else shown
    return Memory(tuple(files), tuple(skipped), targets, seen, folder / "memory", within, numbered)


def _places(
    root: Path, home: Path, folder: Path, cwd: Path, top: Path, names: Sequence[str]
) -> Iterator[tuple[str, Path, Path]]:
    """Scope, path and boundary of imports of each file that may be there, in the order of use."""
    gemini = home / ".gemini"
    yield from (("global", gemini / name, gemini) for name in names)
    yield "private", _private(folder), folder / "memory"
    between = [cwd, *cwd.parents]
    downwards = reversed(between[: between.index(top) + 1]) if top in between else [root]
    yield from (("project", place / name, top) for place in downwards for name in names)


def _private(folder: Path) -> Path:
    """The private memory: `MEMORY.md`, or the older name where only that is there."""
    older = folder / "memory" / "GEMINI.md"
    newer = folder / "memory" / "MEMORY.md"
    return older if kind_of(newer) is None and kind_of(older) == "file" else newer


def _read(
    scope: str, path: Path, boundary: Path, within: Sequence[Path], read: set[str], skipped: list[str], *, flat: bool
) -> MemoryFile | None:
    if not os.path.lexists(path):
        return None
    real = Path(os.path.realpath(path))
    try:
        with open_regular(real) as file:
            data = file.read(LARGEST + 1)
            status = os.fstat(file.fileno())
    except (OSError, ValueError) as error:
        skipped.append(f"{path}: {getattr(error, 'strerror', None) or 'it is no regular file'}")
        return None
    same = f"{status.st_dev}:{status.st_ino}"
    if same in read:
        skipped.append(f"{path}: the same file stands above")
        return None
    if len(data) > LARGEST:
        skipped.append(f"{path}: larger than {LARGEST:,} bytes")
        return None
    read.add(same)
    resolver = Resolver(boundary, flat=flat)
    text, imports = resolver.resolve(data.decode("utf-8-sig", "replace"), path)
    skipped += [f"{path}: {failure}" for failure in resolver.failures]
    out = " out of the project" if leads_out(path, within) else ""
    link = f" (a link{out} to {real})" if path.is_symlink() else ""
    return MemoryFile(path, scope, text, len(data), tuple(imports), link)


def git_root(folder: Path) -> Path | None:
    """The nearest folder upwards that has a `.git`, a file of that name (a worktree) included."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
