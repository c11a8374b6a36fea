"""Projects of the store: registry, slugs, markers, folders from before slugs (FORMAT.md 1)."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gemnb.store.files import create, write_whole
from gemnb.store.journal import open_regular, parse_whole
from gemnb.store.paths import is_session_name, is_slug, kind_of, private_folder, project_hash, store_folder

MARKER = ".project_root"
BASES = ("tmp", "history")
"""Folders of the store with one folder, and a marker in it, for each project."""
LONGEST_MARKER = 4096
"""Bytes of a marker that are read: a path is no longer."""
LARGEST_REGISTRY = 64 * 1024 * 1024
"""Bytes that are read; of a larger one nothing is understood."""
LOCK_STALE_S = 10.0
LOCK_WAIT_S = 15.0
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project of the store."""

    root: str | None
    """Absolute path it was started in; None where nothing tells it."""
    slug: str
    """Name of its folder below `tmp/`; a hash for a folder from before slugs."""
    state: str
    """`ok`, `orphan` (the root is gone or unknown) or `legacy` (from before slugs)."""
    sessions: int
    """Number of session files."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Registry:
    """What `projects.json` holds that can be used."""

    entries: dict[str, str]
    whole: bool
    """Whether all of it was understood; else it is never rewritten."""


class Projects:
    """The projects below one home."""

    def __init__(self, home: Path) -> None:
        self.gemini = home / ".gemini"
        self.tmp = self.gemini / "tmp"
        self._path = self.gemini / "projects.json"

    def registry(self) -> Registry:
        """The registry as it is; good entries of a bad one are kept."""
        try:
            with open_regular(self._path) as file:
                data = file.read(LARGEST_REGISTRY)
        except FileNotFoundError:
            return Registry({}, whole=True)
        except OSError:
            return Registry({}, whole=False)
        if data.strip() in (b"", b"{}"):
            return Registry({}, whole=True)
        raw = parse_whole(data)
        projects = raw.get("projects") if raw else None
        if not isinstance(projects, dict):
            return Registry({}, whole=False)
        good = {root: slug for root, slug in projects.items() if is_slug(slug)}
        return Registry(good, whole=len(good) == len(projects) and not data.startswith(b"\xef\xbb\xbf"))

    def slug(self, root: str) -> str | None:
        """The slug of `root`, or None where the store does not know it; nothing is written."""
        root = os.path.abspath(root)  # noqa: PTH100 - `Path.resolve` would follow links
        slug = self.registry().entries.get(root)
        if slug is not None and self._owner(slug) in (None, root):
            return slug
        marked = (folder for base in BASES for folder in self._folders(base) if read_marker(folder) == root)
        return next((folder.name for folder in marked), None)

    def propose(self, root: str) -> str:
        """The slug that `root` has, or would get."""
        return self.slug(root) or self._free_slug(root, self.registry().entries)

    def claim(self, root: str) -> str:
        """Register `root` and make its folders.

        A registry that could not be read whole is left as it is; the markers hold the claim then.

        Raises:
            OSError: the store cannot be written.
        """
        root = os.path.abspath(root)  # noqa: PTH100
        with self._lock():
            registry = self.registry()
            slug = self.slug(root) or self._free_slug(root, registry.entries)
            while not self._mark(slug, root):
                slug = self._free_slug(root, registry.entries, beyond=slug)
            if registry.whole and registry.entries.get(root) != slug:
                self._write({**registry.entries, root: slug})
        return slug

    def folders(self, root: str) -> tuple[Path, ...]:
        """The folders of `root` that are there: the one of its slug, then the one from before slugs."""
        slug = self.slug(root)
        found = [self.tmp / slug] if slug else []
        found.append(self.tmp / project_hash(root))
        return tuple(folder for folder in found if kind_of(folder) == "folder")

    def all(self) -> list[Project]:
        """Every project of the store, orphans and folders from before slugs too, by name."""
        by_slug = {slug: root for root, slug in self.registry().entries.items()}
        by_hash = {project_hash(root): root for root in by_slug.values()}
        found = []
        for folder in self._folders("tmp"):
            legacy = bool(_HASH.fullmatch(folder.name))
            root = by_hash.get(folder.name) if legacy else read_marker(folder) or by_slug.get(folder.name)
            state = "legacy" if legacy else "ok" if root and os.path.isdir(root) else "orphan"  # noqa: PTH112 - bytes of any kind
            found.append(Project(root, folder.name, state, _count_sessions(folder), folder))
        return found

    def _folders(self, base: str) -> Iterator[Path]:
        if kind_of(self.gemini / base) != "folder":
            return
        try:
            entries = sorted((self.gemini / base).iterdir())
        except OSError:
            return
        yield from (e for e in entries if is_slug(e.name) and kind_of(e) == "folder" and e.name != "bin")

    def _owner(self, slug: str) -> str | None:
        """The root that a marker of `slug` names; an unreadable one belongs to somebody, nobody knows whom."""
        for base in BASES:
            folder = self.gemini / base / slug
            if kind_of(folder / MARKER) is not None:
                return read_marker(folder) or ""
        return None

    def _free_slug(self, root: str, entries: dict[str, str], *, beyond: str | None = None) -> str:
        base = slugify(root)
        taken = set(entries.values()) | ({beyond} if beyond else set())
        number = int(beyond.removeprefix(f"{base}-") or 0) if beyond and beyond != base else 0
        slug = f"{base}-{number}" if number else base
        while slug in taken or self._owner(slug) not in (None, root):
            number += 1
            slug = f"{base}-{number}"
        return slug

    def _mark(self, slug: str, root: str) -> bool:
        """Make folders and markers of `slug`; False where it is another's."""
        new = kind_of(self.tmp / slug) is None
        for base in BASES:
            folder = self.gemini / base / slug
            store_folder(folder, below=self.gemini)
            try:
                create(folder / MARKER, root.encode("utf-8", "surrogateescape"))
            except FileExistsError:
                if read_marker(folder) != root:
                    return False
        older = self.tmp / project_hash(root)
        if new and kind_of(older) == "folder":
            _copy_folder(older, self.tmp / slug)
        return True

    def _write(self, entries: dict[str, str]) -> None:
        text = json.dumps({"projects": entries}, ensure_ascii=False, indent=2)
        write_whole(self._path, text.encode("utf-8", "surrogatepass"))

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """The client's lock: a folder, refreshed by its time, stale after 10 s."""
        private_folder(self.gemini)
        lock = self.gemini / "projects.json.lock"
        deadline = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                lock.mkdir(mode=0o700)
                break
            except FileExistsError:
                try:
                    if time.time() - lock.stat().st_mtime > LOCK_STALE_S:
                        # renamed first, so that of two who find it stale only one takes it away
                        gone = lock.with_name(f"projects.json.lock.{uuid.uuid4().hex}")
                        lock.rename(gone)
                        gone.rmdir()
                        continue
                except FileNotFoundError:
                    continue
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{lock} is held by another program; remove it if none is running.") from None
                time.sleep(0.02)
        try:
            yield
        finally:
            with suppress(OSError):  # taken over as stale by another
                lock.rmdir()


