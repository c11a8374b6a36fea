"""A store that was made to lead out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import reach
from support import SID, gemini, header, to_bytes, tree, user

import gemnb
from gemnb.testing import DemoLlm

SECRET = "OUTSIDE-4711"


def hostile_store(base: Path) -> None:
    """Names, links, pipes and devices that lead out of the store, to `base/outside` and to places without end."""
    outside, root = base / "outside", base / "work" / "app"
    gemini_folder = base / "home" / ".gemini"
    place = gemini_folder / "tmp" / "app"
    chats = place / "chats"
    for folder in (outside, root, chats, base / "exports", place / "logs", gemini_folder / "tmp" / "loop"):
        folder.mkdir(parents=True)
    for name in ("secret.md", "session-x.jsonl", "checkpoint-x.json", ".project_root"):
        (outside / name).write_text(SECRET)
    (place / ".project_root").write_text(str(root))
    registry = {str(root): "app", "/up": "../../outside", "/abs": str(outside), "/nul": "a\0b", "/dot": ".."}
    (gemini_folder / "projects.json").write_text(json.dumps({"projects": registry}))

    ids = ["../../../outside", str(outside), "..", "chats", "a\0b", "x" * 300, "logs", SID, "CON"]
    for number, id in enumerate(ids):
        call = {"id": id, "name": f"../../{id}", "args": {"file": str(outside / "secret.md")}, "status": "success"}
        call["result"] = [{"functionResponse": {"id": id, "name": call["name"], "response": {"output": "x" * 90_000}}}]
        lines = [header(id), user(f"../{id}", f"river @{outside}/secret.md"), gemini(id, "See.", toolCalls=[call])]
        (chats / f"session-2026-05-01T10-0{number}-aa11bb2{number}.jsonl").write_bytes(to_bytes(*lines))
    (chats / "session-2026-05-02T10-00-11111111.jsonl").symlink_to(outside / "session-x.jsonl")
    (chats / "session-2026-05-02T10-00-22222222.jsonl").symlink_to("/dev/zero")
    (chats / "session-2026-05-02T10-00-33333333.jsonl").symlink_to("session-2026-05-02T10-00-33333333.jsonl")
    os.mkfifo(chats / "session-2026-05-02T10-00-44444444.jsonl")
    os.link(outside / "session-x.jsonl", chats / "session-2026-05-02T10-00-55555555.jsonl")
    (chats / SID).symlink_to(outside)
    (place / "tool-outputs").symlink_to(outside)
    (place / "logs" / f"session-{SID}.jsonl").symlink_to(outside / "secret.md")
    (place / "checkpoint-linked.json").symlink_to(outside / "checkpoint-x.json")
    os.mkfifo(place / "checkpoint-pipe.json")
    (gemini_folder / "tmp" / "linked").symlink_to(outside)
    (gemini_folder / "tmp" / "loop" / "chats").symlink_to("../loop")
    os.mkfifo(gemini_folder / "tmp" / "loop" / ".project_root")
    (gemini_folder / "GEMINI.md").symlink_to("/dev/zero")
    (root / "GEMINI.md").write_text(f"@../../outside/secret.md @{outside}/secret.md @./loop.md @./linked.md")
    (root / "loop.md").write_text("@./loop.md @./GEMINI.md")
    (root / "linked.md").symlink_to(outside / "secret.md")


def test_nothing_outside_the_store_is_read_created_or_changed(tmp_path: Path) -> None:
    hostile_store(tmp_path)
    outside = tree(tmp_path / "outside")

    done = subprocess.run(
        [sys.executable, reach.__file__, tmp_path],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    opened = {(Path(path), how) for path, how in json.loads(done.stdout)}
    assert tree(tmp_path / "outside") == outside
    assert len(opened) > 50 and not [path for path, _ in opened if (tmp_path / "outside") in path.parents]
    own = [tmp_path / "xdg" / kind / "gemnb" for kind in ("data", "cache")]
    allowed = [tmp_path / "home" / ".gemini", *own, tmp_path / "exports"]
    assert not [path for path, how in opened if how == "write" and not any(a in path.parents for a in allowed)]
    assert {p.name for p in tmp_path.iterdir()} <= {"home", "work", "outside", "exports", "xdg"}
    told = [p for top in ("home", "exports") for p in (tmp_path / top).rglob("*") if p.is_file() and not p.is_symlink()]
    assert len(told) > 5
    assert not [p for p in told if p.stat().st_nlink == 1 and SECRET.encode() in p.read_bytes()]


@pytest.mark.parametrize("place", ["tmp", "tmp/app", "tmp/app/chats", "history", "history/app", "tmp/app/tool-outputs"])
@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_nothing_is_written_behind_a_link_in_the_place_of_a_folder(tmp_path: Path, place: str) -> None:
    root, gemini_folder, outside = tmp_path / "work" / "app", tmp_path / "home" / ".gemini", tmp_path / "outside"
    for folder in (root, outside, (gemini_folder / place).parent):
        folder.mkdir(parents=True)
    (gemini_folder / place).symlink_to(outside)
    ws = gemnb.open_workspace(root, home=tmp_path / "home", llm=DemoLlm(), environ={})
    chat = ws.new_chat()
    chat.tools = [long_output]

    for prompt in ("`long_output` of 'rivers'", "And on?", "And on?"):
        assert chat.send(prompt).outcome == "completed"
    for errand in (lambda: chat.compress(floor={}), lambda: ws.save_checkpoint("kept")):
        with suppress(gemnb.GemnbError):
            errand()

    assert not list(outside.iterdir())
    if place != "tmp/app/tool-outputs":
        assert "is a link" in str(chat.recording)


def long_output(of: str) -> str:
    """Tell something long."""
    return f"{of}: " + "forty-two rivers, and more of them. " * 8000
