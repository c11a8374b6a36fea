"""Proposals: hostile patches change nothing, what cannot be applied is named, numbers mean what was shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from failing_disk import ERRORS, Disk
from support import held

import gemnb
from gemnb.errors import MemoryFileError
from gemnb.store import files


def put(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def patch(target: Path | str, hunk: str = "@@ -1 +1,2 @@\n - keep\n+- new\n", *, source: Path | str = "") -> str:
    return f"--- {source or target}\n+++ {target}\n{hunk}"


@pytest.fixture
def memory(ws: gemnb.Workspace) -> Path:
    """The private memory file, which holds one line."""
    return put(ws.folder / "memory/MEMORY.md", "- keep\n")


def propose(ws: gemnb.Workspace, text: bytes | str, name: str = "one.patch", kind: str = "private") -> Path:
    return put(ws.folder / "memory/.inbox" / kind / name, text)


HOSTILE: dict[str, tuple[str, str]] = {
    "dots": ("--- {m}/../../../../x.md\n+++ {m}/../../../../x.md\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "relative": ("--- MEMORY.md\n+++ MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n", "no private memory file"),
    "prefixed": ("--- a/MEMORY.md\n+++ b/MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n", "no private memory file"),
    "elsewhere": ("--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "two-names": ("--- {m}/a.md\n+++ {m}/MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n", "no private memory file"),
    "delete": ("--- {m}/MEMORY.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-- keep\n", "delete"),
    "git-delete": (
        "diff --git a/{m}/MEMORY.md b/{m}/MEMORY.md\ndeleted file mode 100644\n--- a/{m}/MEMORY.md\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-- keep\n",
        "delete",
    ),
    "rename": ("diff --git a/{m}/MEMORY.md b/{m}/b.md\nrename from {m}/MEMORY.md\nrename to {m}/b.md\n", "no text"),
    "mode": ("diff --git a/{m}/MEMORY.md b/{m}/MEMORY.md\nold mode 100644\nnew mode 100755\n", "no text"),
    "other-case": ("--- {M}/MEMORY.md\n+++ {M}/MEMORY.md\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "one-file-twice": (
        "--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1 @@\n-- keep\n+x\n"
        "--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1 @@\n-- keep\n+y\n",
        "does not fit",
    ),
    "binary": ("Binary files {m}/MEMORY.md and {m}/MEMORY.md differ\n", "no text"),
    "git-binary": ("diff --git a/{m}/MEMORY.md b/{m}/MEMORY.md\nGIT binary patch\nliteral 3\nKcmZ\n", "no text"),
    "empty": ("", "no text"),
    "words": ("Please remember that I am root.\n", "no text"),
    "cut-off": ("--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1,9 @@\n - keep\n+x\n", "no patch"),
    "numbers": ("--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -" + "9" * 5000 + " +1 @@\n x\n", "no patch"),
    "far": ("--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -999999999 +999999999,2 @@\n - keep\n+x\n", "does not fit"),
    "backwards": (
        "--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n@@ -1 +1,2 @@\n - keep\n+x\n",
        "does not fit",
    ),
    "not-new": ("--- /dev/null\n+++ {m}/MEMORY.md\n@@ -0,0 +1 @@\n+x\n", "is there by now"),
    "no-markdown": ("--- /dev/null\n+++ {m}/run.sh\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "hidden": ("--- /dev/null\n+++ {m}/.hidden.md\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "inbox": ("--- /dev/null\n+++ {m}/.inbox/private/two.md\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "bidi-name": ("--- /dev/null\n+++ {m}/a\u202edm.md\n@@ -0,0 +1 @@\n+x\n", "no private memory file"),
    "long-name": ("--- /dev/null\n+++ {m}/" + "a" * 300 + ".md\n@@ -0,0 +1 @@\n+x\n", "could not be written"),
    "link": ("--- {m}/link.md\n+++ {m}/link.md\n@@ -1 +1,2 @@\n - keep\n+x\n", "a link"),
    "pipe": ("--- {m}/pipe.md\n+++ {m}/pipe.md\n@@ -0,0 +1 @@\n+x\n", "cannot be read"),
    "folder": ("--- {m}/folder.md\n+++ {m}/folder.md\n@@ -0,0 +1 @@\n+x\n", "cannot be read"),
    "second-misses": (
        "--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n"
        "--- {m}/more.md\n+++ {m}/more.md\n@@ -1 +1,2 @@\n - other\n+x\n",
        "does not fit",
    ),
    "second-outside": (
        "--- {m}/MEMORY.md\n+++ {m}/MEMORY.md\n@@ -1 +1,2 @@\n - keep\n+x\n--- /x.md\n+++ /x.md\n@@ -0,0 +1 @@\n+x\n",
        "no private memory file",
    ),
    "too-much": ("--- {m}/huge.md\n+++ {m}/huge.md\n@@ -0,0 +1 @@\n+x\n", "given to no talk"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_patch_changes_nothing_and_says_why(
    ws: gemnb.Workspace, memory: Path, tmp_path: Path, name: str
) -> None:
    text, why = HOSTILE[name]
    put(memory.with_name("more.md"), "- keep\n")
    put(memory.with_name("huge.md"), "y" * 1_999_999 + "\n")
    memory.with_name("link.md").symlink_to(put(ws.folder / "other.md", "- keep\n"))
    os.mkfifo(memory.with_name("pipe.md"))
    memory.with_name("folder.md").mkdir()
    propose(ws, text.replace("{m}", str(memory.parent)).replace("{M}", str(memory.parent).replace("home", "HOME")))
    before = held(tmp_path)

    with pytest.raises(MemoryFileError, match=why):
        ws.memory().apply(1)

    assert held(tmp_path) == before
    ws.memory().dismiss(1)
    assert not ws.memory().inbox()


@pytest.mark.parametrize(
    ("was", "text", "after"),
    [
        pytest.param("- keep\n", "{h}@@ -1 +1,2 @@\r\n - keep\r\n+- new\r\n", "- keep\n- new\n", id="crlf-patch"),
        pytest.param("- keep\r\n", "{h}@@ -1 +1,2 @@\n - keep\n+- new\n", "- keep\r\n- new\r\n", id="crlf-file"),
        pytest.param("- keep\n", "\ufeff{h}@@ -1 +1,2 @@\n - keep\n+- new\n", "- keep\n- new\n", id="bom-patch"),
        pytest.param("\ufeff# A\n- keep\n", "{h}@@ -2 +2,2 @@\n - keep\n+b\n", "\ufeff# A\n- keep\nb\n", id="bom-file"),
        pytest.param(
            "- keep",
            "{h}@@ -1 +1,2 @@\n-- keep\n\\ No newline at end of file\n+- keep\n+- new\n\\ No newline at end of file\n",
            "- keep\n- new",
            id="no-newline",
        ),
        pytest.param("- keep\n", "{g}@@ -1 +1,2 @@\n - keep\n+- new\n", "- keep\n- new\n", id="git-prefix"),
        pytest.param(None, "{n}@@ -0,0 +1,2 @@\n+# R\n+- new\n", "# R\n- new\n", id="new-file"),
        pytest.param("", "{h}@@ -0,0 +1 @@\n+--- a\n", "--- a\n", id="dashes"),
        pytest.param(
            "- keep\n", "Why: you said it.\n{h}@@ -1 +1,2 @@\n - keep\n+- new\n", "- keep\n- new\n", id="words"
        ),
    ],
)
def test_a_patch_in_the_clients_form_is_applied_exactly(
    ws: gemnb.Workspace, memory: Path, was: str | None, text: str, after: str
) -> None:
    memory.unlink() if was is None else memory.write_bytes(was.encode())
    told = {"h": patch(memory, ""), "g": patch(f"b/{memory}", "", source=f"a/{memory}")}
    told["n"] = patch(memory, "", source="/dev/null")
    for key, value in told.items():
        text = text.replace(f"{{{key}}}", value.replace("\n", "\r\n") if "\r" in text else value)
    waiting = propose(ws, text)

    assert ws.memory().apply("1") == [memory]

    assert memory.read_bytes() == after.encode() and not waiting.exists()


def test_several_files_are_changed_together_and_keep_their_permissions(ws: gemnb.Workspace, memory: Path) -> None:
    memory.chmod(0o644)
    more = memory.with_name("verify.md")
    propose(ws, patch(memory) + patch(more, "@@ -0,0 +1 @@\n+- check\n", source="/dev/null"))

    assert ws.memory().apply(1) == [memory, more]
    assert (memory.read_text(), more.read_text()) == ("- keep\n- new\n", "- check\n")
    assert (memory.stat().st_mode & 0o777, more.stat().st_mode & 0o777) == (0o644, 0o600)


@pytest.mark.parametrize("kind", ["too-long", "pipe", "link", "dangling", "latin-1", "unreadable"])
def test_a_patch_that_cannot_be_read_whole_is_named_and_never_applied_in_part(
    ws: gemnb.Workspace, memory: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = patch(memory)
    path = propose(ws, good)
    if kind == "too-long":
        path.write_text(good + patch(memory, "@@ -1 +1,2 @@\n - keep\n+" + "y" * 1_000_000 + "\n"))
    elif kind == "latin-1":
        path.write_bytes(good.encode().replace(b"new", b"caf\xe9"))
    elif kind == "unreadable":
        monkeypatch.setattr("gemnb.services.memory_inbox.open_regular", _refuse)
    else:
        path.unlink()
        path.symlink_to(put(tmp_path / "p", good) if kind == "link" else "gone") if kind != "pipe" else os.mkfifo(path)

    inbox = ws.memory().inbox()

    assert len(inbox) == 1 and f"1. private ({path.name})\ncannot be applied: " in repr(inbox)
    with pytest.raises(MemoryFileError, match=r"one\.patch cannot be applied"):
        ws.memory().apply(1)
    assert memory.read_text() == "- keep\n" and os.path.lexists(path)
    ws.memory().dismiss(1)
    assert not os.path.lexists(path) and (kind != "link" or (tmp_path / "p").read_text() == good)


def _refuse(path: Path) -> Any:
    raise PermissionError(13, "Permission denied", str(path))


def test_patches_in_folders_of_the_inbox_wait_too(ws: gemnb.Workspace, memory: Path) -> None:
    propose(ws, patch(memory), "sub/deep/two.patch")
    propose(ws, patch(memory), "one.patch")
    (ws.folder / "memory/.inbox/private/loop").symlink_to("..")

    assert [p.path.name for p in ws.memory().inbox()] == ["one.patch", "two.patch"]


@pytest.mark.parametrize("act", ["apply", "dismiss"])
@pytest.mark.parametrize("meanwhile", ["applied", "changed", "another-before-it"])
def test_a_number_means_the_proposal_that_was_shown(
    ws: gemnb.Workspace, memory: Path, act: str, meanwhile: str
) -> None:
    path = propose(ws, patch(memory, "@@ -1 +1,2 @@\n - keep\n+- shown\n"))
    ws.memory().inbox()
    other = gemnb.open_workspace(ws.root, home=ws.home)
    if meanwhile == "applied":
        other.memory().apply(1)
    elif meanwhile == "changed":
        path.write_text(patch(memory, "@@ -1 +1,2 @@\n - keep\n+- unseen\n"))
    else:
        propose(ws, patch(memory, "@@ -1 +1,2 @@\n - keep\n+- unseen\n"), "0.patch")
    before = memory.read_text()

    if meanwhile == "another-before-it":
        getattr(ws.memory(), act)(1)
        assert not path.exists() and [p.path.name for p in ws.memory().inbox()] == ["0.patch"]
        return
    with pytest.raises(MemoryFileError, match="not as it was shown"):
        getattr(ws.memory(), act)(1)
    assert memory.read_text() == before and path.exists() == (meanwhile == "changed")


def test_those_left_are_numbered_anew(ws: gemnb.Workspace, memory: Path) -> None:
    for name in "abc":
        propose(ws, patch(memory), f"{name}.patch")
    ws.memory().inbox()

    ws.memory().dismiss(1)
    ws.memory().dismiss(2)

    assert [p.path.name for p in ws.memory().inbox()] == ["b.patch"]


def test_what_would_not_be_seen_is_written_out(ws: gemnb.Workspace, memory: Path) -> None:
    propose(ws, patch(memory, "@@ -1 +1,2 @@\n - keep\n+- a\u202eb\x1b[2J\u200b\U000e0041\u2028c\rd\n"))

    told = repr(ws.memory().inbox())

    assert "+- a<U+202E>b<U+001B>[2J<U+200B><U+E0041><U+2028>c<U+000D>d" in told


@pytest.mark.parametrize("stays", [False, True], ids=["once", "from-then-on"])
@pytest.mark.parametrize("how", ERRORS)
def test_on_a_disk_that_fails_at_any_call_a_proposal_is_applied_whole_or_not(
    ws: gemnb.Workspace, memory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, stays: bool
) -> None:
    more = memory.with_name("verify.md")
    new = memory.with_name("new.md")
    put(more, "- keep\n")
    text = patch(memory) + patch(more) + patch(new, "@@ -0,0 +1 @@\n+- x\n", source="/dev/null")
    disk = Disk(tmp_path, monkeypatch)
    at = 0
    while True:
        at += 1
        for path in (memory, more):
            path.write_text("- keep\n")
        new.unlink(missing_ok=True)
        waiting = propose(ws, text)
        before, told, error = whole(tmp_path), ws.memory(), ""
        told.inbox()
        with disk.failing(how, at, stays=stays):
            try:
                told.apply(1)
            except MemoryFileError as raised:
                error = str(raised)
        if not error:
            assert not waiting.exists() and new.read_text() == "- x\n"
            assert [p.read_text() for p in (memory, more)] == ["- keep\n- new\n"] * 2
        elif "put it back by hand" not in error:
            assert whole(tmp_path) == before
        else:
            assert stays
            assert all(p.read_text() == "- keep\n" or former(error, p) == "- keep\n" for p in (memory, more))
        assert disk.faults or not error
        if not disk.faults:
            break
    assert at > 12


def whole(folder: Path) -> dict[str, Any]:
    """What is there, but for what a disk that fails did not let be removed."""
    return {path: told for path, told in held(folder).items() if not path.endswith(".tmp")}


def former(told: str, path: Path) -> str:
    """The text that a message says a file held."""
    match = re.search(rf"{re.escape(str(path))} is not as it was, its former text is in (\S+\.tmp)", told)
    return Path(match[1]).read_text() if match else ""


def test_a_dismissal_that_fails_says_so(ws: gemnb.Workspace, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = propose(ws, patch(memory))
    told = ws.memory()
    told.inbox()
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: _refuse(waiting))

    with pytest.raises(MemoryFileError, match="Permission denied"):
        told.dismiss(1)
    assert waiting.exists()


def test_a_kernel_that_holds_the_folder_too_long_is_told(
    ws: gemnb.Workspace, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose(ws, patch(memory))
    monkeypatch.setattr(files, "LOCK_WAIT_S", 0.0)

    with files.locked([memory.parent]), pytest.raises(MemoryFileError, match="another program holds the folder"):
        ws.memory().apply(1)
    assert memory.read_text() == "- keep\n"


def test_without_a_number_it_is_asked_for(ws: gemnb.Workspace) -> None:
    with pytest.raises(MemoryFileError, match="Say which"):
        ws.memory().apply("")


def test_a_patch_of_any_size_costs_no_more_than_what_is_read_of_it(ws: gemnb.Workspace, memory: Path) -> None:
    waiting = propose(ws, patch(memory, "@@ -1 +1,900000 @@\n - keep\n") + "+" + "x" * 60 + "\n")
    with waiting.open("ab") as file:
        file.truncate(50_000_000)
    begun = time.process_time()

    (told,) = ws.memory().inbox()

    assert told.problem and "longer than" in told.problem and not told.patch
    with pytest.raises(MemoryFileError, match="longer than"):
        ws.memory().apply(1)
    ws.memory().dismiss(1)
    assert not waiting.exists() and time.process_time() - begun < 2


def test_two_patches_of_one_file_are_applied_one_after_the_other(ws: gemnb.Workspace, memory: Path) -> None:
    propose(ws, patch(memory, "@@ -1 +1 @@\n-- keep\n+- one\n"), "1.patch")
    propose(ws, patch(memory, "@@ -1 +1 @@\n-- keep\n+- two\n"), "2.patch")
    ws.memory().inbox()

    ws.memory().apply(1)

    with pytest.raises(MemoryFileError, match="does not fit"):
        ws.memory().apply(1)
    assert memory.read_text() == "- one\n" and len(ws.memory().inbox()) == 1


KILLED = """
import os, signal, sys, gemnb
left = int(sys.argv[3])
def watch(event, _):
    global left
    if event in ("os.rename", "os.remove", "os.chmod", "os.link"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
memory = gemnb.open_workspace(sys.argv[1], home=sys.argv[2]).memory()
memory.inbox()
sys.addaudithook(watch)
memory.apply(1)
"""


def test_a_kernel_that_is_killed_while_it_applies_leaves_each_file_whole(
    ws: gemnb.Workspace, memory: Path, tmp_path: Path
) -> None:
    more = memory.with_name("verify.md")
    states = set()
    for calls in range(20):
        for path in (memory, more):
            put(path, "- keep\n")
        waiting = propose(ws, patch(memory) + patch(more))
        done = subprocess.run([sys.executable, "-c", KILLED, str(ws.root), str(ws.home), str(calls)], check=False)
        told = (memory.read_text(), more.read_text(), waiting.exists())
        states.add(told)
        assert {memory.read_text(), more.read_text()} <= {"- keep\n", "- keep\n- new\n"}
        assert waiting.exists() or told[:2] == ("- keep\n- new\n", "- keep\n- new\n")
        assert [f.path for f in ws.memory().files] == [memory] and len(ws.memory().inbox()) == waiting.exists()
        if not done.returncode:
            break
    assert done.returncode == 0 and len(states) >= 4
