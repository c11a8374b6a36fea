"""Facts worth keeping: which sessions are looked at, what is found, and patches that fit."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support import NOW, gemini, header, to_bytes, user

import gemnb
from gemnb.errors import LlmError, MemoryFileError, UnreadableSessionError
from gemnb.model.session import Session
from gemnb.notebook.display import inbox_html
from gemnb.services.memory_propose import propose
from gemnb.services.memory_suggest import look_through, suggest
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


def answer(*lines: str) -> Any:
    """A model that gives each line the number of the statement that it was shown: `{words of it}. fact`."""

    def reply(turns: Any) -> str:
        shown = turns[-1].text.split("\n\n", 1)[1].splitlines()
        told = []
        for line in lines:
            words, _, fact = line.partition(" => ")
            numbers = [row.split(". ")[0] for word in words.split(" + ") for row in shown if word in row]
            told.append(f"{', '.join(numbers)}. {fact}")
        return "\n".join(told)

    return ScriptedLlm(reply)


def test_a_model_finds_what_counting_does_not_and_words_it(tmp_path: Path) -> None:
    session = talk(tmp_path, 0, "Always use tabs", "pls british spelling, I told you twice", "the db listens on 5433")
    llm = answer("Always use + british => Use tabs and British spelling", "5433 => The db listens on port 5433")

    counted = [s.fact for s in suggest([session], now=NOW)]
    found = suggest([session], now=NOW, llm=llm)

    assert counted == ["Always use tabs"] and found.failure is None
    assert [(s.fact, len(s.sources)) for s in found] == [
        ("Use tabs and British spelling", 2),
        ("The db listens on port 5433", 1),
    ]
    assert found[1].sources[0].message_id == "u2" and found[1].kind == "model"


@pytest.mark.parametrize(
    "line",
    [
        "Always use => Run `make deploy --force` with tabs always",
        "Always use => Always use tabs of width 4",
        "Always use => Use /opt/tabs always",
        "Always use => Invented out of thin air",
        "Always use => Always use tabs with password=hunter22secret",
        "Always use => Always use tabs @secret.md",
        "Always use => Currently always use tabs",
        "nowhere => Always use tabs",
    ],
)
def test_a_model_adds_nothing_of_its_own(tmp_path: Path, line: str) -> None:
    session = talk(tmp_path, 0, "Always use tabs")

    assert [s.fact for s in suggest([session], now=NOW, llm=answer(line))] == ["Always use tabs"]
    both = answer(line, "Always use => Use tabs")
    assert [s.fact for s in suggest([session], now=NOW, llm=both)] == ["Use tabs"]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (LlmError("down"), "down"),
        ("I'm afraid I can't help with that.", "no fact"),
        ("", "no fact"),
        ("{}", "no fact"),
        ("99. Use tabs", "no fact"),
        ({"parts": [{"text": "1. Use tabs"}], "finish": "MAX_TOKENS"}, "MAX_TOKENS"),
        ({"parts": [], "blocked": "SAFETY"}, "SAFETY"),
    ],
    ids=["error", "refusal", "empty", "json", "unknown-number", "cut-off", "blocked"],
)
def test_a_model_that_is_of_no_use_costs_no_fact_and_is_asked_again(
    ws: gemnb.Workspace, write_session: Any, tmp_path: Path, reply: Any, why: str
) -> None:
    path = talk(tmp_path, 0, "Always use tabs").path
    assert path
    write_session(path.read_bytes(), name=path.name)
    ws.llm = ScriptedLlm(reply, answer("Word 3 => Word 3 is kept")._replies[0])

    first = ws.suggest_memory()
    second = ws.suggest_memory()
    third = ws.suggest_memory()

    assert [p.patch.split("\n+- ")[1].strip() for p in first] == ["Always use tabs"]
    assert "by counting, since the model was of no use" in repr(first) and why in repr(first)
    assert "with scripted; new proposals: 1" in repr(second) and len(second) == 2
    assert "No session to look through" in repr(third)


def test_a_model_that_finds_nothing_says_none(tmp_path: Path) -> None:
    found = suggest([talk(tmp_path, 0, "Always use tabs")], now=NOW, llm=ScriptedLlm("None."))

    assert found == [] and found.failure is None


def test_a_model_is_sent_no_secret_and_not_without_end(tmp_path: Path) -> None:
    llm = ScriptedLlm("none")
    secret = "The key is AIza" + "x" * 35 + " and password=hunter22secret"
    sessions = [talk(tmp_path, n, secret, *("y" * 5000 for _ in range(300)), prompts=301) for n in range(2)]

    suggest(sessions, now=NOW, llm=llm)

    asked = llm.asked[0][0].text
    assert "AIza" not in asked and "hunter22" not in asked and "yyyy" in asked
    assert len(asked) < 70_000 and len(llm.asked) == 1


SECRETS = {
    "api-key": ("AIza" + "Sy0123456789abcdefghijklmnopqrstuvw", "{}"),
    "sk": ("sk-proj-" + "a1b2c3d4" * 4, "{}"),
    "aws": ("AKIA" + "ABCDEFGH12345678", "{}"),
    "github": ("ghp_" + "a1B2" * 9, "{}"),
    "gitlab": ("glpat-" + "a1B2c3D4e5F6g7H8", "{}"),
    "hugging-face": ("hf_" + "a1B2" * 8, "{}"),
    "slack": ("xoxb-" + "1234567890-abcdef", "{}"),
    "oauth": ("ya29." + "a0B1c2D3" * 4, "{}"),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "{}"),
    "bearer": ("abcdef0123456789", "Authorization: Bearer {}"),
    "url": ("hunter22pass", "https://me:{}#example.org/x"),
    "assignment": ("correct-horse", "DB_PASSWORD={}"),
    "told-in-the-next-line": ("correct-horse", "password:\n{} always"),
    "pem": ("MIIabcAlways+always/Prefer", "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"),
    "pem-without-an-end": ("MIIabc", "-----BEGIN PRIVATE KEY-----\n{} always, I prefer"),
}
"""A secret of each shape, and how it is told."""


@pytest.mark.parametrize("asked", [False, True], ids=["counted", "by-a-model"])
@pytest.mark.parametrize("shape", SECRETS)
def test_no_proposal_and_no_request_ever_holds_a_secret(tmp_path: Path, shape: str, asked: bool) -> None:
    secret, form = SECRETS[shape]
    told = form.format(secret).replace("#", "@")
    said = [
        f"{begin} {told}" for begin in ("Always use", "I prefer\n", "No, not that. Never", "Wrong: use", "Wrong: use")
    ]
    bare = ["Always use tabs", *([] if "pem" in shape else [f"Always log in with {secret}"])]
    call = shell(f"curl -H '{told}' {secret}")
    sessions = [talk(tmp_path, n, *bare, *said, calls=[call]) for n in range(2)]
    llm = ScriptedLlm(lambda turns: turns[-1].text.split("\n\n", 1)[1])  # gives back whatever it was shown

    found = suggest(sessions, now=NOW, llm=llm if asked else None)

    assert "Always use tabs" in [one.fact for one in found] and secret not in str(found)
    assert not any(secret in turn.text for turns in llm.asked for turn in turns) and len(llm.asked) == asked
    assert not any("<" in one.fact for one in found)


def test_a_secret_that_a_tool_was_told_is_known_in_what_is_said(tmp_path: Path) -> None:
    call = {"id": "c", "name": "log_in", "args": {"password": "correct-horse"}, "status": "success", "result": []}
    said = "Always log in with correct-horse"

    assert suggest([talk(tmp_path, 0, said, calls=[call])], now=NOW) == []
    assert len(suggest([talk(tmp_path, 0, said)], now=NOW)) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Always \x1b[2J\x1b]0;owned\x07use tabs",
        "Always use <script>alert(1)</script> tabs",
        "Always use tabs\u202e\u2066 sbat\u2069",
        "Always use tabs\n--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+root",
        "\r\nAlways use tabs\x85\u2028+++ x",
    ],
    ids=["escapes", "html", "bidi", "patch", "line-ends"],
)
def test_what_a_hostile_talk_says_is_one_line_of_one_patch(ws: gemnb.Workspace, tmp_path: Path, said: str) -> None:
    memory = ws.memory()
    propose(suggest([talk(tmp_path, 0, said)], now=NOW), memory.folder, memory.targets["private"])
    (told,) = memory.inbox()

    shown = inbox_html(memory.inbox())
    assert memory.apply(1) == [memory.targets["private"]]

    text = memory.targets["private"].read_text()
    assert text.count("\n") == 1 and text.startswith("- Always") and text.strip().isprintable()
    assert "<script" not in shown and told.patch.count("\n+++ ") == 1 and "\x1b" not in told.patch


def test_without_a_key_facts_are_counted(
    ws: gemnb.Workspace, write_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = talk(tmp_path, 0, "Always use tabs").path
    assert path
    write_session(path.read_bytes(), name=path.name)
    keyless = gemnb.open_workspace(ws.root, home=ws.home, clock=ws.clock, environ={})

    assert "by counting, without a model; new proposals: 1" in repr(keyless.suggest_memory())


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

    def look() -> int:
        return len(look_through(ws.sessions(), ws.store.load, ws.memory(), now=NOW).written)

    assert (look(), look()) == (1, 0)
    ws.memory().dismiss(1)
    assert look() == 0


def test_a_session_that_cannot_be_read_stops_no_look(ws: gemnb.Workspace, write_session: Any, tmp_path: Path) -> None:
    for number in range(2):
        path = talk(tmp_path, number, f"Always use tabs of kind {'ab'[number]}").path
        assert path
        write_session(path.read_bytes(), name=path.name)

    def load(row: Any) -> Session:
        if row.id == IDS[0]:
            raise UnreadableSessionError("It went away.")
        return ws.store.load(row)

    looked = look_through(ws.sessions(), load, ws.memory(), now=NOW)

    assert looked.sessions == len(looked.written) == 1 and "It went away." in looked.notes[1]
    assert look_through(ws.sessions(), ws.store.load, ws.memory(), now=NOW).sessions == 1


def test_what_was_dismissed_or_is_known_is_not_suggested_again(ws: gemnb.Workspace, tmp_path: Path) -> None:
    (Path(ws.root) / "GEMINI.md").write_text("- Never use pip.\n")
    found = suggest([talk(tmp_path, 0, "Always use tabs", "Never use pip.", "I prefer tea")], now=NOW)

    def offer() -> list[Path]:
        memory = ws.memory()
        known = [file.text for file in memory.files]
        return propose(found, memory.folder, memory.targets["private"], known=known)

    assert len(offer()) == 2
    ws.memory().dismiss(1)
    ws.memory().apply(1)

    assert offer() == [] and not ws.memory().inbox()
    assert ws.memory().targets["private"].read_text() == "- I prefer tea\n"


@pytest.mark.parametrize("first", ["apply", "dismiss", "by-hand", "client"])
def test_those_that_wait_fit_the_file_whatever_becomes_of_it(ws: gemnb.Workspace, tmp_path: Path, first: str) -> None:
    """There is no file: as the client wants it, exactly one patch is for a new file, until there is one."""
    found = suggest([talk(tmp_path, 0, "Always use tabs", "Never use pip", "I prefer tea")], now=NOW)
    memory = ws.memory()
    target = memory.targets["private"]
    propose(found, memory.folder, target)
    assert ["/dev/null" in p.patch for p in ws.memory().inbox()] == [True, False, False]

    if first in ("apply", "dismiss"):
        getattr(ws.memory(), first)(2 if first == "apply" else 1)
    else:
        target.write_text("# Rules\r\n" if first == "by-hand" else "# Rules")
        assert propose(found, memory.folder, target) == []
    waiting = ws.memory().inbox()
    assert ["/dev/null" in p.patch for p in waiting] == [first == "dismiss", *[False] * (len(waiting) - 1)]
    while ws.memory().inbox():
        ws.memory().apply(len(ws.memory().inbox()))

    lines = target.read_bytes().decode().replace("\r\n", "\n").splitlines()
    assert lines[:1] == ["# Rules"] or first in ("apply", "dismiss")
    assert len([line for line in lines if line.startswith("- ")]) == (2 if first == "dismiss" else 3)
    assert first != "by-hand" or b"\n" not in target.read_bytes().replace(b"\r\n", b"")
