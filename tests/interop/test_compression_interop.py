"""The real client goes on with a talk that we compressed, rewound or branched, and sends what we say it would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client import Client, plain
from support import gemini, header, user

import gemnb
from gemnb.model.turns import wire_contents
from gemnb.testing import ScriptedLlm

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

SNAP = "<state_snapshot>The log of the rivers was read; it stops at step four.</state_snapshot>"
LONG = "line of log; " * 400
RULES = {"rules": [], "default": [{"text": "Well said."}]}


def compressed(ws: gemnb.Workspace) -> None:
    assert ws.resume().compress().status == "COMPRESSED"


def undone(ws: gemnb.Workspace) -> None:
    compressed(ws)
    assert ws.chat
    ws.chat.undo_compression()


def rewound(ws: gemnb.Workspace) -> None:
    ws.resume().rewind(2)


def rewound_and_back(ws: gemnb.Workspace) -> None:
    rewound(ws)
    assert ws.chat
    ws.chat.undo_rewind()


def branched(ws: gemnb.Workspace) -> None:
    ws.resume()
    ws.save_checkpoint("分岐")
    ws.load_checkpoint("分岐").send("Another way")


@pytest.mark.parametrize("change", [compressed, undone, rewound, rewound_and_back, branched])
def test_the_client_sends_what_we_say(
    real_client: Callable[..., Client],
    write_session: Callable[..., Path],
    root: Path,
    home: Path,
    change: Callable[[gemnb.Workspace], None],
) -> None:
    client = real_client(RULES)
    lines: list[Any] = [
        user("u1", "Read the log"),
        gemini("g1", LONG),
        user("u2", "Then mend it"),
        gemini("g2", "Mended."),
    ]
    write_session(header(root=root), *lines)
    replies = ["Sure."] if change is branched else [SNAP, SNAP]
    ws = gemnb.open_workspace(root, home=home, llm=ScriptedLlm(*replies))
    change(ws)
    assert ws.chat
    id = ws.chat.session_id
    before = plain(wire_contents(ws.history(id).turns))

    client.prompt("go on", resume=id)

    assert plain(client.requests()[-1]) == [*before, {"role": "user", "parts": [{"text": "go on"}]}]
