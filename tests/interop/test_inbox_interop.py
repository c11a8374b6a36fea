"""The inbox is one for both: what the client proposes we list and apply."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from client import Client
from support import gemini, header, user

import gemnb

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

RULES = {"rules": [], "default": [{"text": "Seen."}]}


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
