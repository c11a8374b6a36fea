"""Fixtures: an empty store, sessions in it, a workspace with a scripted model, the loopback service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support import NOW, SHARED, load_module, missing, to_bytes

import gemnb
from gemnb.testing import ScriptedLlm

settings.register_profile("gemnb", deadline=None)  # a busy machine is no failure
settings.load_profile("gemnb")


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
