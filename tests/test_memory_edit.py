"""Facts added exactly: through links, by kernels at once, to files that are too long, on a disk that fails."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import pytest
from failing_disk import ERRORS, Disk
from hypothesis import given, settings
from hypothesis import strategies as st
from support import held

import gemnb
from gemnb.errors import MemoryFileError
from gemnb.services.memory_edit import momentary

FACT = "Tables are tab separated"


@pytest.mark.parametrize("there", [True, False], ids=["a-file", "nothing"])
def test_a_link_out_of_the_project_is_named_and_never_written_through(
    ws: gemnb.Workspace, root: Path, tmp_path: Path, there: bool
) -> None:
    outside = tmp_path / "elsewhere.md"
    if there:
        outside.write_text("- another's\n")
    (root / "GEMINI.md").symlink_to(outside)

    with pytest.raises(MemoryFileError, match=r"a link out of the project.*--scope private"):
        ws.memory().add(FACT)

    assert outside.exists() == there and (root / "GEMINI.md").is_symlink()
    assert str(outside) in str(ws.memory()) or not there
    assert not there or "a link out of the project" in str(ws.memory())


@pytest.mark.parametrize("place", ["project", "repository", "home", "dotfiles"])
def test_a_link_to_a_place_of_the_persons_own_is_written_through_and_stays_a_link(
    home: Path, tmp_path: Path, place: str
) -> None:
    repository = tmp_path / "work"
    root = repository / "app"
    (repository / ".git").mkdir(parents=True)
    (home / ".gemini").mkdir(parents=True)
    root.mkdir()
    scope = "global" if place == "dotfiles" else "project"
    link = home / ".gemini/GEMINI.md" if place == "dotfiles" else root / "GEMINI.md"
    told = {
        "project": root / "AGENTS.md",
        "repository": repository / "AGENTS.md",
        "home": home / ".gemini/shared.md",
        "dotfiles": tmp_path / "dotfiles.md",
    }[place]
    told.write_text("- one\n")
    link.symlink_to(os.path.relpath(told, link.parent))

    gemnb.open_workspace(root, home=home).memory().add(FACT, scope=scope)

    assert told.read_text() == f"- one\n- {FACT}\n" and link.is_symlink()
    assert f"(a link to {told})" in str(gemnb.open_workspace(root, home=home).memory())


@pytest.mark.parametrize("size", [2_000_001, 1_999_999])
def test_nothing_is_added_to_a_file_that_would_be_too_long_to_be_read(
    ws: gemnb.Workspace, root: Path, size: int
) -> None:
    (root / "GEMINI.md").write_bytes(b"x" * size)

    with pytest.raises(MemoryFileError, match="given to no talk"):
        ws.memory().add(FACT)
    assert (root / "GEMINI.md").stat().st_size == size


def test_permissions_stay(ws: gemnb.Workspace, root: Path) -> None:
    path = root / "GEMINI.md"
    path.write_text("- one\n")
    path.chmod(0o664)
    before = os.umask(0o077)
    try:
        ws.memory().add(FACT)
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o664


def _add(root: str, home: str, worker: int, scope: str) -> list[str]:
    """What a kernel would see: each fact is tried until it is in, and each refusal says why."""
    refused = []
    for number in range(6):
        while True:
            try:
                gemnb.open_workspace(root, home=home).memory().add(f"Rule {worker}-{number}", scope=scope)
                break
            except MemoryFileError as error:
                refused.append(str(error))
    return refused


@pytest.mark.parametrize("scope", ["project", "private"])
def test_kernels_that_add_at_once_lose_no_fact(home: Path, root: Path, scope: str) -> None:
    with multiprocessing.get_context("spawn").Pool(8) as pool:
        refused = pool.starmap(_add, [(str(root), str(home), worker, scope) for worker in range(8)])

    path = gemnb.open_workspace(root, home=home).memory().targets[scope]
    assert sorted(path.read_text().splitlines()) == sorted(f"- Rule {w}-{n}" for w in range(8) for n in range(6))
    assert all("was changed since it was read" in told for worker in refused for told in worker)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc")), max_size=12))
def test_however_looks_and_additions_follow_no_fact_is_lost_or_doubled(steps: list[tuple[int, str]]) -> None:
    """Three kernels look (`a`) and add; what was taken is in the file, once, and what was not was refused."""
    with tempfile.TemporaryDirectory() as folder:
        root, home = Path(folder, "work"), Path(folder, "home")
        root.mkdir()
        ws = gemnb.open_workspace(root, home=home)
        looked = [ws.memory() for _ in range(3)]
        taken = set()
        for kernel, fact in steps:
            try:
                looked[kernel].add(f"Rule {fact}")
                taken.add(f"- Rule {fact}")
            except MemoryFileError:
                looked[kernel] = ws.memory()

        path = root / "GEMINI.md"
        told = path.read_text().splitlines() if path.exists() else []
        assert sorted(told) == sorted(taken)


@pytest.mark.parametrize("how", ERRORS)
def test_a_disk_that_fails_at_any_call_leaves_the_file_as_it_was(
    ws: gemnb.Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    path = root / "GEMINI.md"
    path.write_text("- one\n")
    disk = Disk(tmp_path, monkeypatch)
    at = 0
    while True:
        at += 1
        memory, before, refused = ws.memory(), held(tmp_path), False
        with disk.failing(how, at, stays=False):
            try:
                memory.add(FACT)
            except MemoryFileError:
                refused = True
        if refused:
            assert disk.faults and held(tmp_path) == before
            continue
        assert path.read_text() == f"- one\n- {FACT}\n"
        if not disk.faults:
            break
        path.write_text("- one\n")
    assert at > 4


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ("The port is now 5433", "speaks of now"),
        ("The service runs as process 4711", "a process"),
        ("Valid since 20 May 2026", "a date"),
        ("Valid since May 20th, 2026", "a date"),
        ("2026年5月20日から", "a date"),
        ("The dump is in `/tmp/x.sql`", "temporary path"),
        ("See C:\\Users\\me\\AppData\\Local\\Temp\\x", "temporary path"),
    ],
)
def test_what_is_momentary_is_told_with_the_reason(fact: str, why: str) -> None:
    assert why in (momentary(fact) or "")


@pytest.mark.parametrize(
    "fact", ["From now on use tabs", "Times come from datetime.now(UTC)", "Call `now` once", "We know the rivers"]
)
def test_what_only_looks_like_it_is_not(fact: str) -> None:
    assert momentary(fact) is None
