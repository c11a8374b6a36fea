"""Each application with the session browser open, once for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lab
import pytest
from playwright.sync_api import Browser
from support import missing


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if lab.chromium() is None:
        missing("needs Chromium")
    with lab.chromium_browser() as browser:
        yield browser


@pytest.fixture(scope="module", params=["lab", "notebook"])
def room(
    request: pytest.FixtureRequest, chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lab.Room]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    with lab.room(chromium, request.param, folder) as opened:
        yield opened
