"""What is a person's alone stays so: the key is told nowhere, and nobody else may read a new file."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import gemnb
from gemnb.services.genai import GenaiLlm

KEY = "a-secret-9f8e7d6c5b4a"


class Echo(BaseHTTPRequestHandler):
    """A service that says the key back, in its error and its headers."""

    def do_POST(self) -> None:
        key = self.headers.get("x-goog-api-key", "")
        error = {"code": 403, "status": "PERMISSION_DENIED", "message": f"The key {key} is bad: ?key={key}"}
        body = json.dumps({"error": error | {"details": [{"reason": key}]}}).encode()
        self.send_response(403)
        self.send_header("x-seen", key)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.keys.append(key)  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    server.keys = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_service_that_says_the_key_back_has_it_told_nowhere(
    ws: gemnb.Workspace, home: Path, tmp_path: Path, echo: Any, caplog: Any
) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, logger="gemnb")
    llm = GenaiLlm(api_key=KEY, base_url=f"http://127.0.0.1:{echo.server_port}", retries=1)
    ws.llm = llm
    chat = ws.new_chat()

    reply = chat.send("Who is there?")
    with pytest.raises(gemnb.GemnbError) as raised:
        list(llm.stream(chat.turns))
    for ending in ("json", "md", "html", "ipynb"):
        chat.export(tmp_path / f"talk.{ending}")

    assert echo.keys == [KEY, KEY], "the service never saw the key: nothing was tried"
    told = [repr(reply), str(reply), repr(chat), repr(llm), repr(ws), caplog.text]
    told += ["".join(traceback.format_exception(raised.value)), *raised.value._render_traceback_()]
    told += [path.read_text() for path in [*home.rglob("*"), *tmp_path.glob("talk.*")] if path.is_file()]
    assert reply.outcome == "error" and not [text for text in told if KEY in text]


@pytest.fixture
def open_umask() -> Iterator[None]:
    held = os.umask(0)
    yield
    os.umask(held)


@pytest.mark.usefixtures("open_umask")
def test_whatever_the_umask_what_is_new_is_the_persons_alone(
    ws: gemnb.Workspace, home: Path, tmp_path: Path, llm: Any
) -> None:
    llm._replies = ["Heard.", "Heard."]
    ws.new_chat().send("Remember this.")
    ws.save_checkpoint("a tag")
    ws.memory().add("The survey has forty-two rivers.", scope="private")
    ws.new_chat().send("Another.")
    ws.delete(next(s.id for s in ws.sessions() if s.title == "Remember this."))

    modes = {p: stat.S_IMODE(p.lstat().st_mode) for top in (home, tmp_path / "xdg") for p in top.rglob("*")}

    assert {p.name for p in modes} >= {"projects.json", "checkpoint-a%20tag.json", "trash", "history", "MEMORY.md"}
    assert not {p: oct(mode) for p, mode in modes.items() if mode != (0o700 if p.is_dir() else 0o600)}
