"""A talk as a file: every form, nothing lost, nothing that runs, no secret where none is wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import gemini, header, user

import gemnb
from gemnb.errors import ExportError
from gemnb.services.redaction import Redactor

CALL = {"functionCall": {"id": "t1", "name": "list_files", "args": {"path": "data/raw"}}}
RESULT = {"functionResponse": {"id": "t1", "name": "list_files", "response": {"output": "river.csv"}}}
PIXEL = "iVBORw0KGgo="
LINES: list[Any] = [
    user(
        "u1",
        [{"text": "<img src=x onerror=alert(1)> ``` 河川"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
    ),
    gemini(
        "g1",
        [{"text": "Think", "thought": True}, {"text": "</script><script>alert(2)</script> [go](javascript:x)"}, CALL],
    )
    | {"toolCalls": [{"id": "t1", "name": "list_files", "args": {}, "status": "success", "result": [RESULT]}]},
    gemini("g2", "Two rivers \ud83d."),
    {"id": "e1", "timestamp": "2026-05-01T10:00:09.000Z", "type": "error", "content": "It broke <b>."},
]
FORMS = (".json", ".md", ".html", ".ipynb")


@pytest.fixture
def chat(ws: gemnb.Workspace, write_session: Any) -> gemnb.Chat:
    write_session(header(), *LINES)
    return ws.resume()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_prompts_answers_calls_and_results(chat: gemnb.Chat, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"out{form}"
    chat.export(path)
    text = path.read_text("utf-8")
    for word in ("河川", "Two rivers \ufffd.", "list_files", "data/raw", "river.csv", "Think"):
        assert word in text, word


@pytest.mark.parametrize("form", FORMS)
def test_the_same_talk_gives_the_same_bytes(chat: gemnb.Chat, tmp_path: Path, form: str) -> None:
    one, two = tmp_path / f"a{form}", tmp_path / f"b{form}"
    chat.export(one)
    chat.export(two)
    assert one.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.glob(f"*{form}")) == [one.name, two.name], "no temporary file stays"


def test_json_is_the_list_of_contents(chat: gemnb.Chat, tmp_path: Path) -> None:
    chat.export(tmp_path / "out.json")
    contents = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert [c["role"] for c in contents] == ["user", "model", "user", "model"]
    assert contents[1]["parts"][-1] == CALL


def test_markdown_has_a_heading_for_each_turn_and_fences_that_hold(chat: gemnb.Chat, tmp_path: Path) -> None:
    chat.export(tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## USER",
        "## MODEL",
        "## USER",
        "## MODEL",
    ]
    assert text.count("\n---\n") == 3


def test_html_runs_and_fetches_nothing(chat: gemnb.Chat, tmp_path: Path) -> None:
    chat.export(tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text("utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;img src=x" in text
    assert 'href="javascript' not in text
    assert "default-src 'none'" in text
    assert "It broke &lt;b&gt;." in text
    assert f"data:image/png;base64,{PIXEL}" in text


def test_a_picture_that_is_none_is_only_told(ws: gemnb.Workspace, write_session: Any, tmp_path: Path) -> None:
    evil = {"inlineData": {"mimeType": "image/svg+xml", "data": '"><script>x</script>'}}
    write_session(header(), user("u1", [{"text": "look"}, evil]), gemini("g1", "no"))
    ws.resume().export(tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text("utf-8")
    assert "<script" not in text
    assert "<img" not in text


def test_the_notebook_is_valid_and_its_prompts_are_cells(chat: gemnb.Chat, tmp_path: Path) -> None:
    import nbformat

    chat.export(tmp_path / "out.ipynb")
    notebook = nbformat.read(tmp_path / "out.ipynb", as_version=nbformat.NO_CONVERT)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    cell = notebook.cells[1]
    assert cell.source.startswith("%%gemini\n<img src=x")
    assert cell.metadata.gemnb.message_id == "u1"
    shown = "".join(str(output.data) for output in cell.outputs)
    assert "<script>" not in "".join(
        str(o.data.get("text/html", "")) + str(o.data.get("text/markdown", "")) for o in cell.outputs
    )
    assert "river.csv" in shown


@pytest.mark.parametrize(
    "name",
    ["out.exe", "out", "missing/out.md", ".", "n" * 300 + ".md"],
    ids=["another ending", "none", "no folder", "a folder", "too long"],
)
def test_what_cannot_be_written_is_one_error_and_leaves_nothing(chat: gemnb.Chat, tmp_path: Path, name: str) -> None:
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(ExportError):
        chat.export(into / name)
    assert not list(into.iterdir())


def test_a_missing_folder_is_not_made(chat: gemnb.Chat, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="Choose another place"):
        chat.export(tmp_path / "nowhere" / "out.md")
    assert not (tmp_path / "nowhere").exists()


KEY = "AIza" + "Sy0123456789abcdefghijklmnopqrstuvw"


@pytest.mark.parametrize(
    ("text", "secret", "kind"),
    [
        (f"key {KEY} here", KEY, "key"),
        ("git clone https://me:hunter22@example.org/x", "hunter22", "password"),
        ("Authorization: Bearer abcdef0123456789", "abcdef0123456789", "token"),
        ("PASSWORD=correct-horse", "correct-horse", "secret"),
        ("token: 'ghp_" + "a" * 36 + "'", "ghp_" + "a" * 36, "token"),
        ("see /home/ada/notes.txt", "/home/ada", "home"),
        (r"see C:\Users\ada\notes.txt", r"C:\Users\ada", "home"),
        ("in /srv/people/ada/x", "/srv/people/ada", "home"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc", "private-key"),
    ],
    ids=[
        "api key",
        "password in a url",
        "bearer",
        "assignment",
        "github token",
        "home",
        "windows home",
        "told home",
        "pem",
    ],
)
def test_secrets_become_placeholders_that_stay(text: str, secret: str, kind: str) -> None:
    redactor = Redactor(["/srv/people/ada"])
    told = redactor.text(text)
    assert secret not in told
    assert f"<{kind}-1>" in told
    assert redactor.text(text) == told, "the same value gets the same placeholder"
    assert [(r.kind, r.count) for r in redactor.replaced] == [(kind, 2)]


@pytest.mark.parametrize(
    "text", ["tokens: 12 of 100", "the key is under the mat", "/var/log/syslog", "max_tokens=100000"]
)
def test_plain_words_are_no_secrets(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize("form", FORMS)
def test_redact_reaches_arguments_and_results_in_every_form(
    ws: gemnb.Workspace, write_session: Any, tmp_path: Path, form: str
) -> None:
    call = {"functionCall": {"id": "t1", "name": "login", "args": {"password": "swordfish", "note": KEY}}}
    write_session(header(), user("u1", f"use {KEY}"), gemini("g1", [call]), gemini("g2", "in /home/ada/x"))
    done = ws.resume().export(tmp_path / f"out{form}", redact=True)
    text = (tmp_path / f"out{form}").read_text("utf-8")
    assert not any(secret in text for secret in (KEY, "swordfish", "/home/ada"))
    assert {r.kind for r in done.replaced} >= {"key", "secret", "home"}
    assert KEY not in str(done)


@pytest.mark.parametrize("form", [".html", ".ipynb"])
def test_no_escape_or_bidi_character_reaches_what_is_looked_at(
    ws: gemnb.Workspace, write_session: Any, tmp_path: Path, form: str
) -> None:
    odd = "a\x1b[31mb\x9b\u202ec\x00\u2066d"
    call = {"functionCall": {"id": "c", "name": odd, "args": {odd: [odd]}}}
    write_session(header(), user("u1", odd), gemini(f"g{odd}", [{"text": odd, "thought": True}, {"text": odd}, call]))
    path = tmp_path / f"out{form}"

    ws.resume().export(path)

    text = path.read_text("utf-8")
    told = text if form == ".html" else str(json.loads(text))
    assert not set(told) & set("\x00\x1b\x9b\u202e\u2066") and "\\x1b" not in told and "a[31mbcd" in told