def slugify(root: str) -> str:
    """The slug that a root asks for: its base name, `project` where nothing of it is left."""
    name = re.sub(r"[^a-z0-9]", "-", Path(root).name.lower())
    return re.sub(r"-+", "-", name).removeprefix("-").removesuffix("-") or "project"


def repository_of(root: str) -> Path | None:
    """The `.git` folder that a project's worktree shares with its others; None where `root` is the top of none."""
    if not root:
        return None
    place = Path(root, ".git")
    try:
        if place.is_dir():
            return place.resolve()
        with open_regular(place) as file:
            told = file.readline(LONGEST_MARKER).decode("utf-8", "surrogateescape")
    except (OSError, ValueError):
        return None
    folder = Path(root, told.removeprefix("gitdir:").strip()).resolve()
    return folder.parents[1] if folder.parent.name == "worktrees" else None


def read_marker(folder: Path) -> str | None:
    """The root that the marker in `folder` names: its first line, of a regular file of sane size; else None."""
    try:
        with open_regular(folder / MARKER) as file:
            data = file.read(LONGEST_MARKER + 1)
    except (OSError, ValueError):
        return None
    line, _, rest = data.partition(b"\n")
    if len(data) > LONGEST_MARKER or rest.strip():
        return None
    text = line.decode("utf-8", "surrogateescape").strip()
    return text if (text.startswith("/") and text.isprintable()) or re.match(r"[A-Za-z]:[\\/]", text) else None


def _count_sessions(folder: Path) -> int:
    chats = folder / "chats"
    if kind_of(chats) != "folder":
        return 0
    try:
        return sum(is_session_name(name) for name in os.listdir(chats))  # noqa: PTH208 - names are all it takes
    except OSError:
        return 0


def _copy_folder(source: Path, target: Path) -> None:
    """Copy what is not there yet; links stay behind."""
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if kind_of(Path(folder, name)) == "folder"]
        into = target / Path(folder).relative_to(source)
        into.mkdir(mode=0o700, exist_ok=True)
        for name in names:
            if kind_of(Path(folder, name)) == "file" and kind_of(into / name) is None:
                shutil.copy2(Path(folder, name), into / name)
