"""Memory: which files, in which order, what is imported; facts added exactly; proposals that wait."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemnb
from gemnb.errors import MemoryFileError, MomentaryFactError
from gemnb.services.memory import load_memory
from gemnb.services.memory_edit import momentary, with_fact
from gemnb.services.memory_files import names_of
from gemnb.services.memory_imports import Resolver, code_spans
from gemnb.testing import ScriptedLlm


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_files_come_in_order_and_once(ws: gemnb.Workspace, root: Path, home: Path) -> None:
    put(root / "GEMINI.md", "Project rule @more.md")
    put(root / "more.md", "More")
    put(home / ".gemini/GEMINI.md", "Global rule")
    put(ws.folder / "memory/MEMORY.md", "Private rule")

    memory = ws.memory()

    assert [f.scope for f in memory.files] == ["global", "private", "project"]
    assert memory.text.index("Global") < memory.text.index("Private") < memory.text.index("More")
    assert f"--- Context from: {root / 'GEMINI.md'} ---" in memory.text


def test_a_file_that_is_met_again_is_used_once(ws: gemnb.Workspace, root: Path, home: Path) -> None:
    put(home / ".gemini/GEMINI.md", "One rule")
    (root / "GEMINI.md").symlink_to(home / ".gemini/GEMINI.md")

    memory = ws.memory()

    assert [file.scope for file in memory.files] == ["global"] and memory.text.count("One rule") == 1
    assert memory.skipped == (f"{root / 'GEMINI.md'}: the same file stands above",)


@pytest.mark.parametrize("kind", ["folder", "pipe", "huge", "dangling"])
def test_what_is_no_file_is_named_and_skipped(ws: gemnb.Workspace, root: Path, kind: str) -> None:
    path = root / "GEMINI.md"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        path.write_bytes(b"x" * 2_000_001)
    else:
        path.symlink_to("nowhere")

    memory = ws.memory()

    assert memory.files == () and str(path) in memory.skipped[0]


@pytest.mark.parametrize(
    "text",
    [
        "```\n@a.md\n```",
        "~~~\n@a.md\n~~~",
        "~~~\n@a.md",
        "x\n\n    @a.md",
        "`@a.md `",
        "``x ` @a.md``",
        "me@a.md",
        "(@a.md)",
    ],
)
def test_nothing_is_imported_in_code_or_words(tmp_path: Path, text: str) -> None:
    put(tmp_path / "a.md", "IMPORTED")

    assert Resolver(tmp_path).resolve(text, tmp_path / "GEMINI.md")[0] == text


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("@a.md", "IMPORTED"),
        ("see @a.md, then", "IMPORTED\n<!-- End of import from: a.md -->, then"),
        ("tick ` here\n\n@a.md\n\nand ` there", "IMPORTED"),
        ("@../out.md", "Path traversal attempt"),
        ("@/etc/passwd", "Path traversal attempt"),
        ("@link.md", "Path traversal attempt"),
        ("@loop.md", "File already processed: loop.md"),
        ("@pipe.md", "Import failed: pipe.md"),
        ("@none.md", "ENOENT"),
        ("@none.md/x", "ENOENT"),
        ("@a.md/x", "ENOTDIR: not a directory"),
        ("@folder", "EISDIR: illegal operation on a directory"),
        ("@https://example.org/a.md", "Path traversal attempt"),
        ("@" + "x" * 300, "ENAMETOOLONG: name too long"),
        ("- item\n\n    @a.md", "IMPORTED"),
        ("- ```\n  @a.md\n  ```\n", "- ```\n  @a.md\n  ```\n"),
        ("> ```\n> @a.md\n\n@a.md", "> @a.md\n\n<!-- Imported"),
        ("1.  x\n\n        @a.md", "        @a.md"),
        ("見\u3000@a.md", "\u3000@a.md"),
        ("@a--><script>.md", "- -><script>"),
    ],
)
def test_imports(tmp_path: Path, text: str, some: str) -> None:
    root = tmp_path / "root"
    put(root / "a.md", "IMPORTED")
    put(root / "loop.md", "again @loop.md")
    put(tmp_path / "out.md", "SECRET")
    (root / "link.md").symlink_to("../out.md")
    os.mkfifo(root / "pipe.md")
    (root / "folder").mkdir()

    told, _ = Resolver(root).resolve(text, root / "GEMINI.md")

    assert some in told and "SECRET" not in told


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.md", "there is no {root}/none.md"),
        ("../out.md", "it lies out of {root}"),
        ("https://example.org/a.md", "nothing is fetched from an address"),
        ("folder", "EISDIR: illegal operation on a directory"),
    ],
)
def test_a_person_is_told_why_an_import_is_skipped(ws: gemnb.Workspace, root: Path, name: str, why: str) -> None:
    (root / "folder").mkdir()
    put(root / "GEMINI.md", f"@{name} ")

    (skipped,) = ws.memory().skipped

    assert skipped.startswith(f"{root / 'GEMINI.md'}: @{name} is not imported: {why.format(root=root)}")


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        ("AGENTS.md", ["AGENTS.md"]),
        (["A.md", " ./b/../B.md ", "A.md"], ["A.md", "B.md"]),
        (".github/rules.md", [".github/rules.md"]),
        (["../A.md", "/A.md", "", "a/../..", ".", "a\0b", 3, None], ["GEMINI.md"]),
        ({"a": 1}, ["GEMINI.md"]),
    ],
)
def test_names_of_memory_files_stay_in_their_folder(setting: object, names: list[str]) -> None:
    assert names_of(setting) == names


def test_of_one_folder_the_files_come_by_name_and_from_the_repository_down(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for place in ("", "Also/"):
        for name in ("Z.md", "A.md"):
            put(tmp_path / place / name, place + name)

    memory = load_memory(tmp_path, tmp_path / "h", tmp_path / "s", cwd=tmp_path / "Also", names=["Z.md", "A.md"])

    assert [file.text for file in memory.files] == ["A.md", "Z.md", "Also/A.md", "Also/Z.md"]
    assert memory.targets["project"] == tmp_path / "Z.md"


def test_a_file_that_imports_itself_is_there_once_more(tmp_path: Path) -> None:
    top = put(tmp_path / "GEMINI.md", "@GEMINI.md")

    told, _ = Resolver(tmp_path).resolve("@GEMINI.md", top)

    assert told.splitlines()[:2] == ["<!-- Imported from: GEMINI.md -->", "<!-- File already processed: GEMINI.md -->"]


SAME, NONE = "@a.md " * 200_000, ("@missing/" + "x" * 90 + ".md\n") * 15_000


@pytest.mark.parametrize(
    ("text", "flat"),
    [("@l0.md", False), (SAME, False), (SAME, True), (NONE, False), (NONE, True)],
    ids=["bomb", "same", "same-flat", "none", "none-flat"],
)
def test_imports_that_multiply_are_bounded(tmp_path: Path, text: str, flat: bool) -> None:
    for level in range(6):
        put(tmp_path / f"l{level}.md", f"@l{level + 1}.md " * 12)
    put(tmp_path / "a.md", "A")
    begun = time.process_time()

    resolver = Resolver(tmp_path, flat=flat)
    told, _ = resolver.resolve(text, tmp_path / "GEMINI.md")

    assert len(told) < len(text) + 500_000 and time.process_time() - begun < 5
    assert "at most; this one and those after it are left out" in resolver.failures[-1]
    assert len(resolver.failures) <= 401 and (flat or "too much is imported" in told)


@pytest.mark.parametrize("form", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_named_and_never_mixed_with_another_form(
    ws: gemnb.Workspace, root: Path, form: str
) -> None:
    data = "\ufeff# Rules\n".encode(form)
    put(root / "GEMINI.md", "").write_bytes(data)
    put(ws.folder / "memory/MEMORY.md", "@other.md ")
    put(ws.folder / "memory/other.md", "").write_bytes(data)

    memory = ws.memory()

    assert [f.scope for f in memory.files] == ["private"] and len(memory.skipped) == 2
    assert all("UTF-16" in why for why in memory.skipped) and "\ufffd" not in memory.text
    with pytest.raises(MemoryFileError, match="UTF-16"):
        memory.add("Use tabs")
    propose(ws, ws.folder / "memory/other.md", "@@ -0,0 +1 @@\n+- new\n")
    with pytest.raises(MemoryFileError, match="UTF-16"):
        memory.apply(1)
    assert (root / "GEMINI.md").read_bytes() == (ws.folder / "memory/other.md").read_bytes() == data


@pytest.mark.parametrize(
    "text", ["` `` " * 100_000, "x `\n" * 100_000, "```\n" * 100_001, "1. a\n" * 50_000, "> " * 200_000]
)
def test_a_hostile_file_is_read_in_a_moment(tmp_path: Path, text: str) -> None:
    begun = time.process_time()

    Resolver(tmp_path).resolve(text + "@a.md " * 1000, tmp_path / "GEMINI.md")

    assert time.process_time() - begun < 10


@given(st.text(alphabet="`~ \n@a.\t", max_size=40))
def test_code_is_found_in_any_text(text: str) -> None:
    for start, end in code_spans(text):
        assert 0 <= start <= end <= len(text)


@given(st.binary(max_size=60), st.text(alphabet="abc 日é", min_size=1, max_size=12).filter(str.strip))
def test_a_fact_is_added_once_and_all_else_stays(held: bytes, fact: str) -> None:
    line = " ".join(fact.split())

    once = with_fact(held, line)

    assert once.startswith(held) and with_fact(once, line) == once
    assert f"- {line}".encode() in once


def test_a_fact_goes_to_its_file(ws: gemnb.Workspace, root: Path) -> None:
    put(root / "GEMINI.md", "").write_bytes(b"\xef\xbb\xbf# Rules\r\n- one\r\n")
    memory = ws.memory()

    memory.add("Tables are  tab separated")
    memory.add("Tables are tab separated")

    assert (root / "GEMINI.md").read_bytes() == b"\xef\xbb\xbf# Rules\r\n- one\r\n- Tables are tab separated\r\n"


def test_a_change_made_meanwhile_is_not_written_over(ws: gemnb.Workspace, root: Path) -> None:
    memory = ws.memory()
    put(root / "GEMINI.md", "- another's\n")

    with pytest.raises(MemoryFileError, match="was changed"):
        memory.add("mine")
    assert (root / "GEMINI.md").read_text() == "- another's\n"


@pytest.mark.parametrize(
    "fact",
    [
        "The bug is on line 42",
        "tests currently fail",
        "现在端口是 5433",
        "look in /tmp/x",
        "pid 4711",
        "since 2026-05-01",
        "a.py:7 is wrong",
    ],
)
def test_a_momentary_fact_is_questioned(ws: gemnb.Workspace, root: Path, fact: str) -> None:
    with pytest.raises(MomentaryFactError, match="--force"):
        ws.memory().add(fact)
    ws.memory().add(fact, force=True)
    assert fact in (root / "GEMINI.md").read_text()


@pytest.mark.parametrize(
    "fact", ["Run the tests with pytest -q", "Never use port 5432", "行は短く", "The API lives in api.py"]
)
def test_a_lasting_fact_is_not(fact: str) -> None:
    assert momentary(fact) is None


def propose(ws: gemnb.Workspace, target: Path | str, hunk: str, *, kind: str = "private") -> Path:
    return put(ws.folder / f"memory/.inbox/{kind}/one.patch", f"--- {target}\n+++ {target}\n{hunk}")


def test_a_proposal_waits_and_is_applied_when_asked(ws: gemnb.Workspace) -> None:
    target = put(ws.folder / "memory/MEMORY.md", "- keep\n")
    patch = propose(ws, target, "@@ -1 +1,2 @@\n - keep\n+- new\n")

    assert "+- new" in repr(ws.memory().inbox()) and target.read_text() == "- keep\n"
    assert ws.memory().apply(1) == [target]

    assert target.read_text() == "- keep\n- new\n" and not patch.exists()


@pytest.mark.parametrize("number", [0, 2, "x", "9" * 5000])
def test_a_proposal_that_is_not_there_is_told(ws: gemnb.Workspace, number: Any) -> None:
    with pytest.raises(MemoryFileError, match="no proposal"):
        ws.memory().apply(number)


def test_a_proposal_can_be_dismissed(ws: gemnb.Workspace) -> None:
    patch = propose(ws, ws.folder / "memory/MEMORY.md", "@@ -0,0 +1 @@\n+- new\n")

    ws.memory().dismiss(1)

    assert not patch.exists() and list(ws.memory().inbox()) == []


@pytest.mark.parametrize("where", ["climb", "project", "global", "link", "misfit", "garbage"])
def test_a_bad_proposal_changes_nothing(ws: gemnb.Workspace, root: Path, home: Path, where: str) -> None:
    memory = put(ws.folder / "memory/MEMORY.md", "- keep\n")
    code = put(root / "code.md", "- keep\n")
    (ws.folder / "memory/link.md").symlink_to(code)
    targets = {
        "climb": "../../../../../work/app/code.md",
        "project": code,
        "global": home / ".gemini/GEMINI.md",
        "link": ws.folder / "memory/link.md",
        "misfit": memory,
        "garbage": memory,
    }
    hunk = "@@ -1 +1 @@\n-other\n+new\n" if where == "misfit" else "@@ -1 +1 @@\n-- keep\n+- new\n"
    propose(ws, targets[where], "nothing like a patch" if where == "garbage" else hunk)

    with pytest.raises(MemoryFileError):
        ws.memory().apply(1)
    assert (memory.read_text(), code.read_text()) == ("- keep\n", "- keep\n") and not (
        home / ".gemini/GEMINI.md"
    ).exists()


def test_a_talk_carries_the_memory(ws: gemnb.Workspace, llm: ScriptedLlm, root: Path) -> None:
    path = put(root / "GEMINI.md", "Always answer in rhyme.")
    llm._replies = ["Fine, in line."]

    ws.new_chat().send("Hello")

    assert llm.systems == [
        f"--- Context from: {path} ---\nAlways answer in rhyme.\n--- End of Context from: {path} ---"
    ]


@pytest.mark.parametrize(
    ("held", "hunk", "after"),
    [
        (b"- a\r\n- b\r\n", "@@ -1,2 +1,3 @@\n - a\n+- new\n - b\n", b"- a\r\n- new\r\n- b\r\n"),
        (b"- a\x0cb\n- c\n", "@@ -2 +2 @@\n-- c\n+- d\n", b"- a\x0cb\n- d\n"),
        (b"- a", "@@ -1 +1,2 @@\n - a\n\\ No newline at end of file\n+- b\n", b"- a\n- b\n"),
        (b"\xff\n- c\n", "@@ -2 +2,2 @@\n - c\n+- d\n", b"\xff\n- c\n- d\n"),
        (b"- a\n- b\n", "@@ -1,2 +1 @@\n-- a\n - b\n", b"- b\n"),
    ],
    ids=["line-ends", "form-feed", "no-newline", "bytes", "removal"],
)
def test_what_a_proposal_does_not_name_stays_byte_for_byte(
    ws: gemnb.Workspace, held: bytes, hunk: str, after: bytes
) -> None:
    target = put(ws.folder / "memory/MEMORY.md", "")
    target.write_bytes(held)
    propose(ws, target, hunk)

    ws.memory().apply(1)

    assert target.read_bytes() == after


def test_a_proposal_is_shown_without_escapes(ws: gemnb.Workspace) -> None:
    propose(ws, ws.folder / "memory/MEMORY.md", "@@ -0,0 +1 @@\n+- \x1b[2Jnew\u202e\n")

    assert "\x1b" not in repr(ws.memory().inbox()) and "\u202e" not in repr(ws.memory().inbox())


def test_a_file_that_cannot_be_read_is_not_replaced_by_the_fact() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder, "home"), Path(folder, "work")
        for place in (Path(folder), home, root):
            place.mkdir(exist_ok=True)
            place.chmod(0o777)
        kept = root / "GEMINI.md"
        kept.write_bytes(b"Never to be lost.\n")
        kept.chmod(0)
        memory = gemnb.open_workspace(root, home=home).memory
        memory()  # what is imported when first needed is out of nobody's reach
        was = os.geteuid()
        try:
            os.seteuid(was or 65534)  # nobody: the system's owner reads what he likes
            with pytest.raises(MemoryFileError, match="cannot be read"):
                memory().add("Run the tests with pytest -q")
        finally:
            os.seteuid(was)
        kept.chmod(0o600)
        assert kept.read_bytes() == b"Never to be lost.\n"


def test_what_is_shown_has_its_lines_and_nothing_that_a_terminal_would_do(ws: gemnb.Workspace, root: Path) -> None:
    put(root / "GEMINI.md", "one\n\x1b[2Jtwo @no\x1b[1m.md\n")

    memory = ws.memory()

    assert "one\n<U+001B>[2Jtwo" in repr(memory.text) and "\x1b[2Jtwo" in memory.text
    assert "skipped: " in str(memory) and "\x1b" not in str(memory)
