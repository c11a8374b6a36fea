"""Several writers on one session: every record whole, every turn in sight, each kernel told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NOW, SID, TALK, header, to_bytes, user
from talker import Talker

import gemnb
from gemnb.store import codec
from gemnb.store.paths import project_hash
from gemnb.store.replay import read_session
from gemnb.testing import ScriptedLlm

PROMPTS = 40


def test_two_kernels_on_one_session_hide_no_turn_and_say_so(
    home: Path, root: Path, write_session: Callable[..., Path]
) -> None:
    path = write_session(header(root=root), *TALK)
    kernels = [Talker(root, home, SID, name) for name in ("one", "two")]
    for _ in range(PROMPTS):
        for kernel in kernels:
            kernel.wait()

    told = [kernel.end() for kernel in kernels]

    session = read_session(path)
    texts = [m.text for m in session.messages]
    said = [prompt for kernel in told for prompt in kernel["said"]]
    assert not session.damage and len(said) >= 2 * PROMPTS
    assert sorted(text for text in texts if text in said) == sorted(said)
    assert len(texts) == len(TALK) + 2 * len(said)
    assert all(any("--fork" in words for words in kernel["warned"]) for kernel in told)


STEPS = st.lists(st.sampled_from(["one", "two", "client reads", "client writes back", "client says"]), max_size=20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
@given(STEPS)
def test_in_whatever_order_they_write_no_turn_is_hidden(tmp_path_factory: Any, steps: list[str]) -> None:
    """The client reads once, and later writes back what it had read, as it does when it resumes."""
    base = tmp_path_factory.mktemp("writers")
    root, chats = base / "app", base / "home" / ".gemini" / "tmp" / "app" / "chats"
    for folder in (root, chats):
        folder.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(str(root))
    path = chats / "session-2026-05-01T10-00-aa11bb22.jsonl"
    path.write_bytes(to_bytes(header(projectHash=project_hash(str(root))), *TALK))
    kernels = {
        name: gemnb.open_workspace(
            root, home=base / "home", llm=ScriptedLlm(default="Aye."), clock=lambda: NOW, environ={}
        ).resume("1")
        for name in ("one", "two")
    }
    held = read_session(path).messages
    said: list[str] = []

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gemnb.GemnbWarning)
        for number, step in enumerate(steps):
            if step in kernels:
                said.append(f"{step} {number}")
                kernels[step].send(said[-1])
            elif step == "client reads":
                held = read_session(path).messages
            else:
                record = (
                    codec.update_record(messages=held) if "back" in step else user(f"c{number}", f"client {number}")
                )
                if "says" in step:
                    held = (*held, codec.decode_message(record))
                with path.open("ab") as file:
                    file.write(to_bytes(record))
        for kernel in [*kernels.values()] * 2:
            kernel.sync()

    found = read_session(path)
    assert sorted(m.text for m in found.messages if m.text in said) == sorted(said)
    for kernel in kernels.values():
        assert [m.id for m in kernel.messages] == [m.id for m in found.messages]
