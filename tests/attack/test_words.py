"""Words that were made to run, fetch or lie, in every place that strangers fill, through everything that shows them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from pages import evil_html, evil_markdown, unseen
from support import NOW, to_bytes
from traitlets.config import Config
from words import WORDS, talk_of

import gemnb
from gemnb import plots
from gemnb.model.outcome import Outcome
from gemnb.notebook import display, stream
from gemnb.notebook.browser import SessionBrowser
from gemnb.services.chat import Reply
from gemnb.services.export_html import POLICY, STYLE
from gemnb.services.listing import HitList, PromptList
from gemnb.store.paths import project_hash
from gemnb.testing import ScriptedLlm


@pytest.fixture(params=WORDS)
def words(request: pytest.FixtureRequest) -> str:
    return WORDS[request.param]


@pytest.fixture
def ws(tmp_path: Path, words: str) -> gemnb.Workspace:
    """A store with the words in every place of it, its project's path too."""
    name = "".join(char for char in words.replace("/", "\u2215") if char.isprintable())
    root, home = tmp_path / name[:80], tmp_path / "home"
    root.mkdir()
    place = home / ".gemini" / "tmp" / "app"
    (place / "chats").mkdir(parents=True)
    (place / ".project_root").write_text(str(root))
    (home / ".gemini" / "projects.json").write_text(json.dumps({"projects": {str(root): "app"}}))
    (root / "GEMINI.md").write_bytes(words.encode("utf-8", "replace"))
    told = talk_of(words, project_hash=project_hash(str(root)))
    (place / "chats" / "session-2026-05-01T10-00-aa11bb22.jsonl").write_bytes(to_bytes(*told, b"{" + b"x" * 9 + b"\n"))
    inbox = place / "memory" / ".inbox" / "private"
    inbox.mkdir(parents=True)
    (inbox / "p.patch").write_bytes(f"--- {words}\n+++ {words}\n@@ -0,0 +1 @@\n+{words}\n".encode("utf-8", "replace"))
    llm = ScriptedLlm(default=f"<state_snapshot>{words}</state_snapshot>")
    return gemnb.open_workspace(root, home=home, llm=llm, clock=lambda: NOW, environ={})


