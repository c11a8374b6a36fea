"""A real Jupyter server, a real Chromium on one notebook of it, and the Python side to ask."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from playwright.sync_api import Browser, Page, TimeoutError, sync_playwright

from gemnb.__main__ import prepare_tour

TOKEN = "a-token-of-this-run"
PATHS = {"lab": "/lab/tree/browse.ipynb", "notebook": "/notebooks/browse.ipynb"}
"""Where each application opens the notebook."""
FIRST = "%load_ext gemnb\nimport gemnb\nws = Gemnb.workspace\nbrowser = gemnb.browse()\nbrowser"
"""What the first cell does."""
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_S = 60.0


def until(tell: Callable[[], Any], wanted: Any = True, *, seconds: float = 60.0) -> Any:
    """Ask until the answer is `wanted`; the last answer is in the error."""
    end = time.monotonic() + seconds
    while (told := tell()) != wanted:
        if time.monotonic() > end:
            raise AssertionError(f"{told!r} never became {wanted!r}")
        time.sleep(0.05)
    return told


def chromium() -> str | None:
    """Where Chromium is, if it is."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass
class Room:
    """One application with the notebook open and the session browser in its first cell."""

    app: str
    page: Page
    folder: Path
    runtime: Path
    foreign: list[str] = field(default_factory=list)
    """Requests that left the machine."""
    client: BlockingKernelClient | None = None

    def ask(self, expression: str) -> Any:
        """The value of a Python expression in the notebook's kernel."""
        client = self._client()
        sent = client.execute(
            "import json", silent=True, user_expressions={"told": f"json.dumps({expression}, default=str)"}
        )
        while True:
            reply = client.get_shell_msg(timeout=WAIT_S)
            if reply["parent_header"].get("msg_id") == sent:
                told = reply["content"]["user_expressions"]["told"]
                assert told["status"] == "ok", told
                return json.loads(eval(told["data"]["text/plain"]))

    def run(self, code: str) -> None:
        """Run code in the kernel, beside the cells."""
        client = self._client()
        reply = client.execute(code, reply=True, timeout=WAIT_S)
        assert reply["content"]["status"] == "ok", reply["content"]

    def open(self, *, click: bool = True) -> None:
        """Run the first cell anew, and wait for the browser with its rows; with `click`, go into its list."""
        new = self.page.locator(".gemnb-browser:not([data-old]) [role=option]").first
        self.page.evaluate("document.querySelectorAll('.gemnb-browser').forEach(old => old.dataset.old = 'yes')")
        for _ in range(6):  # a cell that is run before the page knows its kernel is forgotten
            self.page.locator(".jp-Cell .cm-content").first.click()
            self.page.keyboard.press("Shift+Enter")
            with suppress(TimeoutError):
                new.wait_for(timeout=10_000)
                break
        if click:
            self.list.click(position={"x": 40, "y": 10}, timeout=5_000)

    @property
    def root(self) -> Any:
        """The browser on the page."""
        return self.page.locator(".gemnb-browser")

    @property
    def list(self) -> Any:
        """The list of sessions."""
        return self.page.locator(".gemnb-browser [role=listbox]")

    def press(self, *keys: str) -> None:
        """Press keys in the list."""
        self.list.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def click(self, action: str) -> None:
        """Click a button."""
        self.page.locator(f".gemnb-browser [data-action={action}]").first.click()

    def theme(self, name: str) -> None:
        """Have the application change its theme: `Light`, `Dark` or `Dark High Contrast`."""
        self.page.evaluate(
            "name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", f"JupyterLab {name}"
        )
        dark = name.startswith("Dark")
        until(lambda: self.page.evaluate("document.body.dataset.jpThemeLight"), str(not dark).lower())
        until(lambda: self.page.evaluate("document.body.dataset.jpThemeName"), f"JupyterLab {name}")

    def cells(self) -> list[str]:
        """The kind of each cell of the notebook."""
        told: list[str] = self.page.locator(".jp-Notebook .jp-Cell").evaluate_all(
            "cells => cells.map(c => c.className)"
        )
        return ["code" if "jp-CodeCell" in name else "other" for name in told]

    def _client(self) -> BlockingKernelClient:
        if self.client is None:
            until(lambda: any(map(_is_whole, self.runtime.glob("kernel-*.json"))))
            (connection,) = filter(_is_whole, self.runtime.glob("kernel-*.json"))
            client = BlockingKernelClient()
            client.load_connection_file(str(connection))
            client.start_channels()
            until(lambda: _is_ready(client))
            self.client = client
        return self.client


@contextmanager
def server(folder: Path, first: str = FIRST) -> Iterator[tuple[str, Path, Path]]:
    """A Jupyter server over a tour of its own: its address, the notebook's folder, the runtime folder."""
    project, environment = prepare_tour(folder / "tour")
    cells = [nbformat.v4.new_code_cell(code) for code in (first, "1 + 1", "2 + 2")]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, project / "browse.ipynb")  # type: ignore[no-untyped-call]
    runtime = folder / "runtime"
    own = {name: str(folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    environment = {**os.environ, **environment, **own, "JUPYTER_RUNTIME_DIR": str(runtime)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"ip": "127.0.0.1", "port": port, "open_browser": False, "allow_root": True, "root_dir": project}
    command = [
        sys.executable,
        "-m",
        "notebook",
        f"--IdentityProvider.token={TOKEN}",
        "--LabApp.news_url=None",
        "--LabApp.expose_app_in_browser=True",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    command += [f"--ServerApp.{name}={value}" for name, value in options.items()]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=project, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: process.poll() is not None or _answers(address), seconds=WAIT_S)
        assert process.poll() is None, (folder / "server.log").read_text()
        yield address, project, runtime
    finally:
        process.terminate()
        process.wait(timeout=WAIT_S)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/api/status?token={TOKEN}", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """A Chromium without a screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def room(browser: Browser, app: str, folder: Path, first: str = FIRST) -> Iterator[Room]:
    """The notebook open in `lab` or `notebook`, on a server of its own; `first` is its first cell's code."""
    with server(folder, first) as (address, project, runtime):
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        found = Room(app, page, project, runtime)
        page.on("request", lambda r: found.foreign.append(r.url) if _leaves(r.url, address) else None)
        page.goto(f"{address}{PATHS[app]}?token={TOKEN}")
        page.locator(".jp-Cell .cm-content").first.wait_for(timeout=WAIT_S * 1000)
        found.ask("1")
        found.open()
        yield found
        if found.client:
            found.client.stop_channels()
        page.close()


def _leaves(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:", address.replace("http", "ws")))


def _is_ready(client: BlockingKernelClient) -> bool:
    """Whether the kernel answers; one that is slow to begin counts as dead for the client."""
    with suppress(RuntimeError):
        client.wait_for_ready(timeout=WAIT_S)
        return True
    return False


def _is_whole(connection: Path) -> bool:
    """Whether the server has written a kernel's connection file to its end."""
    return connection.read_text().rstrip().endswith("}")
