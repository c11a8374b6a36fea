"""A long job tells how far it is, and can be interrupted at any point with nothing half done."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import NOW, tree

import gemnb
import gemnb.model.progress
from gemnb.notebook.progress import ProgressLine
from gemnb.testing import make_sample_store

Job = Callable[[gemnb.Workspace], object]
JOBS: dict[str, tuple[str, Job]] = {
    "first listing": ("Reading sessions", lambda ws: ws.sessions()),
    "table": ("Reading sessions", gemnb.usage_df),
    "search": ("Searching sessions", lambda ws: list(ws.search("report"))),
    "export": ("Exporting turns", lambda ws: ws.resume(19).export("talk.html", progress=ws.progress)),
    "redacted export": (
        "Redacting turns",
        lambda ws: ws.resume(19).export("talk.md", redact=True, progress=ws.progress),
    ),
}


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> gemnb.Workspace:
    home, project = make_sample_store(tmp_path / "sample", now=NOW)
    monkeypatch.chdir(project)
    return gemnb.open_workspace(project, home=home, clock=lambda: NOW)


def test_the_example_runs() -> None:
    assert doctest.testmod(gemnb.model.progress) == (0, 1)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_tells_each_step_to_its_end(name: str, sample: gemnb.Workspace) -> None:
    what, job = JOBS[name]
    told: list[tuple[str, int, int]] = []
    sample.progress = lambda *step: told.append(step)

    job(sample)

    steps = [(done, total) for said, done, total in told if said == what]
    total = steps[0][1]
    assert total > 20 and steps[: total + 1] == [(done, total) for done in range(total + 1)]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("after", [0, 7])
def test_an_interrupted_job_leaves_nothing_half_done_and_can_be_done_again(
    name: str, after: int, sample: gemnb.Workspace, tmp_path: Path
) -> None:
    what, job = JOBS[name]
    before = tree(tmp_path)

    def interrupt(said: str, done: int, _: int) -> None:
        if (said, done) == (what, after):
            raise KeyboardInterrupt

    sample.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        job(sample)

    left = {path: data for path, data in tree(tmp_path).items() if "/gemnb/" not in f"/{path}"}
    assert left == {path: data for path, data in before.items() if "/gemnb/" not in f"/{path}"}
    sample.progress = None
    job(sample)
    assert len(sample.sessions()) == 24


class Page:
    """What a front end shows of one display after another."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now = 0.0

    def __call__(self, data: dict[str, str], **_: Any) -> Page:
        self.lines.append(data["text/plain"])
        return self

    def update(self, data: dict[str, str], **_: Any) -> None:
        self.lines[-1] = data["text/plain"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        pytest.param([0, 0.3, 0.6, 0.9], [], id="a quick job shows nothing"),
        pytest.param([0, 0.4, 0.8, 1.1], ["Reading: 3 of 4 …"], id="after a second it shows"),
        pytest.param([0, 0.9, 1.8, 2.7, 3.0], ["Reading: 4 of 4"], id="one line, to the end"),
        pytest.param([0, 1.05, 1.1, 1.15], ["Reading: 1 of 4 …"], id="at most five times a second"),
    ],
)
def test_the_line_comes_after_a_second(seconds: list[float], shown: list[str]) -> None:
    page, times = Page(), iter(seconds)
    line = ProgressLine(clock=lambda: next(times), show=page)

    for done in range(len(seconds)):
        line("Reading", done, 4)

    assert page.lines == shown


def test_each_job_has_a_second_of_its_own_and_steps_of_one_job_share_theirs() -> None:
    page = Page()
    line = ProgressLine(clock=lambda: page.now, show=page)
    for page.now, what, done in (
        (0.0, "Reading", 0),
        (0.9, "Reading", 2),
        (1.0, "Searching", 0),
        (1.3, "Searching", 1),
    ):
        line(what, done, 2)
    assert page.lines == ["Searching: 1 of 2 …"]

    line.begin()
    for page.now, done in ((60.0, 0), (60.5, 1), (60.9, 2)):
        line("Reading", done, 2)
    assert page.lines == ["Searching: 1 of 2 …"]


def test_beside_cells_nothing_is_shown() -> None:
    page = Page()
    line = ProgressLine(clock=lambda: page.now, show=page)
    line.end()
    for page.now, done in ((0.0, 0), (2.0, 1)):
        line("Reading", done, 2)
    assert not page.lines

    line.begin()
    page.now = 2.1
    line("Reading", 2, 2)
    assert page.lines == ["Reading: 2 of 2"]


def test_quick_jobs_of_cells_that_run_one_after_another_show_nothing() -> None:
    page = Page()
    line = ProgressLine(clock=lambda: page.now, show=page)

    for _ in range(10):
        line.begin()
        line("Reading sessions", 0, 1)
        page.now += 0.2
        line("Reading sessions", 1, 1)
        line.end()

    assert page.lines == []
