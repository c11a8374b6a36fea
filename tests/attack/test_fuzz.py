"""Every finding of the fuzzer is a case that stays; each reader is fuzzed a little more (see `fuzz.py`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import fuzz
import pytest
from fuzz_targets import SEEDS, TARGETS
from support import missing

FINDINGS = sorted(path for path in fuzz.FOUND.glob("*/*") if path.is_file())
SECONDS = 7
"""For each target: with the start of Python about 70 s for all of them."""


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_finding_stays_mended(path: Path, tmp_path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes(), tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_hold(target: str, tmp_path: Path) -> None:
    for data in SEEDS[target]:
        TARGETS[target](data, tmp_path)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found_in_a_short_run(target: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        missing("needs atheris")

    result = fuzz.run(target, seconds=SECONDS, corpus=tmp_path)

    assert not result["findings"], result["errors"]
    assert result["executions"]
