"""Records, paths and small looks at a store that many tests share."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gemnb.store.paths import project_hash

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


SHARED = Path(__file__).parents[2] / "shared"


SID = "aa11bb22-0000-4000-8000-00000000000a"


def missing(what: str) -> None:
    """Skip a test whose means are not here; in CI they must be."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} must be there in CI")
    pytest.skip(what)


def header(session_id: str = SID, root: Path | None = None, **more: Any) -> dict[str, Any]:
    return {
        "sessionId": session_id,
        "projectHash": project_hash(str(root or "/x")),
        "startTime": "2026-05-01T10:00:00.000Z",
        "lastUpdated": "2026-05-01T10:00:09.000Z",
        "kind": "main",
    } | more


def user(id: str, text: Any, **more: Any) -> dict[str, Any]:
    content = [{"text": text}] if isinstance(text, str) else text
    return {"id": id, "timestamp": "2026-05-01T10:00:05.000Z", "type": "user", "content": content} | more


def gemini(id: str, text: Any, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-05-01T10:00:09.000Z", "type": "gemini", "content": text} | more


TOKENS = {"input": 100, "output": 8, "cached": 0, "thoughts": 0, "tool": 0, "total": 108}


TALK = [user("u1", "How many rivers are in the table?"), gemini("g1", "There are forty-two.", tokens=TOKENS)]


def to_bytes(*lines: Any) -> bytes:
    return b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)


def tree(folder: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Every entry below `folder`: mode, time, bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_mtime_ns, path.read_bytes() if path.is_file() else None)
    return found


def held(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every entry below `folder`: mode and bytes."""
    return {path: (mode, data) for path, (mode, _, data) in tree(folder).items()}


def load_module(path: Path) -> ModuleType:
    """A module from a file that is no part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
