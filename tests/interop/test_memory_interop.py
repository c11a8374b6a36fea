"""What a talk is given of memory and workspace: the same from us as from the client, for the same tree."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from client import Client

import gemnb
from gemnb.services.session_context import session_context

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

RULES = {"rules": [], "default": [{"text": "Seen."}]}


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tree_of(text: str) -> list[str]:
    """The lines of the directory structure."""
    return [line for line in text.split("\n") if "───" in line or line.startswith("Showing")]


def test_the_same_tree_gives_the_same_context(
    real_client: Callable[..., Client], home: Path, root: Path, ws: gemnb.Workspace
) -> None:
    (root / ".git").mkdir()
    put(root / "GEMINI.md", "Rules @docs/a.md\n\n```\n@docs/a.md\n```\n@none.md @../out.md @docs/loop.md\n")
    put(root / "docs/a.md", "Brief.\n")
    put(root / "docs/loop.md", "again @loop.md")
    put(root / "日本/川.csv", "x")
    put(root / "node_modules/x/y.js", "x")
    put(root.parent / "out.md", "SECRET")
    for number in range(250):
        put(root / f"many/{number:03}.txt", "")
    put(home / ".gemini/GEMINI.md", "Global rule.\n")

    client = real_client(RULES)
    client.prompt("Hello")

    request = next(r["body"] for r in list(client.server.recent) if r.get("body", {}).get("tools"))
    theirs: Any = request["contents"][0]["parts"][0]["text"]
    mine = session_context(root, temp=ws.folder, now=datetime.now(UTC))
    project = "\n\n".join(file.section for file in ws.memory().files if file.scope == "project")
    other = "\n\n".join(file.section for file in ws.memory().files if file.scope == "global")
    assert os.fspath(root) in theirs and tree_of(mine) == tree_of(theirs)
    assert project in theirs and "SECRET" not in theirs
    assert other in request["systemInstruction"]["parts"][0]["text"]
