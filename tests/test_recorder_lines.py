"""What a talk sends and the lines it writes, held to what the client sent and wrote at the same steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gemnb
from gemnb.model.turns import wire_contents
from gemnb.testing import ScriptedLlm

CONTEXT = "<session_context>"
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}


def vectors(shared: Path) -> Iterator[dict[str, Any]]:
    """The vectors of one talk in which the client loses nothing."""
    told = json.loads((shared / "vectors" / "wire.json").read_text("utf-8"))["vectors"]
    return (vector for vector in told if not vector.get("trap"))


def plain(contents: Any) -> list[dict[str, Any]]:
    """Contents without the injected context."""
    found = []
    for content in contents:
        parts = [part for part in content["parts"] if not str(part.get("text", "")).startswith(CONTEXT)]
        if parts:
            found.append({"role": content["role"], "parts": parts})
    return found


def replies(vector: dict[str, Any]) -> list[dict[str, Any]]:
    """The script's replies: those of the vector, each with the usage that its service tells."""
    sends = sum("send" in step for step in vector["input"]["steps"])
    answers = vector["input"].get("answers", [])
    answers = [*answers, *([{"text": "ok"}] * (sends - len(answers)))]
    return [{"parts": a.get("parts") or [{"text": a["text"]}], "usage": USAGE} for a in answers]


def talk(ws: gemnb.Workspace, llm: ScriptedLlm, vector: dict[str, Any], write_session: Callable[..., Path]) -> None:
    """Do the steps of `vector` here."""
    llm._replies = replies(vector)
    lines = vector["input"].get("lines")
    if lines:
        write_session(*lines, name="session-2026-01-10T08-00-abcdef12.jsonl")
    chat = ws.resume("latest") if lines else ws.new_chat()
    for step in vector["input"]["steps"]:
        if "send" in step:
            chat.send(step["send"])


def shape(line: dict[str, Any]) -> tuple[Any, ...]:
    """What a line is, apart from ids, times and the form of its text."""
    if "$set" in line:
        return ("$set", *sorted(line["$set"]))
    if "sessionId" in line:
        return ("header", *sorted(line))
    return (line["type"], text(line["content"]), line.get("tokens"), [t["subject"] for t in line.get("thoughts") or []])


def text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if not part.get("thought"))


def test_each_request_is_the_clients(shared: Path, tmp_path: Path) -> None:
    compared = 0
    for vector in vectors(shared):
        place = tmp_path / vector["id"]
        (place / "app").mkdir(parents=True)
        llm = ScriptedLlm()
        ws = gemnb.open_workspace(place / "app", home=place / "home", llm=llm)
        talk(ws, llm, vector, writer(place))
        sent = [plain(wire_contents(turns)) for turns in llm.asked]
        told = [plain(w["contents"]) for step in vector["expected"]["result"]["steps"] for w in step["wire"]]
        assert sent == told, vector["id"]
        compared += 1
    assert compared >= 5


def test_each_line_is_the_clients(shared: Path, tmp_path: Path) -> None:
    compared = 0
    for vector in vectors(shared):
        store = vector["expected"]["result"].get("store")
        if not store:
            continue
        place = tmp_path / vector["id"]
        (place / "app").mkdir(parents=True)
        llm = ScriptedLlm(name="gemini-2.5-pro")
        talk(gemnb.open_workspace(place / "app", home=place / "home", llm=llm), llm, vector, writer(place))
        (path,) = (place / "home").rglob("session-*.jsonl")
        ours = [shape(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
        theirs = [shape(line) for line in next(iter(store.values()))]
        # the client writes the whole talk anew on a resume; we append only
        given = len(vector["input"].get("lines", []))
        theirs = theirs[:given] + theirs[given + 2 :] if given else theirs
        assert ours == theirs, vector["id"]
        compared += 1
    assert compared >= 2


def writer(place: Path) -> Callable[..., Path]:
    """Writes a session of the project `place/app`."""

    def write(*lines: Any, name: str) -> Path:
        folder = place / "home" / ".gemini" / "tmp" / "app"
        (folder / "chats").mkdir(parents=True)
        (folder / ".project_root").write_text(str(place / "app"))
        path = folder / "chats" / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write
