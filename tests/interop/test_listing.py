"""The same store, listed by the client and by us: the same rows, numbers and titles, whatever lies in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from client import Client
from support import gemini, header, to_bytes, user

import gemnb

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]


def id_of(n: int) -> str:
    return f"aa11bb{n:02d}-0000-4000-8000-00000000000a"


def stored(n: int, *lines: object, **more: object) -> bytes:
    """A session that began in minute `n`."""
    begun = f"2026-05-01T10:{n:02d}:00.000Z"
    return to_bytes(header(id_of(n), startTime=begun, lastUpdated=begun, **more), *lines)


ANSWER = gemini("g", "Yes.")
STORE = {
    "plain": stored(1, user("u", "How many rivers?"), ANSWER),
    "other scripts": stored(2, user("u", "長江 and the Rhine 🌊"), ANSWER),
    "only a command": stored(3, user("u", "/help")),
    "a summary": stored(4, user("u", "Hello"), ANSWER, {"$set": {"summary": "About greetings"}}),
    "a subagent": stored(5, user("u", "Look"), ANSWER, kind="subagent"),
    "a torn end": stored(6, user("u", "Torn?"), ANSWER) + b'{"id":"x","typ',
    "a damaged line": stored(7, user("u", "Damaged?")) + b"not JSON\n" + to_bytes(ANSWER),
    "no message": stored(8),
    "rewound": stored(9, user("u", "First"), ANSWER, user("u2", "Second"), {"$rewindTo": "u2"}),
    "empty": b"",
    "line breaks": stored(11, user("u", "one\n\n  two\tthree " + "long " * 60), ANSWER),
    "same start": stored(1, user("u", "Twin?"), ANSWER).replace(id_of(1).encode(), id_of(12).encode()),
}


def printable(title: str) -> str:
    """What a terminal and the client leave of a title: ASCII, one line, no dots of a cut."""
    return " ".join(re.sub(r"[^ -~]", " ", title).split()).removesuffix("...")


def test_both_list_the_same(
    real_client: Callable[..., Client], home: Path, root: Path, write_session: Callable[..., Path]
) -> None:
    for n, content in enumerate(STORE.values(), start=1):
        write_session(content, name=f"session-2026-05-01T10-{n:02d}-{id_of(n)[:8]}.jsonl")
    registry = home / ".gemini" / "projects.json"
    registry.write_text(json.dumps({"projects": {str(root): "app"}}))
    ws = gemnb.open_workspace(root, home=home)
    ours = ws.sessions()

    theirs = real_client({"rules": [], "default": [{"text": "Rivers"}]}).sessions()

    assert len(theirs) >= 6
    assert [(row.index, row.id) for row in ours] == [(n, id) for n, _, id in theirs]
    for row, (_, title, _) in zip(ours, theirs, strict=True):
        assert any(printable(t or "").startswith(printable(title)) for t in (row.title, row.prompt, row.summary)), title
