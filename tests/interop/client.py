"""Drives the real client, offline, against the loopback service: what it lists, what it sends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "general": {"enableAutoUpdate": False, "sessionRetention": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
}
ROW = re.compile(r"^\s+(\d+)\. (.*) \((.*)\) \[([^\]]+)\]$", re.MULTILINE)
LIMIT_S = 90
LOST_S = 15
"""After so long without a sign a key counts as lost: what takes it is made a moment after it is drawn."""
DOWN, ENTER = "\x1b[B", "\r"
STARTED = r"Gemini CLI\S* v\d"
"""Its head, which it draws when it is ready; what is entered before waits in a queue."""


def find_client() -> str | None:
    """The client's program: named by the environment, or on the path."""
    return os.environ.get("GEMNB_GEMINI_CLI") or shutil.which("gemini")


@dataclass
class Screen:
    """What a person sees of it and types."""

    terminal: Any

    def see(self, wanted: str) -> str:
        """Wait for what matches `wanted`, and give it."""
        self.terminal.expect(wanted)
        return str(self.terminal.match[0])

    def press(self, key: str, wanted: str) -> str:
        """Press a key, again if it was lost, and give what matches `wanted`."""
        import pexpect

        for _ in range(LIMIT_S // LOST_S):
            self.terminal.send(key)
            if self.terminal.expect([wanted, pexpect.TIMEOUT], timeout=LOST_S) == 0:
                return str(self.terminal.match[0])
        raise AssertionError(f"{wanted!r} never came: {self.terminal.before}")

    def until(self, there: Callable[[], bool]) -> None:
        """Wait until something is so, with the screen going on."""
        import pexpect

        for _ in range(LIMIT_S * 5):
            if there():
                return
            self.terminal.expect([pexpect.TIMEOUT], timeout=0.2)
        raise AssertionError(f"it never came: {self.terminal.before}")


@dataclass
class Client:
    """The real client, with a home of its own."""

    program: str
    home: Path
    root: Path
    server: Any
    cwd: Path | None = None
    """Where it is started, if not in the root."""

    def setup(self, **more: Any) -> None:
        """Write its settings, with more of them."""
        path = self.home / ".gemini" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(SETTINGS | more))

    def run(self, *arguments: str) -> str:
        """Run it to its end and give what it printed."""
        done = self.start(*arguments)
        out, err = done.communicate(timeout=LIMIT_S)
        assert done.returncode == 0, (arguments, out, err)
        return out + err

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it."""
        command = [self.program, *arguments]
        return subprocess.Popen(
            command,
            cwd=self.cwd or self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it is run with."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": self.server.base_url,
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(self.home / "none.json"),
            "GEMINI_CLI_NO_RELAUNCH": "true",
            "NO_COLOR": "1",
        }

    @contextmanager
    def screen(self) -> Iterator[Screen]:
        """Its screen, in a terminal, ready for what is typed."""
        import pexpect

        terminal = pexpect.spawn(
            self.program,
            cwd=str(self.root),
            env=self.environment | {"TERM": "xterm-256color", "LANG": "C.UTF-8"},
            dimensions=(60, 220),
            encoding="utf-8",
            timeout=LIMIT_S,
        )
        try:
            terminal.expect(STARTED)
            terminal.expect("Type your message")
            yield Screen(terminal)
        finally:
            terminal.kill(signal.SIGKILL)
            terminal.wait()
            terminal.close()

    def prompt(self, text: str, *, resume: str | None = None, interrupt: bool = False) -> None:
        """Send a prompt, in a new session or in one that is resumed; with `interrupt`, stop it in mid-answer."""
        arguments = [*(["-r", resume] if resume else []), "-p", text, "--yolo", "-m", "gemini-2.5-pro"]
        if not interrupt:
            self.run(*arguments)
            return
        asked = len(self.requests())
        process = self.start(*arguments)
        while len(self.requests()) == asked and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT_S)

    def sessions(self) -> list[tuple[int, str, str]]:
        """Number, title and id of each session that it lists."""
        return [(int(n), title, id) for n, title, _, id in ROW.findall(self.run("--list-sessions"))]

    def requests(self) -> list[list[dict[str, Any]]]:
        """The Contents of each main request so far: those that offer tools."""
        return [r["body"]["contents"] for r in list(self.server.recent) if r.get("body", {}).get("tools")]


def plain(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Contents without injected context, signatures and doubled results; neighbours of one role are one."""
    found: list[dict[str, Any]] = []
    for content in contents:
        parts: list[dict[str, Any]] = []
        for part in content["parts"]:
            text = str(part.get("text", "")).strip()
            if part.get("thought") or re.fullmatch(r"<(session|hook)_context>.*</\1_context>", text, re.DOTALL):
                continue
            kept = {key: value for key, value in part.items() if key != "thoughtSignature"}
            if not ("functionResponse" in kept and kept in parts):
                parts.append(kept)
        if parts and found and found[-1]["role"] == content["role"]:
            found[-1]["parts"] += [p for p in parts if not ("functionResponse" in p and p in found[-1]["parts"])]
        elif parts:
            found.append({"role": content["role"], "parts": parts})
    return found
