"""`gemnb tour` and `gemnb doctor`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from gemnb.__main__ import main, prepare_tour


def test_the_tour_is_a_project_with_notebooks_and_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, environment = prepare_tour(tmp_path)

    assert (project / "tour.ipynb").exists() and environment["GEMNB_LLM"] == "scripted"
    assert prepare_tour(tmp_path)[0] == project  # a second look keeps what is there
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert "GEMNB_LLM" not in prepare_tour(tmp_path)[1]


def fetched(url: str) -> dict[str, list[dict[str, str]]]:
    """What the server answers, once it does."""
    began = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                found: dict[str, list[dict[str, str]]] = json.load(answer)
                return found
        except urllib.error.URLError:
            assert time.monotonic() - began < 30
            time.sleep(0.05)


def test_the_tour_opens_a_jupyterlab(tmp_path: Path) -> None:
    pytest.importorskip("jupyterlab")
    command = [sys.executable, "-m", "gemnb", "tour", "--no-browser", "--dir", str(tmp_path / "tour")]
    address = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab\S*[?&]token=(\w+)", line):
                address = found.groups()
                break
        try:
            assert address, "the server ended without an address"
            url = f"{address[0]}/api/contents?token={address[1]}"
            assert "tour.ipynb" in [entry["name"] for entry in fetched(url)["content"]]
        finally:
            process.terminate()


def test_the_doctor_tells_what_is_there(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)

    assert main(["doctor"]) == 0

    told = capsys.readouterr().out
    assert (
        "key: none -> set GEMINI_API_KEY" in told and str(home / ".gemini") in told and "maxSessionTurns = -1" in told
    )


def test_the_doctor_tells_what_is_wrong(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini/settings.json").write_text("{broken")
    (home / ".gemini/projects.json").write_text("[]")

    assert main(["doctor"]) == 1

    told = capsys.readouterr().out
    assert "BAD registry" in told and "BAD settings" in told


def test_the_doctor_looks_at_widgets_and_recording(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    (home / ".gemini").mkdir(parents=True)

    main(["doctor"])
    well = capsys.readouterr().out
    (home / ".gemini/tmp").write_text("in the way")
    main(["doctor"])
    ill = capsys.readouterr().out

    assert "ok  widgets: " in well and f"ok  recording: talks are kept in {home}" in well
    assert "BAD recording: " in ill and "move it away" in ill
