"""What the real client deletes at its start: what we said it would; and not what was rescued before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from client import Client, find_client
from support import TALK, gemini, header, missing, to_bytes, user

import gemnb

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]


SLOW = {"rules": [], "default": [{"delay_ms": 2000, "text": "A title"}]}
"""A start that ends before its cleaning does leaves files behind, so the model takes its time."""


@pytest.fixture
def client(tmp_path: Path, model_server: Callable[..., Any]) -> Client:
    """The real client, which cleans by its default settings."""
    program = find_client()
    if program is None:
        missing("needs the real client: install it by npm and name it in GEMNB_GEMINI_CLI")
    assert program
    home, root = tmp_path / "home", tmp_path / "app"
    root.mkdir()
    client = Client(program, home, root, model_server(rules=SLOW))
    client.setup()
    path = home / ".gemini" / "settings.json"
    settings = json.loads(path.read_text())
    del settings["general"]["sessionRetention"]
    path.write_text(json.dumps(settings))
    client.sessions()  # the client's own folder for the project is there now
    return client


def write(
    client: Client, number: int, *, days: float, talk: Any = TALK, minute: int = 0, name: str | None = None, **more: Any
) -> Path:
    """A session of `number`, last changed so many days ago; fields of its header by name, None for none."""
    (chats,) = (client.home / ".gemini/tmp").glob("*/chats")
    at = datetime.now(UTC) - timedelta(days=days)
    told = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    id = f"{number:08x}-0000-4000-8000-{minute:012}"
    path = chats / (name or f"session-{at:%Y-%m-%d}T00-{minute:02}-{number:08x}.jsonl")
    head = header(id, client.root, startTime=told, lastUpdated=told) | more
    path.write_bytes(to_bytes({key: value for key, value in head.items() if value is not None}, *talk))
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def starts(client: Client, until: Callable[[], bool]) -> None:
    """Start the client until what is awaited is so: a start that ends quickly leaves work for the next."""
    for _ in range(6):
        client.run("-p", "hello", "-m", "gemini-2.5-pro")
        if until():
            return


def test_the_client_deletes_what_we_said_it_would(client: Client) -> None:
    (client.home / ".gemini/tmp/app/chats").mkdir(parents=True, exist_ok=True)
    to_come = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    hooked = [user("u1", "<hook_context>x</hook_context> Why?")]
    kept = {
        write(client, 1, days=2),
        write(client, 5, days=60, lastUpdated=to_come),
        write(client, 6, days=60, lastUpdated=None),
        write(client, 7, days=60, lastUpdated="yesterday"),
        write(client, 8, days=2, talk=[user("u1", "/why"), gemini("g1", "Because.")]),
        write(client, 9, days=2, name="session-2026-01-01_foobarba.jsonl"),
    }
    gone = {
        write(client, 2, days=40),
        write(client, 2, days=3, minute=1),
        write(client, 3, days=1, talk=()),
        write(client, 3, days=4, minute=2),
        write(client, 9, days=2, name="session-2026-01-01-foobarba.jsonl", talk=()),
        write(client, 10, days=2, kind="subagent"),
        write(client, 10, days=2, minute=1),
        write(client, 11, days=2, talk=[*TALK, {"$set": {"kind": "subagent"}}]),
        write(client, 12, days=2, talk=hooked),
        write(client, 13, days=2, sessionId=""),
        write(client, 14, days=2, talk=[*TALK, {"$rewindTo": "u1"}]),
        torn := write(client, 4, days=0.5),
    }
    torn.write_bytes(b"\xef\xbb\xbf" + torn.read_bytes())
    ws = gemnb.open_workspace(client.root, home=client.home)

    assert set(ws.cleanup.endangered()) == gone
    starts(client, lambda: not any(path.exists() for path in gone))
    assert [path for path in gone if path.exists()] == [] and [path for path in kept if not path.exists()] == []
    assert [id for _, _, id in client.sessions()] == [row.id for row in ws.sessions()]


def shapes(client: Client) -> dict[str, list[Path]]:
    """Stores that people have: each by its name, with the files that it is made of."""
    (chats,) = (client.home / ".gemini/tmp").glob("*/chats")
    context = {"text": "<session_context>today</session_context>"}
    set_ = {"id": "u1", "timestamp": "2026-05-01T10:00:05.000Z", "type": "user", "content": [context]}
    made = {
        "whole and young": [write(client, 1, days=2)],
        "expired": [write(client, 2, days=31)],
        "a day before it expires": [write(client, 3, days=29)],
        "a start-up twin": [write(client, 4, days=2), write(client, 4, days=1, talk=(), minute=1)],
        "only injected context": [write(client, 5, days=2, talk=[{"$set": {"messages": [set_]}}])],
        "a torn last line": [write(client, 6, days=2)],
        "a torn header": [write(client, 7, days=2)],
        "an empty file": [write(client, 8, days=2)],
        "rewound to nothing": [write(client, 9, days=2, talk=[*TALK, {"$rewindTo": "no such message"}])],
        "only an answer": [write(client, 10, days=2, talk=TALK[1:])],
        "the older form": [write(client, 11, days=2, name="session-2026-05-01T00-00-0000000b.json")],
        "the older form, expired": [write(client, 12, days=40, name="session-2026-05-01T00-00-0000000c.json")],
        "a namesake that is expired": [write(client, 13, days=2), write(client, 13, days=50, minute=1)],
        "no start": [write(client, 14, days=2, startTime=None)],
        "expired by the messages alone": [
            write(client, 15, days=2, talk=[{**line, "timestamp": "2020-01-01T00:00:00Z"} for line in TALK])
        ],
        "emptied by a second header": [write(client, 16, days=2)],
        "blank lines before": [write(client, 17, days=2)],
        "a picture alone": [
            write(client, 18, days=2, talk=[user("u1", [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}])])
        ],
        "a name of its own": [write(client, 19, days=40, name="notes-0000-0000-00000013.jsonl")],
        "an error alone": [write(client, 20, days=2, talk=[{**TALK[0], "type": "error", "content": "no"}])],
    }
    (last,) = made["a torn last line"]
    last.write_bytes(last.read_bytes() + b'{"id":"u9","ty')
    (head,) = made["a torn header"]
    head.write_bytes(head.read_bytes()[40:])
    (nothing,) = made["an empty file"]
    nothing.write_bytes(b"")
    for shape in ("the older form", "the older form, expired"):
        (older,) = made[shape]
        told = json.loads(older.read_text().splitlines()[0])
        older.write_text(json.dumps({**told, "messages": TALK}))
    (second,) = made["emptied by a second header"]
    first_line = second.read_bytes().splitlines()[0]
    second.write_bytes(second.read_bytes() + first_line + b"\n" + to_bytes({"$set": {"messages": [set_]}}))
    (blank,) = made["blank lines before"]
    blank.write_bytes(b"\n\n" + blank.read_bytes())
    assert all(path.parent == chats for paths in made.values() for path in paths)
    return made


def configure(client: Client, retention: dict[str, Any]) -> None:
    path = client.home / ".gemini" / "settings.json"
    told = json.loads(path.read_text())
    told["general"]["sessionRetention"] = retention
    path.write_text(json.dumps(told))


def test_of_each_shape_the_client_deletes_what_we_said(client: Client) -> None:
    (client.home / ".gemini/tmp/app/chats").mkdir(parents=True, exist_ok=True)
    made = shapes(client)
    ws = gemnb.open_workspace(client.root, home=client.home)
    doomed = set(ws.cleanup.endangered())
    said = {shape: [path in doomed for path in paths] for shape, paths in made.items()}

    starts(client, lambda: not any(path.exists() for path in doomed))

    assert said == {shape: [not path.exists() for path in paths] for shape, paths in made.items()}
    assert any(map(any, said.values())) and not all(map(any, said.values()))


def test_of_each_shape_the_client_keeps_as_many_as_we_said(client: Client) -> None:
    """The session that it begins counts, too, where it is begun before the cleaning looks; then one more goes."""
    (client.home / ".gemini/tmp/app/chats").mkdir(parents=True, exist_ok=True)
    made = shapes(client)
    ws = gemnb.open_workspace(client.root, home=client.home)
    said = []
    for count in (8, 9):
        configure(client, {"maxAge": "35d", "maxCount": count})
        said.append(set(ws.cleanup.endangered()))

    starts(client, lambda: True)  # once: each start adds a session

    assert len(said[0] - said[1]) == 1
    assert {path for paths in made.values() for path in paths if not path.exists()} in said


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"maxAge": "90d", "maxCount": 2, "minRetention": "60d"}, id="more than maxCount"),
        pytest.param({"maxAge": "", "maxCount": 1.5}, id="half a session"),
        pytest.param({"enabled": "yes", "maxAge": "3d"}, id="enabled by a word"),
        pytest.param({"maxAge": 30}, id="an age that is a number"),
        pytest.param({"maxAge": "12h"}, id="shorter than minRetention"),
        pytest.param({"maxCount": None}, id="no count"),
        pytest.param({"maxAge": "3d", "minRetention": "a week"}, id="a minimum that is none"),
        pytest.param({"enabled": False}, id="off"),
    ],
)
def test_the_client_reads_the_settings_as_we_said(client: Client, settings: dict[str, Any]) -> None:
    (client.home / ".gemini/tmp/app/chats").mkdir(parents=True, exist_ok=True)
    configure(client, settings)
    made = [write(client, number, days=2 * number) for number in range(1, 5)]
    ws = gemnb.open_workspace(client.root, home=client.home)
    said = set(ws.cleanup.endangered())

    client.run("-p", "hello", "-m", "gemini-2.5-pro")

    assert {path for path in made if not path.exists()} == said


def test_what_was_rescued_is_not_lost(client: Client) -> None:
    (client.home / ".gemini/tmp/app/chats").mkdir(parents=True, exist_ok=True)
    talk = write(client, 1, days=2)
    (talk.with_name("session-2026-01-01T00-00-00000001.jsonl")).write_bytes(
        to_bytes(json.loads(talk.read_text().splitlines()[0]))
    )
    other = write(client, 2, days=2)
    neighbour = write(client, 2, days=3, talk=(), minute=1)
    before = other.read_bytes()
    ws = gemnb.open_workspace(client.root, home=client.home)

    assert {done.how for done in ws.rescue().sessions} == {"cause removed", "copied"}
    starts(client, lambda: not neighbour.exists() and not other.exists())
    assert talk.exists() and not other.exists()
    ws.restore_rescued()
    assert other.read_bytes() == before


def test_the_conversation_of_the_corpus_that_was_lost(client: Client, shared: Path, tmp_path: Path) -> None:
    """A session resumed in a later minute: we say before the next starts that they delete it, and rescue it."""
    case, place = shared / "corpus" / "resume-then-lost", tmp_path / "case"
    relocate = shared / "tools" / "relocate.py"
    command = [sys.executable, str(relocate), str(case), str(place), "--snapshot", "03"]
    subprocess.run(command, check=True, capture_output=True)
    client.home, client.root = place / "home", place / "project"
    client.root.mkdir(exist_ok=True)
    ws = gemnb.open_workspace(client.root, home=client.home)
    (precious,) = ws.sessions()

    assert precious.state == "at_risk" and [c.session_id for c in ws.retention().endangered] == [precious.id]
    assert [done.how for done in ws.rescue().sessions] == ["cause removed"]
    starts(client, lambda: False)
    assert precious.id in [id for _, _, id in client.sessions()]


def test_without_a_rescue_it_is_lost(client: Client, shared: Path, tmp_path: Path) -> None:
    case, place = shared / "corpus" / "resume-then-lost", tmp_path / "case"
    relocate = shared / "tools" / "relocate.py"
    command = [sys.executable, str(relocate), str(case), str(place), "--snapshot", "03"]
    subprocess.run(command, check=True, capture_output=True)
    client.home, client.root = place / "home", place / "project"
    client.root.mkdir(exist_ok=True)
    (precious,) = gemnb.open_workspace(client.root, home=client.home).sessions()

    starts(client, lambda: not precious.path.exists())

    assert not precious.path.exists()
