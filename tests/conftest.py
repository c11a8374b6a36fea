"""Fixtures: an empty store, sessions in it, a workspace with a scripted model, the loopback service."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gemnb
from gemnb.store.paths import project_hash
from gemnb.testing import ScriptedLlm

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
SHARED = Path(__file__).parents[2] / "shared"
SID = "aa11bb22-0000-4000-8000-00000000000a"


def missing(what: str) -> None:
    """Skip a test whose means are not here; in CI they must be."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} must be there in CI")
    pytest.skip(what)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        missing("needs the shared folder beside the repository")
    return SHARED


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the person's home, key or settings."""
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_CLI_HOME", "GEMNB_LLM", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CACHE", "DATA", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "xdg" / name.lower()))
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(tmp_path / "system.json"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "app"
    path.mkdir(parents=True)
    return path


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


@pytest.fixture
def write_session(home: Path, root: Path) -> Callable[..., Path]:
    """Write a session file of the project `root`: objects as lines, bytes as they are."""

    def write(*lines: Any, name: str = "session-2026-05-01T10-00-aa11bb22.jsonl", slug: str = "app") -> Path:
        folder = home / ".gemini" / "tmp" / slug
        (folder / "chats").mkdir(parents=True, exist_ok=True)
        (folder / ".project_root").write_text(str(root))
        path = folder / "chats" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_bytes(*lines))
        return path

    return write


@pytest.fixture
def llm() -> ScriptedLlm:
    return ScriptedLlm()


@pytest.fixture
def ws(home: Path, root: Path, llm: ScriptedLlm) -> gemnb.Workspace:
    return gemnb.open_workspace(root, home=home, llm=llm, clock=lambda: NOW)


def tree(folder: Path) -> dict[str, tuple[int, int, bytes | None]]:
    """Every entry below `folder`: mode, time, bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_mtime_ns, path.read_bytes() if path.is_file() else None)
    return found


def load_module(path: Path) -> ModuleType:
    """A module from a file that is no part of a package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model_server(shared: Path) -> Iterator[Callable[..., Any]]:
    """Start the loopback service with rules; it answers until the test ends."""
    module = load_module(shared / "tools" / "model_server.py")
    started = []

    def start(*replies: Any, rules: Any = None) -> Any:
        told = rules or {"rules": [{"when": {"call": n}, "reply": r} for n, r in enumerate(replies, start=1)]}
        server = module.ModelServer(0, told).__enter__()
        started.append(server)
        return server

    yield start
    for server in started:
        server.__exit__(None, None, None)
