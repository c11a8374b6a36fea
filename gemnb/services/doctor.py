"""What is found on a machine, and what to do where something is wrong; nothing is changed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from gemnb.services.genai import KEY_NAMES
from gemnb.store import last_cleaning
from gemnb.store.index import Index
from gemnb.store.paths import home_folder, index_file, own_folder
from gemnb.store.projects import Projects
from gemnb.store.rows import rows_version
from gemnb.store.settings import load_settings
from gemnb.store.trash import Trash

PACKAGES = ("gemnb", "ipython", "ipykernel", "ipywidgets", "jupyterlab", "pandas", "google-genai")


WIDGETS = ("ipywidgets", "anywidget")
LAB_WIDGETS = Path("share/jupyter/labextensions/@jupyter-widgets/jupyterlab-manager")
LEAST_FREE = 50_000_000
"""Bytes on the disk below which a talk may soon not be recorded."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    told: str
    well: bool = True
    advice: str = ""

    def __str__(self) -> str:
        mark = "ok  " if self.well else "BAD "
        return f"{mark}{self.name}: {self.told}" + (f" -> {self.advice}" if self.advice else "")


def examine(root: Path, environ: Mapping[str, str]) -> list[Finding]:
    """Look at store, projects, settings, key and versions, as gemnb would use them in the folder `root`."""
    home = home_folder(environ)
    return [
        *_store(home),
        *_projects(home, str(root)),
        *_settings(home, str(root), environ),
        _key(environ),
        _recording(home, str(root)),
        _index(),
        _retention(home, environ),
        *_widgets(),
        *_versions(),
    ]


def _store(home: Path) -> Iterator[Finding]:
    store = home / ".gemini"
    if not store.is_dir():
        yield Finding("store", f"{store} is not there yet", advice="it is made with your first prompt")
    elif not os.access(store, os.R_OK | os.X_OK):
        yield Finding("store", f"{store} cannot be read", well=False, advice="look at who owns it")
    elif not os.access(store, os.W_OK):
        yield Finding("store", f"{store} cannot be written", well=False, advice="talks would not be recorded")
    else:
        yield Finding("store", str(store))


def _projects(home: Path, root: str) -> Iterator[Finding]:
    projects = Projects(home)
    found = projects.all()
    sessions = sum(project.sessions for project in found)
    yield Finding(
        "projects",
        f"{len(found)}, with {sessions} session files; this one is {projects.slug(root) or 'not among them yet'}",
    )
    if not projects.registry().whole:
        yield Finding(
            "registry",
            "projects.json could not be read whole",
            well=False,
            advice="its good entries are used; mend or remove it",
        )


def _settings(home: Path, root: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    settings = load_settings(home, root, environ=environ)
    for setting in settings.explain():
        yield Finding("setting", str(setting))
    for problem in settings.problems:
        yield Finding("settings", problem, well=False, advice="mend the file")


def _key(environ: Mapping[str, str]) -> Finding:
    name = next((name for name in KEY_NAMES if environ.get(name)), None)
    if name or environ.get("GOOGLE_GENAI_USE_VERTEXAI"):
        return Finding("key", f"{name or 'Vertex AI'} is set")
    return Finding("key", "none", advice="set GEMINI_API_KEY to talk; looking at sessions needs none")


def _recording(home: Path, root: str) -> Finding:
    """Whether a talk of this project could be recorded, as far as that shows without writing."""
    store = home / ".gemini"
    slug = Projects(home).slug(root)
    chats = store / "tmp" / slug / "chats" if slug else store / "tmp"
    there = next(folder for folder in (chats, *chats.parents) if folder.exists())
    if not there.is_dir():
        return Finding("recording", f"{there} is no folder", well=False, advice="move it away; talks are not recorded")
    if not os.access(there, os.W_OK | os.X_OK):
        return Finding("recording", f"{there} cannot be written", well=False, advice="talks would not be recorded")
    free = shutil.disk_usage(there).free
    if free < LEAST_FREE:
        told = f"{free:,} bytes are free in {there}"
        return Finding("recording", told, well=False, advice="make room: talks go on unrecorded on a full disk")
    return Finding("recording", f"talks are kept in {chats}")


def _retention(home: Path, environ: Mapping[str, str]) -> Finding:
    """What the last cleaning did, and what of it can be brought back."""
    own = own_folder(home, environ)
    last = last_cleaning.read(own)
    held = len(Trash(own / "trash", store=home / ".gemini" / "tmp", clock=lambda: datetime.now(UTC)).entries())
    told = f"last applied {last}" if last else "never applied from here"
    return Finding("retention", f"{told}; the trash {own / 'trash'} holds {held} deletions")


def _index() -> Finding:
    """What listings remember; nothing is lost where they cannot."""
    path = index_file()
    known = Index(path, version=rows_version()).count()
    if known is not None:
        return Finding("index", f"{path} knows {known} session files; it may be deleted at any time")
    there = next(folder for folder in path.parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding(
            "index", f"{there} cannot be written", advice="each listing reads every file, as it does without"
        )
    return Finding("index", f"{path} is not there yet", advice="it is made with the first listing")


def _widgets() -> Iterator[Finding]:
    """Whether the front end has what it needs to show the session browser."""
    for name in WIDGETS:
        if find_spec(name) is None:
            yield Finding("widgets", f"{name} is not installed", well=False, advice=f"pip install {name}")
            return
    folders = [Path(folder) for folder in (sys.prefix, sys.base_prefix)]
    extension = next((f for f in folders if (f / LAB_WIDGETS).is_dir()), None)
    if extension is None:
        advice = "pip install jupyterlab_widgets where JupyterLab runs, if the browser shows as a table only"
        yield Finding("widgets", "JupyterLab's part is not in this environment", advice=advice)
    else:
        yield Finding("widgets", "anywidget and JupyterLab's part are there")


def _versions() -> Iterator[Finding]:
    for package in PACKAGES:
        try:
            yield Finding("version", f"{package} {version(package)}")
        except PackageNotFoundError:
            must = package not in ("jupyterlab", "ipykernel")
            yield Finding("version", f"{package} is not installed", well=not must, advice=f"pip install {package}")
