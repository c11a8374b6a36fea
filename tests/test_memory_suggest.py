"""Facts worth keeping: which sessions are looked at, what is found, and patches that fit."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support import NOW, gemini, header, to_bytes, user

import gemnb
from gemnb.errors import LlmError, MemoryFileError
from gemnb.model.session import Session
from gemnb.services.memory_suggest import look_through, propose, suggest
from gemnb.store.replay import read_session
from gemnb.testing import ScriptedLlm

IDS = [f"aa11bb2{n}-0000-4000-8000-00000000000a" for n in range(3)]


def shell(command: str, *, status: str = "success", output: str = "ok") -> dict[str, Any]:
    result = [{"functionResponse": {"name": "run_shell_command", "response": {"output": output}}}]
    return {"id": "c", "name": "run_shell_command", "args": {"command": command}, "status": status, "result": result}


def talk(folder: Path, number: int, *said: str, calls: Any = (), prompts: int = 10, idle: float = 4) -> Session:
    at = f"{NOW - timedelta(hours=idle):%Y-%m-%dT%H:%M:%S}.000Z"
    texts = [*said, *(f"Word {n}" for n in range(prompts - len(said)))]
    lines = [header(IDS[number], startTime=at, lastUpdated=at)]
    for n, text in enumerate(texts):
        lines += [user(f"u{n}", text, timestamp=at), gemini(f"g{n}", "Yes", timestamp=at, toolCalls=list(calls))]
    path = folder / f"session-2026-05-20T08-00-{IDS[number][:8]}.jsonl"
    path.write_bytes(to_bytes(*lines))
    return read_session(path)


@pytest.mark.parametrize(
    "said",
    ["Always use British spelling.", "以后请用制表符分隔", "必ずテストを先に書いてください", "I prefer short answers"],
)
def test_a_stated_preference_is_found_with_its_source(tmp_path: Path, said: str) -> None:
    (one,) = suggest([talk(tmp_path, 0, said)], now=NOW)

    assert one.kind == "preference" and one.fact in said
    assert IDS[0] in str(one) and "u0" in str(one)


@pytest.mark.parametrize(
    "said",
    [
        "Do you always use tabs?",
        "Always look at line 42",
        "Always log in with password=hunter22secret",
        "Always read @secret.md",
        "Make a table",
        "Always " + "x" * 300,
    ],
)
def test_what_is_no_lasting_fact_is_not(tmp_path: Path, said: str) -> None:
    assert suggest([talk(tmp_path, 0, said)], now=NOW) == []


@pytest.mark.parametrize(
    ("more", "seen"), [({"idle": 2.9}, set()), ({"prompts": 9}, set()), ({}, {IDS[0]})], ids=["busy", "short", "seen"]
)
def test_some_sessions_are_not_looked_at(tmp_path: Path, more: Any, seen: set[str]) -> None:
    assert suggest([talk(tmp_path, 0, "Always use tabs", **more)], now=NOW, seen=seen) == []


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (shell("pytest -q"), ["`pytest -q` works here"]),
        (shell("pytest -q", status="error"), []),
        (shell("pytest -q", output="Exit Code: 1"), []),
        (shell("ls -l"), []),
        (shell("curl https://me:hunter22@example.org"), []),
    ],
)
def test_a_command_counts_where_it_worked_in_several_sessions(tmp_path: Path, call: Any, found: list[str]) -> None:
    sessions = [talk(tmp_path, n, calls=[call]) for n in range(2)]

    assert [s.fact for s in suggest(sessions, now=NOW)] == found
    assert suggest(sessions[:1], now=NOW) == []


def test_a_correction_counts_when_repeated(tmp_path: Path) -> None:
    once = talk(tmp_path, 0, "No, use tabs.")
    again = talk(tmp_path, 1, "I said: use tabs")

    assert suggest([once], now=NOW) == []
    assert [(s.kind, len(s.sources)) for s in suggest([once, again], now=NOW)] == [("correction", 2)]


@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        ("1. Use tabs\n9. Invented", ["Use tabs"]),
        ("none", []),
        (LlmError("down"), ["Always use tabs"]),
        ("1. The password=hunter22secret", []),
    ],
)
def test_a_model_words_facts_but_adds_none(tmp_path: Path, reply: Any, facts: list[str]) -> None:
    found = suggest([talk(tmp_path, 0, "Always use tabs")], now=NOW, llm=ScriptedLlm(reply))

    assert [s.fact for s in found] == facts and all(s.sources for s in found)


@pytest.mark.parametrize("held", ["", "- keep\n", "- keep", "# R\n\n- a\n"])
@pytest.mark.parametrize("order", [(1, 1), (2, 1)])
def test_proposals_wait_and_fit_in_any_order(ws: gemnb.Workspace, tmp_path: Path, held: str, order: Any) -> None:
    found = suggest([talk(tmp_path, 0, "Always use tabs", "Never use pip")], now=NOW)
    memory = ws.memory()
    target = memory.targets["private"]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(held)

    assert len(propose(found, memory.folder, target)) == 2
    assert propose(found, memory.folder, target) == [] and target.read_text() == held
    assert IDS[0] in repr(memory.inbox())
    for number in order:
        ws.memory().apply(number)

    assert target.read_text().startswith(held)
    assert {"- Always use tabs", "- Never use pip"} <= set(target.read_text().splitlines())


def test_an_inbox_that_is_a_link_is_not_written_to(ws: gemnb.Workspace, tmp_path: Path) -> None:
    found = suggest([talk(tmp_path, 0, "Always use tabs")], now=NOW)
    memory = ws.memory()
    memory.folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "else").mkdir()
    (memory.folder / ".inbox").symlink_to(tmp_path / "else")

    with pytest.raises(MemoryFileError, match="no folder"):
        propose(found, memory.folder, memory.targets["private"])
    assert not list((tmp_path / "else").iterdir())


def test_a_session_is_looked_at_once(ws: gemnb.Workspace, write_session: Any, tmp_path: Path) -> None:
    path = talk(tmp_path, 0, "Always use tabs").path
    assert path
    write_session(*path.read_bytes().splitlines(keepends=True), name=path.name)

    def look() -> list[Path]:
        return look_through(ws.sessions(), ws.store.load, ws.memory(), now=NOW)

    assert len(look()) == 1 and look() == []
    ws.memory().dismiss(1)
    assert look() == []
