"""The inbox is one for both: what we propose the client lists and applies, and what it proposes we do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from client import DOWN, ENTER, Client
from support import gemini, header, user

import gemnb
from gemnb.services.memory_propose import Source, Suggestion, patch_for, propose

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

RULES = {"rules": [], "default": [{"text": "Seen."}]}
LF, CRLF = "# R\n- keep\n", "# R\r\n- keep\r\n"
FACTS = [
    Suggestion(fact, "preference", (Source("aa11", f"u{number}"),))
    for number, fact in enumerate(["Always use tabs", "Never use pip", "`pytest -q` works here"])
]


@pytest.mark.parametrize(
    ("held", "then"),
    [(None, ""), (LF, LF), (CRLF, CRLF), ("- keep", "- keep\n")],
    ids=["new-file", "lf", "crlf", "no-end"],
)
def test_the_client_lists_and_applies_what_we_propose(
    real_client: Callable[..., Client], ws: gemnb.Workspace, held: str | None, then: str
) -> None:
    ws._projects.claim(ws.root)
    memory = ws.memory()
    private, everywhere = memory.targets["private"], memory.targets["global"]
    for target in (private, everywhere):
        target.parent.mkdir(parents=True, exist_ok=True)
        if held is not None:
            target.write_bytes(held.encode())
    assert len(propose(FACTS, memory.folder, private)) == 3
    waiting = memory.folder / ".inbox/global/one.patch"
    waiting.parent.mkdir()
    new = f"--- /dev/null\n+++ {everywhere}\n@@ -0,0 +1 @@\n+- {FACTS[0].fact}\n"
    waiting.write_bytes((patch_for(FACTS[0], held, everywhere) if held else new).encode())
    client = real_client(RULES)
    client.setup(experimental={"autoMemory": True})

    with client.screen() as screen:
        screen.terminal.send("/memory inbox")
        screen.see(r"inbox +Review skills")
        screen.press(ENTER, "Private memory")
        assert screen.see(r"\d+ hunks? from \d+ source patch") == "3 hunks from 3 source patch"
        screen.press(ENTER, "Apply patch and delete")
        screen.press(DOWN, r"● 2\. \S*Apply")
        screen.press(ENTER, "Applied all 3 private memory patches")
        screen.press(ENTER, "Apply patch and delete")
        screen.press(DOWN, r"● 2\. \S*Apply")
        screen.press(ENTER, "Applied all 1 global memory patch")

    def added(path: Path) -> list[str]:
        """The lines after what was there; the last end is the client's affair, where there was none."""
        told = path.read_bytes().decode()
        assert told.startswith(then)
        return sorted(told.removeprefix(then).removesuffix("\n").split("\n"))

    facts = [f"- {one.fact}\r" if then == CRLF else f"- {one.fact}" for one in FACTS]
    assert added(private) == sorted(facts) and added(everywhere) == facts[:1]
    assert not ws.memory().inbox()


def extraction(patch: str, path: Path) -> dict[str, Any]:
    """The service plays the client's extraction agent: it writes the patch and is done."""
    agent = {"system": "Auto Memory Extraction"}
    write = {"name": "write_file", "args": {"file_path": str(path), "content": patch}}
    done = {"name": "complete_task", "args": {"response": "One fact."}}
    return {
        "rules": [
            {"when": agent | {"call": 1}, "reply": [{"functionCall": write}]},
            {"when": agent, "reply": [{"functionCall": done}]},
        ],
        "default": [{"text": "Seen."}],
    }


@pytest.mark.parametrize("new", [False, True], ids=["existing", "new-file"])
def test_we_list_and_apply_what_the_client_proposes(
    real_client: Callable[..., Client], write_session: Any, home: Path, root: Path, new: bool
) -> None:
    at = f"{datetime.now(UTC) - timedelta(hours=5):%Y-%m-%dT%H:%M:%S}.000Z"
    talk = [
        line
        for n in range(12)
        for line in (user(f"u{n}", f"Prompt {n}", timestamp=at), gemini(f"g{n}", "Yes", timestamp=at))
    ]
    write_session(header(root=root, startTime=at, lastUpdated=at), *talk)
    ws = gemnb.open_workspace(root, home=home, environ={})
    ws._projects.claim(ws.root)
    target = ws.memory().targets["private"]
    target.parent.mkdir(parents=True)
    head = f"--- {'/dev/null' if new else target}\n+++ {target}\n"
    if not new:
        target.write_text("- keep\n")
    hunk = (
        "@@ -0,0 +1,2 @@\n+# Memory\n+- The client's own\n" if new else "@@ -1 +1,2 @@\n - keep\n+- The client's own\n"
    )
    waiting = target.parent / ".inbox/private/extraction.patch"
    client = real_client(extraction(head + hunk, waiting))
    client.setup(experimental={"autoMemory": True})

    with client.screen() as screen:
        screen.until(lambda: waiting.exists() and waiting.read_text().endswith("own\n"))

    (proposal,) = ws.memory().inbox()
    assert proposal.path == waiting and proposal.problem is None
    assert ws.memory().apply(1) == [target]
    assert target.read_text() == ("# Memory\n" if new else "- keep\n") + "- The client's own\n"
    assert not waiting.exists() and not ws.memory().inbox()
