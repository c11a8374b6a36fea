"""The vectors, the cases and the corpus that lie beside the repository."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import load_module

import gemnb
from gemnb.model.turns import wire_contents
from gemnb.services.projection import history
from gemnb.store.replay import read_session

HERE = Path(__file__).parent
BETTER = {
    "identifiers-021": "a unique prefix of an id resolves",
    "retention-029": "minRetention holds against maxCount, too",
    "retention-034": "half a session is no count: nothing is cleaned, and the plan says why",
    "retention-048": "a time to come is not trusted: the file's own stands in",
    "retention-050": "what holds nothing to resume is listed for a person, not deleted",
    "retention-051": "a start-up twin takes no conversation along",
    "retention-052": "a start-up twin is no session, so it is not counted",
    "retention-054": "the older form of a session that was used today is as young as that",
    "retention-066": "a maxAge below minRetention disables the cleaning of outputs, too",
    "deletion-002": "identifiers are the same everywhere, and a file's name is none",
    "deletion-003": "identifiers are the same everywhere, and a file's name is none",
    "deletion-004": "identity is the full id: a namesake of 8 characters stays",
    "deletion-006": "a unique prefix of an id resolves",
    "deletion-008": "what names no session is an error, which says so",
    "deletion-012": "identity is the id in the file, not the one of its name",
}
"""Vectors where gemnb answers otherwise, with the reason; FORMAT.md says each of them."""
WITH_TRAPS = ("retention", "deletion")
"""Of these the vectors on the client's faults are judged, too, so that `BETTER` is all that differs."""
OTHERWISE_READ = {
    "memory-imports-008": "a fence of tildes is code",
    "memory-imports-009": "an indented block is code",
    "memory-imports-011": "inline code ends with its paragraph",
    "memory-imports-015": "a fence that is never closed goes to the end",
    "memory-imports-028": "the punctuation of a sentence is no part of a path",
    "memory-imports-035": "a byte order mark is no part of a text",
    "memory-discovery-011": "a workspace has one root",
    "memory-discovery-015": "no tool of ours reads files, so no folder is looked at later",
    "memory-discovery-016": "no tool of ours reads files, so no folder is looked at later",
}
"""Memory vectors that gemnb does not answer as the client does, with the reason; tests of their own hold it to that."""
AREAS = ("foundation", "frames", "compression", "checkpoints", "export", "retention", "memory", "trust")
"""Areas of the cases that hold."""


@pytest.fixture(scope="module")
def answer(shared: Path) -> object:
    return load_module(HERE / "vectors" / "answer.py")


@pytest.mark.parametrize(
    "name",
    [
        "record-parsing",
        "client-history",
        "identifiers",
        "listing",
        "titles",
        "slugs",
        "split-point",
        "token-estimate",
        "curated-history",
        "checkpoints",
        "memory-imports",
        "memory-discovery",
        "retention",
        "deletion",
    ],
)
def test_vectors_agree(shared: Path, answer: object, name: str) -> None:
    runner = load_module(shared / "tools" / "run_vectors.py")
    told = json.loads((shared / "vectors" / f"{name}.json").read_text())
    wrong = {}
    asked = 0
    for vector in told["vectors"]:
        if vector.get("trap") and name not in WITH_TRAPS:
            continue
        got = answer.answer({"now": told["now"], **vector["input"]})  # type: ignore[attr-defined]
        if got.get("skip"):
            continue
        asked += 1
        want = vector["expected"]
        if got["ok"] != want["ok"] or (
            want["ok"]
            and not runner.equal(runner.expand(json.loads(json.dumps(got["result"]))), runner.expand(want["result"]))
        ):
            wrong[vector["id"]] = got
    better = {id: why for id, why in BETTER.items() if id.startswith(f"{name}-")}
    assert asked and {id: got for id, got in wrong.items() if id not in better} == {}
    assert better.keys() <= wrong.keys()  # else the list says what is not so


@pytest.mark.parametrize("name", ["memory-imports", "memory-discovery"])
def test_every_memory_vector_that_is_left_out_has_its_reason(shared: Path, answer: Any, name: str) -> None:
    told = json.loads((shared / "vectors" / f"{name}.json").read_text())
    left_out = {
        vector["id"]
        for vector in told["vectors"]
        if vector.get("trap") or answer.answer({"now": told["now"], **vector["input"]}).get("skip")
    }

    assert left_out == {id for id in OTHERWISE_READ if id.startswith(name)}


