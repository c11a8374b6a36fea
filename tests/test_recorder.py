"""Whatever a talk does, its file folds to the same talk here and as the client reads it, and keeps the whole bill."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NOW

import gemnb
from gemnb.errors import GemnbError, NothingToUndoError
from gemnb.services import past
from gemnb.services.chat import Cancelled
from gemnb.services.projection import history
from gemnb.store.replay import read_fold, read_session
from gemnb.testing import ScriptedLlm

CALL = {"functionCall": {"name": "look", "args": {"table": "川"}}}
SNAPSHOT = "<state_snapshot>short</state_snapshot>"
REPLIES: list[Any] = [
    "Yes.",
    [{"text": "Look:"}, CALL],
    [CALL, CALL],
    {"parts": [], "finish": "SAFETY"},
    {"parts": [{"text": "cut"}], "finish": "MAX_TOKENS"},
    [{"text": "t", "thought": True}, {"text": "x", "thoughtSignature": "c2ln"}],
    KeyboardInterrupt(),
    ConnectionError("gone"),
]


def look(table: str) -> str:
    """Look."""
    return table


def do(chat: Any, step: tuple[str, Any]) -> None:
    """One thing that a person does; what cannot be done is told as an error."""
    what, with_ = step
    try:
        if what == "send":
            chat._llm()._replies = [REPLIES[with_]]
            chat.send("長い question " * 20)
        elif what == "rewind":
            chat.rewind(with_)
        elif what == "compress":
            chat._llm()._replies = [SNAPSHOT, SNAPSHOT]
            chat.compress()
        else:
            getattr(chat, what)()
    except (GemnbError, Cancelled):
        return


steps = st.lists(
    st.tuples(st.just("send"), st.integers(0, len(REPLIES) - 1))
    | st.tuples(st.just("rewind"), st.integers(1, 4))
    | st.tuples(st.sampled_from(["compress", "undo_compression", "undo_rewind"]), st.none()),
    max_size=10,
)


@pytest.mark.filterwarnings("ignore:Nothing is left to resume")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(steps)
def test_a_talk_reads_back_as_it_is(tmp_path_factory: Any, told: list[tuple[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("talk")
    (folder / "app").mkdir()
    ws = gemnb.open_workspace(folder / "app", home=folder / "home", llm=ScriptedLlm(default="Aye."), clock=lambda: NOW)
    chat = ws.new_chat()
    chat.tools = [look]
    paid: dict[str, Any] = {}
    for step in [("send", 0), *told]:
        do(chat, step)
        paid |= {m.id: m.tokens for m in chat.messages if m.tokens}

    path = chat.recording.path
    session = read_session(path)
    seen = read_fold(path, as_client=True)

    assert [m.id for m in session.messages] == [m.id for m in chat.messages] == list(seen.live)
    assert history(session.messages).turns == tuple(chat.turns)
    assert {id: m.tokens for id, m in session.usage.items()} == paid
    assert not session.damage and path.read_bytes().isascii() and path.read_bytes().endswith(b"\n")


@pytest.mark.filterwarnings("ignore:Nothing is left to resume")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 3))
def test_compress_then_undo_is_the_talk_as_it_was(tmp_path_factory: Any, prompts: int, after: int) -> None:
    folder = tmp_path_factory.mktemp("undo")
    (folder / "app").mkdir()
    ws = gemnb.open_workspace(folder / "app", home=folder / "home", llm=ScriptedLlm(default="Aye."), clock=lambda: NOW)
    chat = ws.new_chat()
    for _ in range(prompts + 1):
        chat.send("A question that is long enough to be worth a summary. " * 9)
    before = chat.contents()
    ws.llm._replies = [SNAPSHOT, SNAPSHOT]  # type: ignore[attr-defined]

    result = chat.compress()
    assert result.status == "COMPRESSED" and result.tokens_after < result.tokens_before
    asked = len(ws.llm.asked)  # type: ignore[attr-defined]
    assert chat.compress().status == "NOOP" and len(ws.llm.asked) == asked  # type: ignore[attr-defined]
    for _ in range(after):
        chat.send("More.")
    chat.undo_compression()

    assert chat.contents()[: len(before)] == before
    assert len(chat.contents()) == len(before) + 2 * after


@pytest.mark.filterwarnings("ignore:Nothing is left to resume")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["send", "rewind", "compress", "undo_rewind", "undo_compression", "restart"]), max_size=14
    ),
    st.sampled_from([1, 2, past.KEPT]),
)
def test_each_undo_brings_back_the_talk_before_the_last_step(
    tmp_path_factory: Any, monkeypatch: pytest.MonkeyPatch, told: list[str], kept: int
) -> None:
    monkeypatch.setattr(past, "KEPT", kept)  # the older ones come from the disk
    folder = tmp_path_factory.mktemp("steps")
    (folder / "app").mkdir()
    llm = ScriptedLlm(default="Aye.")
    ws = gemnb.open_workspace(folder / "app", home=folder / "home", llm=llm, clock=lambda: NOW)
    chat = ws.new_chat()
    for _ in range(3):
        chat.send("A question that is long enough to be worth a summary. " * 9)
    stack: list[tuple[str, list[str], list[str]]] = []  # a step, the talk before it, and what was said since

    for what in told:
        before = [m.id for m in chat.messages]
        if what == "send":
            chat.send("A further question, long enough to be worth a summary. " * 9)
            if stack:
                stack[-1][2].extend(m.id for m in chat.messages[len(before) :])
        elif what == "restart":
            ws.chat = None
            chat = ws.resume(chat.session_id)
            assert [m.id for m in chat.messages] == before
        elif what.startswith("undo"):
            step = what.removeprefix("undo_")
            if stack and stack[-1][0] == step:
                _, expected, since = stack.pop()
                getattr(chat, what)()
                assert [m.id for m in chat.messages] == [*expected, *since]
                if stack:
                    stack[-1][2].extend(since)
            else:
                with pytest.raises(NothingToUndoError):
                    getattr(chat, what)()
                assert [m.id for m in chat.messages] == before
        else:
            llm._replies = [SNAPSHOT, SNAPSHOT]
            with suppress(GemnbError):
                chat.compress(floor={}) if what == "compress" else chat.rewind(2)
            llm._replies = []
            if [m.id for m in chat.messages] != before:
                stack.append((what.replace("compress", "compression"), before, []))


def test_only_the_lines_are_written(home: Path, root: Path, write_session: Callable[..., Path]) -> None:
    ws = gemnb.open_workspace(root, home=home, llm=ScriptedLlm(default="Aye."), clock=lambda: NOW)
    chat = ws.new_chat()
    chat.send("a")
    path = chat.recording.path
    first = path.stat().st_size

    for _ in range(10):
        chat.send("a")

    lines = path.read_bytes()[first:].splitlines(keepends=True)
    assert len(lines) == 40 and sum(map(len, lines)) == path.stat().st_size - first


def test_a_compression_tells_tokens_and_money(home: Path, root: Path) -> None:
    llm = ScriptedLlm(default="Aye.", name="gemini-2.5-pro")
    ws = gemnb.open_workspace(root, home=home, llm=llm, clock=lambda: NOW)
    chat = ws.new_chat()
    for _ in range(3):
        chat.send("A question that is long enough to be worth a summary. " * 20)
    llm._replies = [SNAPSHOT, SNAPSHOT]

    told = str(chat.compress())

    assert "tokens before" in told and "Each request costs about $0.0" in told
    assert chat.messages[0].text == SNAPSHOT and next(iter(ws.sessions())).title.startswith("A question that is long")
