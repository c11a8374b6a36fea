"""Two kernels on one session, in processes of their own: every record whole, every turn in sight, both told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support import SID, TALK, header
from talker import Talker

from gemnb.store.replay import read_session

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