@pytest.mark.parametrize("area", AREAS)
def test_cases_hold(shared: Path, area: str) -> None:
    command = [sys.executable, str(shared / "tools/run_cases.py"), str(shared / "cases"), "--area", area, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    told = json.loads(done.stdout)

    assert told["of"] > 0
    assert [r for r in told["results"] if not r["ok"]] == []


OTHERWISE = {
    ("compression-auto", 2): "the client compressed before it sent",
    ("rewind", 3): "the person rewound after the resume",
    ("legacy-json", 3): "a call without a result gets an error in its place",
    ("legacy-json", 5): "a call without a result gets an error in its place",
    ("legacy-json", 6): "a call without a result gets an error in its place",
    ("slash-only", 8): "a prompt that begins with / but was answered stays",
    ("slash-only", 9): "a prompt that begins with ? but was answered stays",
}
"""Resumes of the corpus after which we would send something else, and why."""


def resumes(shared: Path) -> list[tuple[Path, dict[str, object]]]:
    return [
        (case, json.loads(line))
        for case in sorted((shared / "corpus").iterdir())
        if (case / "resume.jsonl").exists()
        for line in (case / "resume.jsonl").read_text("utf-8").strip("\n").split("\n")
    ]


def test_the_corpus_is_sent_as_the_client_sent_it(shared: Path) -> None:
    compared = 0
    for case, told in resumes(shared):
        names = [Path(f).name for f in told["session_files"]]  # type: ignore[attr-defined]
        folder = case / "snapshots" / str(told["snapshot"]).rsplit("/", 1)[-1]
        sessions = [read_session(path) for name in names for path in folder.rglob(name)]
        sessions = [s for s in sessions if history(s.messages).turns] or sessions
        if not sessions or (case.name, told["step"]) in OTHERWISE:
            continue
        session = max(sessions, key=lambda s: s.last_updated)  # type: ignore[arg-type,return-value]
        compared += 1
        assert wire_contents(history(session.messages).turns) == sent(told["contents"]), (case.name, told["step"])
    assert compared >= 30


def sent(contents: object) -> list[dict[str, object]]:
    """What the client sent, without the injected context, the doubled results and the newest prompt."""
    found = []
    for content in contents:  # type: ignore[attr-defined]
        parts: list[dict[str, object]] = []
        for part in content["parts"]:
            text = str(part.get("text", "")).strip()
            context = text.startswith("<session_context>") and text.endswith("</session_context>")
            if not context and not ("functionResponse" in part and part in parts):
                parts.append(part)
        if parts:
            found.append({"role": content["role"], "parts": parts})
    found[-1]["parts"].pop()  # type: ignore[attr-defined]
    return [content for content in found if content["parts"]]


ROW = re.compile(r"^\s+(\d+)\. (.*) \(([^()]*)\) \[([^\]]+)\]$", re.MULTILINE)


def listings(shared: Path) -> list[tuple[Path, str, str]]:
    """The last listing of each case after which nothing was changed: case, folder it was made in, what it printed."""
    found = []
    for case in sorted((shared / "corpus").iterdir()):
        if not (case / "steps.jsonl").exists():
            continue
        steps = [json.loads(line) for line in (case / "steps.jsonl").read_text("utf-8").strip("\n").split("\n")]
        last: dict[str, str] = {}
        for step in steps:
            if step.get("argv") == ["--list-sessions"] and step["rc"] == 0:
                last[step["cwd"]] = step["stdout"]
            elif "--list-sessions" not in (step.get("argv") or []):
                last.pop(step.get("cwd", ""), None)
        found += [(case, cwd, printed) for cwd, printed in last.items()]
    return found


def test_the_corpus_is_listed_as_the_client_listed_it(shared: Path, tmp_path: Path) -> None:
    relocate = shared / "tools" / "relocate.py"
    compared = 0
    for case, cwd, printed in listings(shared):
        place = tmp_path / f"{case.name}-{compared}"
        subprocess.run([sys.executable, str(relocate), str(case), str(place)], check=True, capture_output=True)
        rows = gemnb.open_workspace(place / cwd, home=place / "home").sessions()
        told = ROW.findall(printed)
        compared += 1
        assert [(str(r.index), r.id) for r in rows] == [(n, id) for n, _, _, id in told], case.name
        for row, (_, title, _, _) in zip(rows, told, strict=True):
            assert ascii_only(title) in {ascii_only(t or "") for t in (row.title, row.prompt, row.summary)}, case.name
    assert compared >= 5


def ascii_only(text: str) -> str:
    """What the client leaves of a title."""
    return " ".join(re.sub(r"[^ -~]", "", text).split())
