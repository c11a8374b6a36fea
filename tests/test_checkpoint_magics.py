"""Checkpoints, sharing, pins and an accepted loss, from the notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support import TALK, gemini, header, user
from test_magics import run, shell

from gemnb.notebook.extension import workspace_of
from gemnb.testing import ScriptedLlm

__all__ = ["shell"]


@pytest.mark.parametrize("magic", ["resume", "chat", "resume checkpoints"])
def test_a_checkpoint_is_saved_listed_resumed_and_deleted(
    shell: InteractiveShell, write_session: Callable[..., Path], magic: str
) -> None:
    write_session(header(), *TALK)
    first = run(shell, "%resume latest")[0]
    assert "分岐 一" in repr(run(shell, f'%{magic} save "分岐 一"')[0])
    assert "分岐 一" in repr(run(shell, f"%{magic} list")[0])
    branch = run(shell, f'%{magic} resume "分岐 一"')[0]
    assert branch.session_id != first.session_id
    assert [m.text for m in branch.messages] == [m.text for m in first.messages]
    assert "No checkpoints yet" in repr(run(shell, f'%{magic} delete "分岐 一"')[0])


def test_share_exports_the_talk(shell: InteractiveShell, write_session: Callable[..., Path], tmp_path: Path) -> None:
    write_session(header(), *TALK)
    run(shell, "%resume latest")
    run(shell, f"%resume share {tmp_path / 'talk.md'} --redact")
    assert "How many rivers" in (tmp_path / "talk.md").read_text("utf-8")


def test_a_pin_and_an_accepted_loss(shell: InteractiveShell, write_session: Callable[..., Path]) -> None:
    lines = [user("u1", "Never push. " + "x " * 2_000), gemini("g1", "Yes."), user("u2", "On"), gemini("g2", "Done.")]
    write_session(header(), *lines)
    poor = "<state_snapshot>talked</state_snapshot>"
    workspace_of(shell).llm = ScriptedLlm(*[poor] * 8)
    run(shell, "%resume latest")
    assert run(shell, "%compress")[0].status == "LOSS_ABOVE_LIMIT"
    assert run(shell, '%compress --dry-run --pin "port 5433" --accept-loss')[0].summary.count("port 5433") == 1
    assert run(shell, "%compress --pin port 5433 --dry-run --accept-loss")[0].summary.count("port 5433") == 1
    assert run(shell, "%compress --accept-loss")[0].status == "COMPRESSED"
