"""The real client over the store of a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client import Client, find_client
from support import missing


@pytest.fixture
def real_client(home: Path, root: Path, model_server: Callable[..., Any]) -> Callable[..., Client]:
    """Make a client whose service answers by rules."""
    program = find_client()
    if program is None:
        missing("needs the real client: install it by npm and name it in GEMNB_GEMINI_CLI")
    assert program

    def make(rules: Any) -> Client:
        client = Client(program, home, root, model_server(rules=rules))
        client.setup()
        return client

    return make
