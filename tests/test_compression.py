"""Compression: where a talk is cut, what is asked, what comes of it; nothing but success changes anything."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gemini, header, user

import gemnb
from gemnb.errors import GemnbWarning, LlmError, NothingToUndoError
from gemnb.model.turns import Turn
from gemnb.services.compression import Status
from gemnb.services.split import is_cut, kept_from, split_point
from gemnb.testing import ScriptedLlm

SNAP = "<state_snapshot>The log was read. Never push. config/a.yaml.</state_snapshot>"
LONG = "line of log; " * 400
LINES: list[Any] = [
    user("u1", "Read config/a.yaml. Never push."),
    gemini("g1", LONG),
    user("u2", "Then mend it"),
    gemini("g2", "Mended."),
]


@pytest.fixture
def path(write_session: Any) -> Path:
    found: Path = write_session(header(), *LINES)
    return found


def chat_of(ws: gemnb.Workspace, *replies: Any) -> gemnb.Chat:
    ws.llm = ScriptedLlm(*replies)
    return ws.resume()


CONTENT = st.sampled_from(["prompt", "answer", "call"])


@st.composite
def talks(draw: st.DrawFn) -> list[Turn]:
    turns: list[Turn] = []
    for n, kind in enumerate(draw(st.lists(CONTENT, max_size=12))):
        text = "x" * draw(st.integers(1, 200))
        if kind == "call":
            turns.append(Turn(f"{n}", "model", ({"functionCall": {"id": f"{n}", "name": "f", "args": {"a": text}}},)))
            turns.append(Turn(f"{n}r", "user", ({"functionResponse": {"id": f"{n}", "name": "f", "response": {}}},)))
        else:
            turns.append(Turn(f"{n}", "user" if kind == "prompt" else "model", ({"text": text},)))
    return turns


@given(talks(), st.floats(0.01, 0.99))
def test_a_split_never_parts_a_call_from_its_response(turns: list[Turn], fraction: float) -> None:
    split = split_point([turn.content for turn in turns], fraction)
    gone, kept = turns[:split], turns[split:]
    assert not {c["id"] for t in gone for c in t.calls} & {r["id"] for t in kept for r in t.responses}


@given(talks())
def test_the_last_prompt_is_always_kept(turns: list[Turn]) -> None:
    prompts = [n for n, turn in enumerate(turns) if is_cut(turn.content)]
    assert kept_from(turns, {turn.id for turn in turns}) <= (prompts[-1] if prompts else 0)


@pytest.mark.parametrize(
    "result", [[{"text": "ok"}], [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}], [], "ok", None]
)
def test_a_talk_is_not_cut_between_a_call_and_what_came_of_it(
    ws: gemnb.Workspace, write_session: Any, result: Any
) -> None:
    called = {"id": "c1", "name": "look", "args": {}, "status": "success", "result": result}
    write_session(
        header(),
        user("u0", "Look. " * 200),
        gemini("g0", "Seen."),
        user("u1", "Read it. " * 300),
        gemini("g1", LONG, toolCalls=[called]),
        user("u2", "More"),
    )
    chat = chat_of(ws, SNAP, SNAP)

    assert chat.compress(floor={}).status is Status.COMPRESSED
    assert [m.id for m in chat.messages][2:] in (["u1", "g1", "u2"], ["u2"])


@pytest.mark.parametrize("fraction", [0, 1, -0.5, 2])
def test_a_fraction_is_between_nothing_and_all(fraction: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_point([], fraction)


def test_success_is_one_line_and_nothing_above_it_is_touched(ws: gemnb.Workspace, path: Path) -> None:
    before = path.read_bytes()
    result = chat_of(ws, SNAP, SNAP).compress()
    after = path.read_bytes()
    assert result.status is Status.COMPRESSED
    assert result.tokens_after < result.tokens_before
    assert after.startswith(before)
    assert after[len(before) :].count(b"\n") == 1
    assert [m.id for m in ws.load(1).messages][2:] == ["u2", "g2"]


def test_compress_then_undo_is_the_talk_as_it_was_even_after_a_restart(ws: gemnb.Workspace, path: Path) -> None:
    chat = chat_of(ws, SNAP, SNAP)
    before = chat.contents()
    chat.compress()
    assert chat.contents() != before
    ws.chat = None
    chat = ws.resume()
    chat.undo_compression()
    assert chat.contents() == before
    assert [t.content for t in ws.history(1).turns] == [t.content for t in chat.turns]
    with pytest.raises(NothingToUndoError):
        chat.undo_compression()


def test_twice_is_once(ws: gemnb.Workspace, path: Path) -> None:
    chat = chat_of(ws, SNAP, SNAP)
    chat.compress()
    once = path.read_bytes()
    assert chat.compress().status is Status.NOOP
    assert path.read_bytes() == once


def cut_off(text: str) -> dict[str, Any]:
    return {"parts": text, "finish": "MAX_TOKENS"}


FAILURES: dict[str, tuple[Any, ...]] = {
    "blank": (" \n", " "),
    "only a thought": ([{"text": "hm", "thought": True}], " "),
    "cut off": (cut_off(SNAP), SNAP),
    "safety": ({"parts": "", "finish": "SAFETY"}, SNAP),
    "blocked": ({"parts": "", "blocked": "SAFETY"}, SNAP),
    "larger": (SNAP, "<state_snapshot>" + LONG * 3 + "</state_snapshot>"),
    "a rule lost": ("<state_snapshot>config/a.yaml</state_snapshot>",) * 2,
    "the service fails first": (LlmError("no"),),
    "the service fails second": (SNAP, LlmError("no")),
    "an interrupt first": (KeyboardInterrupt(),),
    "an interrupt second": (SNAP, KeyboardInterrupt()),
}


@pytest.mark.parametrize("replies", FAILURES.values(), ids=FAILURES)
def test_no_failure_changes_the_file_or_the_talk(
    ws: gemnb.Workspace, home: Path, path: Path, replies: tuple[Any, ...]
) -> None:
    before = {p: p.read_bytes() for p in home.rglob("*") if p.is_file()}
    chat = chat_of(ws, *replies)
    contents = chat.contents()
    try:
        result = chat.compress()
    except (LlmError, KeyboardInterrupt):
        pass
    else:
        assert not result.changed, result
    assert chat.contents() == contents
    assert {p: p.read_bytes() for p in home.rglob("*") if p.is_file()} == before


def test_the_second_request_names_what_the_first_answer_lost(ws: gemnb.Workspace, path: Path) -> None:
    llm = ScriptedLlm("<state_snapshot>read</state_snapshot>", SNAP)
    ws.llm = llm
    result = ws.resume().compress()
    assert result.status is Status.COMPRESSED
    asked = llm.asked[1][-1].text
    assert "Never push." in asked
    assert "config/a.yaml" in asked


def test_a_loss_is_told_can_be_taken_and_can_be_pinned(ws: gemnb.Workspace, path: Path) -> None:
    poor = "<state_snapshot>read</state_snapshot>"
    chat = chat_of(ws, *[poor] * 6)
    refused = chat.compress()
    assert refused.status is Status.LOSS_ABOVE_LIMIT
    assert "lost constraint: Never push." in str(refused)
    assert chat.compress(pins=["Never push"], dry_run=True).status is Status.COMPRESSED
    taken = chat.compress(floor={})
    assert taken.status is Status.COMPRESSED
    assert taken.audit.recall["constraint"] == 0


def test_a_dry_run_tells_and_changes_nothing(ws: gemnb.Workspace, path: Path) -> None:
    before = path.read_bytes()
    result = chat_of(ws, SNAP, SNAP).compress(dry_run=True)
    assert (result.status, result.dry_run) == (Status.COMPRESSED, True)
    assert path.read_bytes() == before


def with_outputs() -> list[Any]:
    lines: list[Any] = [user("u1", "Read both")]
    for n in (1, 2):
        call = {"functionCall": {"id": f"c{n}", "name": "read", "args": {}}}
        told = {"functionResponse": {"id": f"c{n}", "name": "read", "response": {"output": f"{n} " + "x" * 160_000}}}
        lines.append(
            gemini(f"g{n}", [call]) | {"toolCalls": [{"id": f"c{n}", "name": "read", "args": {}, "result": [told]}]}
        )
    return [*lines, gemini("g3", "Read."), user("u2", "Go on"), gemini("g4", "Done.")]


def settings(home: Path, threshold: float) -> None:
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(f'{{"model": {{"compressionThreshold": {threshold}}}}}')


def test_after_a_failure_of_its_own_it_only_trims_and_keeps_the_whole_output(
    ws: gemnb.Workspace, home: Path, write_session: Any
) -> None:
    settings(home, 1e-6)
    write_session(header(), *with_outputs())
    chat = chat_of(ws, " ", "Answer.")
    assert chat.compress(force=False).status is Status.EMPTY_SUMMARY
    assert not list(home.rglob("tool-outputs/**/*.txt")), "what failed leaves no file"
    result = chat.compress(force=False)
    assert result.status is Status.CONTENT_TRUNCATED
    (kept,) = home.rglob("tool-outputs/**/*.txt")
    assert kept.read_text() == "1 " + "x" * 160_000
    assert str(kept) in str(chat.contents())
    assert "2 xxx" in str(chat.contents())


def test_a_long_talk_is_compressed_before_the_prompt_and_says_so(ws: gemnb.Workspace, home: Path, path: Path) -> None:
    settings(home, 1e-6)
    chat = chat_of(ws, SNAP, SNAP, "Answer.")
    with pytest.warns(GemnbWarning, match="COMPRESSED"):
        reply = chat.send("And now?")
    assert reply.text == "Answer."
    assert "state_snapshot" in str(ws.llm.asked[-1])  # type: ignore[attr-defined]
    assert [m.text for m in chat.messages][-2:] == ["And now?", "Answer."]


def test_a_failing_compression_does_not_stop_the_prompt(ws: gemnb.Workspace, home: Path, path: Path) -> None:
    settings(home, 1e-6)
    chat = chat_of(ws, LlmError("503"), "Answer.")
    with pytest.warns(GemnbWarning, match="503"):
        assert chat.send("And now?").text == "Answer."


def test_a_short_talk_is_left_alone(ws: gemnb.Workspace, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chat_of(ws, "Answer.").send("And now?").text == "Answer."
