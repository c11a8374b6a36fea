"""Memory: the files that every new talk is given, in their order, and facts added to them (FORMAT.md 7 and 8)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemnb.errors import MemoryFileError, MomentaryFactError
from gemnb.services.memory_imports import Imported, Resolver
from gemnb.services.memory_inbox import Inbox, apply_proposal, pick, read_inbox
from gemnb.services.tokens import estimate_tokens
from gemnb.store.files import write_whole
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of, private_folder

BOM = b"\xef\xbb\xbf"
LARGEST = 2_000_000
"""Bytes of a memory file; a larger one is skipped and named."""
SCOPES = ("project", "private", "global")
_MOMENTARY = (
    (r"\bline \d+\b|\b\w+\.\w+:\d+\b|第\s*\d+\s*行|\d+\s*行目", "it names a line number"),
    (r"\b(right now|currently|at the moment|today|just now)\b|现在|目前|今天|今日|いま|現在", "it speaks of now"),
    (r"\b(is|are|keeps?) (still )?failing\b|\bfails (now|again)\b|まだ失敗|正在失败", "it tells a passing failure"),
    (r"(?:^|[\s\"'(])/(?:tmp|var/folders)/|\bTMPDIR\b", "it names a temporary path"),
    (r"\b(pid|process id)\s*[:=]?\s*\d+", "it names a process"),
    (r"\b20\d\d-\d\d-\d\d\b", "it names a date"),
)  # fmt: skip


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

    @property
    def tokens(self) -> int:
        """Estimated tokens of its text."""
        return estimate_tokens([{"text": self.text}])

    @property
    def section(self) -> str:
        """As the model is given it."""
        return f"--- Context from: {self.path} ---\n{self.text.strip()}\n--- End of Context from: {self.path} ---"

    def __str__(self) -> str:
        return f"{self.scope}: {self.path} ({self.size_bytes:,} bytes, about {self.tokens:,} tokens)"


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

    def inbox(self) -> Inbox:
        """The changes that were proposed and wait for a person."""
        return read_inbox(self.folder)

    def apply(self, number: int | str) -> list[Path]:
        """Make the change that a proposal asks for; the files that were changed.

        Raises:
            MemoryFileError: there is none of that number, or it is not to be had; nothing was changed then.
        """
        allowed = {"private": [self.targets["private"], self.folder], "global": [self.targets["global"]]}
        return apply_proposal(pick(self.inbox(), number), allowed)

    def dismiss(self, number: int | str) -> None:
        """Throw a proposal away.

        Raises:
            MemoryFileError: there is none of that number.
        """
        pick(self.inbox(), number).path.unlink()

    @property
    def text(self) -> str:
        """Everything that the model is given, in its order."""
        return "\n\n".join(file.section for file in self.files)

    def add(self, fact: str, scope: str = "project", *, force: bool = False) -> Path:
        """Add a fact to the file of `scope`, once; every other byte stays. The path of that file.

        Raises:
            MomentaryFactError: it looks as if it would not stay true, and `force` was not said.
            MemoryFileError: no such scope; the file is not one; or another program changed it since it was read.
        """
        line = " ".join(fact.split())
        if scope not in self.targets or not line:
            raise MemoryFileError(f"A fact and one of {', '.join(SCOPES)} are wanted, not {scope!r} and {fact!r}.")
        if not force and (why := momentary(line)):
            raise MomentaryFactError(
                f"{line!r} looks momentary: {why}. It belongs to the session; --force keeps it here."
            )
        path = self.targets[scope]
        held = _bytes_of(path)
        if held != self.seen.get(path):
            raise MemoryFileError(
                f"{path} was changed since it was read: look at it with `%memory reload`, then add again."
            )
        changed = with_fact(held, line)
        if changed != held:
            _write(path, changed, held)
            self.seen[path] = changed
        return path

    def __str__(self) -> str:
        lines = [str(file) for file in self.files] or ['No memory files yet: `%memory add "..."` makes one.']
        return "\n".join([*lines, *(f"skipped: {why}" for why in self.skipped)])


def momentary(fact: str) -> str | None:
    """Why `fact` looks as if it would not stay true; None where it does not."""
    return next((why for pattern, why in _MOMENTARY if re.search(pattern, fact, re.IGNORECASE)), None)


def with_fact(held: bytes | None, line: str) -> bytes:
    """`held` with a list item for `line` at its end, in the file's own line ends; unchanged where it has it."""
    data = held or b""
    item = f"- {line}".encode("utf-8", "replace")
    end = b"\r\n" if b"\r\n" in data else b"\n"
    if item in (existing.strip() for existing in data.removeprefix(BOM).split(b"\n")):
        return data
    gap = b"" if not data.removeprefix(BOM) or data.endswith(b"\n") else end
    return data + gap + item + end


def load_memory(
    root: Path, home: Path, folder: Path, *, cwd: Path | None = None, names: Sequence[str] = ("GEMINI.md",)
) -> Memory:
    """Read the memory of the project `root`.

    Args:
        root: the project's folder.
        home: the folder that holds `.gemini`.
        folder: the project's folder in the store; it may not be there yet.
        cwd: the working directory; by default the root.
        names: the file names that the settings give.
    """
    skipped: list[str] = []
    files: list[MemoryFile] = []
    read: set[str] = set()
    top = git_root(cwd or root) or root
    for scope, path, boundary in _places(root, home, folder, cwd or root, top, names):
        file = _read(scope, path, boundary, read, skipped)
        if file is not None:
            files.append(file)
    targets = {
        "project": root / names[0],
        "private": _private(folder),
        "global": home / ".gemini" / names[0],
    }
    seen = {path: _bytes_of(path) for path in targets.values()}
    return Memory(tuple(files), tuple(skipped), targets, seen, folder / "memory")


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


def _read(scope: str, path: Path, boundary: Path, read: set[str], skipped: list[str]) -> MemoryFile | None:
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
    resolver = Resolver(boundary)
    text, imports = resolver.resolve(data.decode("utf-8-sig", "replace"), path)
    skipped += [f"{path}: {failure}" for failure in resolver.failures]
    return MemoryFile(path, scope, text, len(data), tuple(imports))


def git_root(folder: Path) -> Path | None:
    """The nearest folder upwards that has a `.git`, a file of that name (a worktree) included."""
    return next((place for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)


def _bytes_of(path: Path) -> bytes | None:
    try:
        with open_regular(Path(os.path.realpath(path))) as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _write(path: Path, data: bytes, held: bytes | None) -> None:
    """Put `data` in the place of the file, whole or not at all; a link to it stays a link."""
    real = Path(os.path.realpath(path))
    kind = kind_of(real)
    if kind not in (None, "file"):
        raise MemoryFileError(f"{path} is no file; nothing was written.")
    if kind and held is None:  # it would be replaced by the fact alone
        raise MemoryFileError(f"{path} cannot be read, so nothing was added: make it readable, then add again.")
    try:
        private_folder(real.parent)
        mode = real.stat().st_mode & 0o777 if held is not None else 0o600
        write_whole(real, data, mode=mode)
    except OSError as error:
        raise MemoryFileError(f"{path} could not be written: {error.strerror}; nothing was changed.") from None
