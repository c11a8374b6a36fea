"""In a real Chromium nothing of a session runs and no request leaves: in both applications, and in an export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import Room, until
from playwright.sync_api import Browser
from words import WORDS, talk_of

import gemnb
from gemnb.testing import ScriptedLlm

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]

TRAP = "window.ran = () => { window.pwned = new Error().stack }; null"
SHOW = """
from IPython.display import Markdown
from gemnb.model.outcome import Outcome
from gemnb.notebook.stream import MarkdownScreen
from gemnb.services.chat import Reply
import warnings

warnings.simplefilter("ignore")

def show_talks():
    for id in IDS:
        chat = ws.resume(id)
        display(chat, chat.recording)
    print("talks: done")

def show_answers():
    for told in WORDS:
        display(Reply(told, Outcome.ERROR, error=told))
        screen = MarkdownScreen(live=True)
        screen.add(told)
        screen.end(None)
    print("answers: done")

def show_tables():
    display(ws.listing(hidden=True), ws.retention(), ws.memory())
    display(gemnb.messages_df(ws), gemnb.tool_calls_df(ws), gemnb.plots.tools(gemnb.tool_calls_df(ws)))
    display(gemnb.plots.usage(gemnb.usage_df(ws, by=["model"])))
    print("tables: done")
"""


def id_of(number: int) -> str:
    return f"{number:02}ad0bad-0000-4000-8000-000000000000"


def write_talks(chats: Path) -> None:
    """A session for each of the words."""
    for number, words in enumerate(WORDS.values()):
        lines = talk_of(words, session_id=id_of(number))
        path = chats / f"session-2026-11-30T10-{number:02}-{id_of(number)[:8]}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")


def test_strangers_words_run_nothing_in_the_browser_and_in_outputs(room: Room) -> None:
    room.page.evaluate(TRAP)
    room.page.on("dialog", lambda dialog: room.foreign.append(dialog.message))
    write_talks(Path(room.ask("str(ws.folder / 'chats')")))
    room.run("browser._read()")

    for number in range(len(WORDS)):
        room.run(f"browser.selected = {id_of(number)!r}")
        shown = f"document.querySelector('.gemnb-preview').textContent.includes({id_of(number)!r})"
        until(lambda shown=shown: room.page.evaluate(shown))  # type: ignore[misc]
    room.run(SHOW)
    room.run(f"WORDS, IDS = {list(WORDS.values())!r}, {list(map(id_of, range(len(WORDS))))!r}")
    for what in ("talks", "answers", "tables"):  # an output area shows no more than fifty outputs
        room.page.locator(".jp-Cell .cm-content").nth(1).click()
        room.page.keyboard.press("Control+a")
        room.page.keyboard.type(f"show_{what}()")
        room.page.keyboard.press("Shift+Enter")
        room.page.get_by_text(f"{what}: done").first.wait_for(timeout=60_000)
        leads_away(room)


def leads_away(room: Room) -> None:
    """Nothing in the outputs runs, or leads elsewhere than to the web; nothing ran and no request left."""
    links = room.page.locator(".jp-OutputArea a").evaluate_all("all => all.map(a => a.href)")
    assert not [link for link in links if not link.startswith("http")]
    assert room.page.locator(".jp-OutputArea :is(script, iframe, object, embed, form, base, meta)").count() == 0
    assert room.page.evaluate("window.pwned || null") is None
    assert room.foreign == []


def test_an_export_runs_nothing(chromium: Browser, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    ws = gemnb.open_workspace(tmp_path / "app", home=tmp_path / "home", llm=ScriptedLlm(), environ={})
    chats = ws.folder / "chats"
    chats.mkdir(parents=True)
    (ws.folder / ".project_root").write_text(str(tmp_path / "app"))
    write_talks(chats)
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(TRAP)

    for number in range(len(WORDS)):
        path = tmp_path / f"{number}.html"
        ws.resume(id_of(number)).export(path)
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        page.mouse.move(200, 200)
        assert page.evaluate("window.pwned || null") is None

    page.close()
    assert [url for url in asked if not url.startswith("file://")] == []
    assert len(asked) == len(WORDS)