@pytest.fixture
def shell(ws: gemnb.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(ws.root)
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    ip = InteractiveShell.instance(config=config)
    ip.extension_manager.load_extension("gemnb")
    ip.user_ns["Gemnb"].workspace = ws
    yield ip
    ip.extension_manager.unload_extension("gemnb")
    InteractiveShell.clear_instance()


def values(ws: gemnb.Workspace, words: str) -> dict[str, Any]:
    """One of each value that gemnb has a form for, with the words in it, by the name of its type."""
    chat = ws.resume("1")
    shown = stream.ShownReply(words, Outcome.ERROR, error=words)
    found: list[Any] = [ws.listing(hidden=True), HitList(ws.search("river")), PromptList.of(chat.messages), chat]
    found += [Reply(words, Outcome.ERROR, error=words), shown, chat.recording, ws.memory(), ws.memory().inbox(words)]
    found += [chat.compress(floor={}), ws.retention(), ws.rescue()]
    found += [chat.export(Path(ws.root) / "out.json"), ws.checkpoints(), ws.load("1"), ws.find("1"), ws]
    ws.new_chat().send("On.")
    found += [ws.delete("1"), ws.undo_deletion()]
    found += [gemnb.browse(ws)]
    return {f"{type(value).__module__}.{type(value).__qualname__}": value for value in found}


@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_no_value_runs_fetches_or_lies_as_it_is_shown(ws: gemnb.Workspace, shell: Any, words: str) -> None:
    found = values(ws, words)

    assert not {*display.HTML, *display.PLAIN} - found.keys() - {"gemnb.services.retention_plan.CleanupResult"}
    for name, value in found.items():
        forms, _ = shell.display_formatter.format(value)
        assert not evil_html(forms.get("text/html", "")), name
        assert not evil_markdown(forms.get("text/markdown", "")), name
        assert not unseen("".join(text for text in forms.values() if isinstance(text, str))), name


@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_no_table_or_chart_runs_fetches_or_lies(ws: gemnb.Workspace, shell: Any) -> None:
    by = ["model"]
    frames = [
        gemnb.sessions_df(ws, hidden=True),
        gemnb.messages_df(ws),
        gemnb.tool_calls_df(ws),
        gemnb.retention_df(ws),
    ]
    frames += [gemnb.usage_df(ws, by=by)]
    for frame in frames:
        assert not evil_html(frame.to_html())
        frame.to_html().encode()  # as it is sent to the front end
    for chart in (plots.usage(frames[-1]), plots.tools(frames[2]), plots.context(ws.load("1"))):
        assert chart.png().startswith(b"\x89PNG")
        assert not evil_html(chart._repr_html_())
        assert not unseen(chart.title + chart.note)


@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_no_export_runs_fetches_or_lies(ws: gemnb.Workspace, tmp_path: Path) -> None:
    chat = ws.resume("1")
    for ending in ("html", "md", "ipynb"):
        chat.export(tmp_path / f"out.{ending}")

    page = (tmp_path / "out.html").read_text()
    own = page[page.index("<meta charset") : page.index("<title>")]
    assert POLICY in own and not evil_html(page.replace(f"<style>\n{STYLE}\n</style>", ""), own=own)
    assert not unseen(page)
    marked = (tmp_path / "out.md").read_text()
    assert not evil_markdown(marked) and not unseen(marked)
    for cell in json.loads((tmp_path / "out.ipynb").read_text())["cells"]:
        outputs = [output["data"] for output in cell.get("outputs", [])]
        text = "".join(cell["source"])
        assert cell["cell_type"] == "code" or not evil_markdown(text)
        assert not unseen(text)
        for data in outputs:
            assert not evil_html("".join(data.get("text/html", [])))
            assert not evil_markdown("".join(data.get("text/markdown", [])))
            assert not unseen("".join("".join(told) for told in data.values()))


@pytest.mark.filterwarnings("ignore::gemnb.GemnbWarning")
def test_no_magic_runs_fetches_or_lies(ws: gemnb.Workspace, shell: Any, words: str) -> None:
    said = io.StringIO()
    line = " ".join(words.replace("\0", "").encode("utf-8", "replace").decode().split())
    with redirect_stdout(said), redirect_stderr(said):
        for cell in (
            "%sessions",
            "%sessions --hidden",
            "%resume 1",
            "%rewind",
            f"%resume {line}",
            f"%sessions search {line}",
            f"%resume save '{line}'",
            f"%memory add {line}",
            "%memory",
            "%memory inbox",
            f"%%gemini\n{line}",
            "%compress --dry-run",
            "%sessions retention",
            "print(repr(Gemnb.workspace.chat))",
        ):
            shell.run_cell(cell)

    assert len(said.getvalue()) > 500
    for shown in said.getvalue().splitlines():
        assert not unseen(shown), shown


def test_no_row_or_preview_of_the_browser_runs_fetches_or_lies(ws: gemnb.Workspace) -> None:
    browser: SessionBrowser = gemnb.browse(ws)
    browser.hidden = True
    browser.selected = browser.rows[0]["id"]

    assert browser.preview["talk"]
    for html in browser.preview["talk"]:
        assert not evil_html(html)
    assert not unseen(json.dumps([browser.rows, browser.preview, browser.status], ensure_ascii=False))


def test_an_answer_that_streams_in_runs_and_fetches_nothing(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, value: Any) -> None:
            shown.append(value.data)

    monkeypatch.setattr(stream, "display", lambda *_, **__: Handle())
    monkeypatch.setattr(stream, "EVERY_S", timedelta(0).total_seconds() - 1)
    screen = stream.MarkdownScreen(live=True)
    for char in words:
        screen.add(char)
    screen.end(words)

    assert len(shown) > len(words)
    for text in shown:
        assert not evil_markdown(text) and not unseen(text)


def test_an_answer_in_a_terminal_obeys_nothing(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen = stream.TerminalScreen()
    for char in words:
        screen.add(char)
    screen.end(words)

    assert not unseen(capsys.readouterr().out)
