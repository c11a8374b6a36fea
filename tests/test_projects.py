"""Registry, slugs, markers: nothing is lost, nothing written over that was not understood."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import pytest

from gemnb.store.projects import Projects, slugify


@pytest.mark.parametrize(
    ("root", "slug"),
    [
        ("/a/My App", "my-app"),
        ("/a/日本語", "project"),
        ("/", "project"),
        ("/a/--x--", "x"),
        ("/a/a__b", "a-b"),
        ("/a/.dot", "dot"),
    ],
)
def test_slugify(root: str, slug: str) -> None:
    assert slugify(root) == slug


def test_a_claim_is_registered_and_marked(home: Path) -> None:
    projects = Projects(home)

    assert projects.claim("/srv/app") == "app" and projects.claim("/other/app") == "app-1"

    registry = json.loads((home / ".gemini/projects.json").read_text())
    assert registry == {"projects": {"/srv/app": "app", "/other/app": "app-1"}}
    assert (home / ".gemini/tmp/app-1/.project_root").read_text() == "/other/app"
    assert (home / ".gemini/history/app-1/.project_root").read_text() == "/other/app"
    assert not (home / ".gemini/projects.json.lock").exists()
    assert (home / ".gemini/projects.json").stat().st_mode & 0o777 == 0o600
    assert (home / ".gemini/tmp/app").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("root", ["/srv/app/", "/srv//app", "/srv/x/../app", "/srv/./app"])
def test_a_root_is_the_same_in_any_spelling(home: Path, root: str) -> None:
    projects = Projects(home)
    projects.claim("/srv/app")

    assert projects.slug(root) == projects.claim(root) == "app"
    assert json.loads((home / ".gemini/projects.json").read_text()) == {"projects": {"/srv/app": "app"}}


@pytest.mark.parametrize("base", ["tmp", "history"])
def test_a_lost_registry_is_made_up_for_by_the_markers(home: Path, base: str) -> None:
    marker = home / ".gemini" / base / "kept/.project_root"
    marker.parent.mkdir(parents=True)
    marker.write_text("/srv/app")

    assert Projects(home).slug("/srv/app") == Projects(home).claim("/srv/app") == "kept"


@pytest.mark.parametrize("text", ["", " \n", "{}"])
def test_a_registry_that_holds_nothing_is_written(home: Path, text: str) -> None:
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini/projects.json").write_text(text)

    Projects(home).claim("/srv/app")

    assert json.loads((home / ".gemini/projects.json").read_text()) == {"projects": {"/srv/app": "app"}}


@pytest.mark.parametrize(
    "text", ["{cut", "[]", "null", '{"projects": {"/a": "Bad_Slug", "/b": "good"}}', '{"projects": 5}']
)
def test_a_registry_that_was_not_understood_is_left_as_it_is(home: Path, text: str) -> None:
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini/projects.json").write_text(text)

    assert Projects(home).claim("/srv/new") == "new"
    assert (home / ".gemini/projects.json").read_text() == text
    assert Projects(home).slug("/srv/new") == "new"


@pytest.mark.parametrize("slug", ["..", "../x", "a/b", "A", "", "x\0", 5, None])
def test_a_hostile_slug_leads_nowhere(home: Path, slug: object) -> None:
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini/projects.json").write_text(json.dumps({"projects": {"/srv/app": slug}}))

    assert Projects(home).slug("/srv/app") is None
    assert Projects(home).folders("/srv/app") == ()


def test_a_stale_lock_is_taken_over(home: Path) -> None:
    lock = home / ".gemini/projects.json.lock"
    lock.mkdir(parents=True)
    old = time.time() - 60
    os.utime(lock, (old, old))

    assert Projects(home).claim("/srv/app") == "app" and not lock.exists()


def _claim(home: str, number: int) -> None:
    Projects(Path(home)).claim(f"/srv/{number % 4}/app{number // 4}")


def test_eight_processes_at_once_lose_nothing(home: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path = home / ".gemini/projects.json"
    seen: set[int] = set()
    with context.Pool(8) as pool:
        claims = pool.starmap_async(_claim, [(str(home), n) for n in range(16)])
        while not claims.ready():
            if path.exists():  # whole at every moment: another program may read it now
                seen.add(len(json.loads(path.read_text())["projects"]))
        claims.get()

    assert seen, "nobody looked while it was written"
    registry = json.loads((home / ".gemini/projects.json").read_text())["projects"]
    assert len(registry) == 16 and len(set(registry.values())) == 16


def test_every_project_is_listed_orphans_too(home: Path, root: Path) -> None:
    projects = Projects(home)
    projects.claim(str(root))
    projects.claim("/gone/away")
    (home / ".gemini/tmp" / ("ab" * 32) / "chats").mkdir(parents=True)
    (home / ".gemini/tmp/linked").symlink_to("/etc")

    assert {(p.slug, p.state) for p in projects.all()} == {("app", "ok"), ("away", "orphan"), ("ab" * 32, "legacy")}
