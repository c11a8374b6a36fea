"""In a real kernel: answers stream as Markdown, an interrupt stops the cells behind, Tab completes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import SID, TALK, header

Write = Callable[..., Path]
pytestmark = pytest.mark.filterwarnings("default")

SETUP = """
%load_ext gemnb
import time
from gemnb.testing import ScriptedLlm
class Slow(ScriptedLlm):
    def stream(self, *a, **k):
        for chunk in super().stream(*a, **k):
            yield chunk
            time.sleep(0.3)
Gemnb.workspace.llm = ScriptedLlm(default="**Forty-two** <img src=x onerror=alert(1)>")
"""


class Kernel:
    """A kernel and its client; what a cell put out, as messages."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, *, wait: bool = True) -> Any:
        sent = self.client.execute(code)
        return self.outputs(sent) if wait else sent

    def outputs(self, sent: str, *, until: Callable[[Any], bool] = lambda _: False) -> list[Any]:
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return found
            found.append(message)
            if until(message):
                return found

    def answer(self, sent: str) -> Any:
        while True:
            message = self.client.get_shell_msg(timeout=60)
            if message["parent_header"].get("msg_id") == sent:
                return message["content"]


@pytest.fixture
def kernel(root: Path, home: Path, tmp_path: Path, write_session: Write) -> Iterator[Kernel]:
    from jupyter_client.manager import start_new_kernel

    write_session(header(), *TALK)
    env = dict(
        os.environ,
        GEMINI_CLI_HOME=str(home),
        IPYTHONDIR=str(tmp_path / "ip"),
        JUPYTER_RUNTIME_DIR=str(tmp_path / "run"),
    )
    manager, client = start_new_kernel(kernel_name="python3", env=env, cwd=str(root), startup_timeout=60)
    found = Kernel(manager, client)
    errors = [m["content"] for m in found.run(SETUP) if m["msg_type"] == "error"]
    assert not errors, errors
    yield found
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def texts(messages: list[Any], kind: str) -> list[str]:
    return [m["content"]["data"].get("text/markdown", "") for m in messages if m["msg_type"] == kind]


def test_a_kernel_streams_stops_and_completes(kernel: Kernel) -> None:
    # One kernel for all of it: its start is most of the time.
    complete = kernel.answer(kernel.client.complete("x = 1\nc = %resum aa"))
    assert complete["matches"] == [SID] and complete["cursor_end"] - complete["cursor_start"] == 2

    out = kernel.run("%%gemini\nHow many?")
    assert texts(out, "update_display_data")[-1] == "**Forty-two** &lt;img src=x onerror=alert(1)>"
    assert [m["content"]["data"]["text/plain"] for m in out if m["msg_type"] == "execute_result"]

    kernel.run('Gemnb.workspace.llm = Slow("x" * 2000)')
    first = kernel.run("%gemini Tell me everything", wait=False)
    behind = kernel.run("behind = True", wait=False)
    kernel.outputs(first, until=lambda m: m["msg_type"] == "update_display_data")
    kernel.manager.interrupt_kernel()
    out = kernel.outputs(first)
    assert [(m["content"]["ename"], len(m["content"]["traceback"])) for m in out if m["msg_type"] == "error"] == [
        ("Cancelled", 1)
    ]
    assert "stopped before it was complete" in texts(out, "update_display_data")[-1]
    assert kernel.answer(behind)["status"] == "aborted"

    out = kernel.run(
        "c = Gemnb.workspace.chat; assert c.last_reply.outcome == 'cancelled' and 'x' in c.messages[-2].text"
    )
    assert not [m for m in out if m["msg_type"] == "error"]
    out = kernel.run("Gemnb.workspace.llm = ScriptedLlm('Fine.')\n%gemini Go on")
    assert not [m for m in out if m["msg_type"] == "error"]


def test_proposals_are_seen_applied_and_dismissed_in_a_kernel(kernel: Kernel, home: Path) -> None:
    memory = home / ".gemini/tmp/app/memory"
    inbox = memory / ".inbox/private"
    inbox.mkdir(parents=True)
    target = memory / "MEMORY.md"
    target.write_text("- keep\n")
    for name, rule in (("a", "<img src=x onerror=alert(1)>"), ("b", "second"), ("c", "third")):
        hunk = f"@@ -1 +1,2 @@\n - keep\n+- {rule}\n"
        (inbox / f"{name}.patch").write_text(f"--- {target}\n+++ {target}\n{hunk}")

    def told(cell: str) -> Any:
        (data,) = [m["content"]["data"] for m in kernel.run(cell) if m["msg_type"] == "execute_result"]
        return data

    first = told("%memory inbox")
    assert "+- &lt;img src=x" in first["text/html"] and "<img" not in first["text/html"]
    assert "+- <img src=x onerror=alert(1)>" in first["text/plain"] and "3. private (c.patch)" in first["text/plain"]

    after = told("%memory apply 1")
    assert f"{target} was changed." in after["text/html"] and "1. private (b.patch)" in after["text/plain"]
    assert target.read_text() == "- keep\n- <img src=x onerror=alert(1)>\n"

    after = told("%memory dismiss 1")
    assert "second" not in after["text/plain"] and "1. private (c.patch)" in after["text/plain"]
    assert target.read_text() == "- keep\n- <img src=x onerror=alert(1)>\n"
    assert [p.name for p in inbox.iterdir()] == ["c.patch"]

    (error,) = [m["content"] for m in kernel.run("%memory apply 2") if m["msg_type"] == "error"]
    assert error["ename"] == "MemoryFileError" and len(error["traceback"]) == 1


def test_a_long_job_shows_in_its_cell_how_far_it_is(kernel: Kernel) -> None:
    out = kernel.run("import gemnb.notebook.progress as p; p.AFTER_S = p.EVERY_S = 0\n_ = Gemnb.workspace.sessions()")

    shown = [m["content"] for m in out if m["msg_type"] == "display_data"]
    (begun,) = (content for content in shown if "Reading" in content["data"]["text/plain"])
    ended = [m["content"] for m in out if m["msg_type"] == "update_display_data"][-1]
    assert begun["data"]["text/plain"].startswith("Reading sessions: 0 of ")
    assert ended["transient"] == begun["transient"] and not ended["data"]["text/plain"].endswith("…")
