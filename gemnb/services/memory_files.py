"""Which files are the memory of a project, in which order, and what each gives (FORMAT.md 7)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemnb.services.memory_edit import LARGEST, UTF16, is_utf16, leads_out
from gemnb.services.memory_imports import Imported, Resolver
from gemnb.services.tokens import estimate_tokens
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of

USUAL = "GEMINI.md"


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


def names_of(setting: object) -> list[str]:
    """The names of memory files that `context.fileName` gives, one or a list; the usual one where it gives none.

    A name may lead into a folder, as `.github/rules.md` does, and never out of the one that it is looked for in.
    """
    told = setting if isinstance(setting, list) else [setting]
    names = [os.path.normpath(name.strip()) for name in told if isinstance(name, str) and name.strip()]
    return list(dict.fromkeys(name for name in names if _stays_below(name))) or [USUAL]


def _stays_below(name: str) -> bool:
    path = Path(name)
    return name != "." and not path.is_absolute() and ".." not in path.parts and "\0" not in name


@dataclass(slots=True)
class MemoryReader:
    """Reads the memory files of a project.

    Args:
        root: the project's folder.
        home: the folder that holds `.gemini`.
        folder: the project's folder in the store.
        cwd: the working directory.
        names: the names that memory files have.
        flat: whether imports stand one after another; see `Resolver`.
    """

    root: Path
    home: Path
    folder: Path
    cwd: Path
    names: Sequence[str]
    flat: bool = False
    files: list[MemoryFile] = field(default_factory=list)
    """What was read, in the order of use."""
    skipped: list[str] = field(default_factory=list)
    """What is not used, and why, in sentences."""
    _known: set[tuple[int, int]] = field(default_factory=set)

    @property
    def top(self) -> Path:
        """Where the search begins that goes down to the working directory."""
        return git_root(self.cwd) or self.root

    @property
    def targets(self) -> dict[str, Path]:
        """The file that a fact of each scope goes to."""
        name = self.names[0]
        return {"project": self.root / name, "private": self.private, "global": self.home / ".gemini" / name}

    @property
    def private(self) -> Path:
        """The private memory: `MEMORY.md`, or the older name where only that is there."""
        older, newer = self.folder / "memory" / USUAL, self.folder / "memory" / "MEMORY.md"
        return older if kind_of(newer) is None and kind_of(older) == "file" else newer

    @property
    def within(self) -> dict[str, tuple[Path, ...]]:
        """Where the file of each scope may lie, if it is a link; a person's own global file may lie anywhere."""
        gemini = self.home / ".gemini"
        return {"project": (self.root, self.top, gemini), "private": (gemini, self.folder)}

    def read(self) -> None:
        """Read them all."""
        gemini = self.home / ".gemini"
        for name in self.names:
            self._read("global", gemini / name, gemini)
        self._read("private", self.private, self.folder / "memory")
        between = [self.cwd, *self.cwd.parents]
        for place in reversed(between[: between.index(self.top) + 1]) if self.top in between else [self.root]:
            before = len(self.files)
            for name in self.names:
                path = place / name
                self._read("project", path, git_root(path.parent) or path.parent)
            # Of two names for one file the first counts; those of one folder are given by name, as the client does.
            self.files[before:] = sorted(self.files[before:], key=lambda file: str(file.path))

    def _read(self, scope: str, path: Path, boundary: Path) -> None:
        if not os.path.lexists(path):
            return
        real = Path(os.path.realpath(path))
        try:
            with open_regular(real) as file:
                data = file.read(LARGEST + 1)
                status = os.fstat(file.fileno())
        except (OSError, ValueError) as error:
            self.skipped.append(f"{path}: {getattr(error, 'strerror', None) or 'it is no regular file'}")
            return
        if (status.st_dev, status.st_ino) in self._known:
            self.skipped.append(f"{path}: the same file stands above")
            return
        if len(data) > LARGEST:
            self.skipped.append(f"{path}: larger than {LARGEST:,} bytes")
            return
        if is_utf16(data):
            self.skipped.append(f"{path}: it is {UTF16}")
            return
        self._known.add((status.st_dev, status.st_ino))
        resolver = Resolver(boundary, flat=self.flat)
        text, imports = resolver.resolve(data.decode("utf-8-sig", "replace"), path)
        self.skipped += [f"{path}: {failure}" for failure in resolver.failures]
        out = " out of the project" if leads_out(path, self.within.get(scope, ())) else ""
        link = f" (a link{out} to {real})" if path.is_symlink() else ""
        self.files.append(MemoryFile(path, scope, text, len(data), tuple(imports), link))


def git_root(folder: Path) -> Path | None:
    """The nearest folder upwards that has a `.git`, a file of that name (a worktree) included."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
