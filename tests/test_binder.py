"""What Binder builds from: as far as that is seen without its engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
BINDER = REPOSITORY / "binder"


def test_what_is_installed_is_this_package_and_a_python_that_it_runs_on() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lowest = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    python = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")

    assert (BINDER / "requirements.txt").read_text() == ".[tour]\n"
    assert "tour" in project["optional-dependencies"]
    assert tuple(map(int, python.split("."))) >= lowest
    assert not (BINDER / "environment.yml").exists()  # it would take the place of requirements.txt


def test_after_the_build_the_kernel_finds_the_tour_and_a_scripted_model(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment = keyless | {"PATH": path, "GEMNB_KERNEL_PREFIX": str(tmp_path / "prefix")}

    subprocess.run(["bash", str(BINDER / "postBuild")], cwd=tmp_path, env=environment, check=True, capture_output=True)

    spec = json.loads((tmp_path / "prefix/share/jupyter/kernels/python3/kernel.json").read_text())
    assert spec["env"] == {"GEMINI_CLI_HOME": str(tmp_path / "tour/home"), "GEMNB_LLM": "scripted"}
    assert (tmp_path / "tour/work/rivers/tour.ipynb").exists()
    assert os.access(BINDER / "postBuild", os.X_OK)
