"""What the session browser shows, and what its actions do, without a browser."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter
from support import NOW, gemini, header, tree, user

import gemnb
from gemnb.model.session import Session, SessionInfo
from gemnb.services import browsing
from gemnb.services.prices import list_price
from gemnb.services.search import search
from gemnb.store.paths import project_hash
from gemnb.testing import ScriptedLlm

Write = Callable[..., Path]
pytestmark = pytest.mark.filterwarnings("default")

PICTURE = "iVBORw0KGgo="


def info(id: str, **more: Any) -> SessionInfo:
    told: dict[str, Any] = {"title": id, "last_updated": NOW, "path": Path(f"/{id}.jsonl"), **more}
    return SessionInfo(id=id, **told)


def session_id(letter: str) -> str:
    return f"{letter * 8}-0000-4000-8000-000000000000"


@pytest.fixture
def three(write_session: Write, root: Path) -> None:
    """Three sessions: about rivers, about lakes, and one with a picture."""
    words = {"a": "How long is the river?", "b": "How deep is the lake?", "c": "What is in the picture?"}
    for day, (letter, text) in enumerate(words.items(), start=1):
        parts = [{"text": text}]
        if letter == "c":
            parts.append({"inlineData": {"mimeType": "image/png", "data": PICTURE}})
        write_session(
            header(session_id(letter), root),
            user("u1", parts),
            gemini("g1", f"It is **{letter * 3}** <script>x</script>"),
            {"$set": {"lastUpdated": f"2026-05-0{day}T10:00:00.000Z"}},
            name=f"session-2026-05-0{day}T10-00-{letter * 8}.jsonl",
        )


@pytest.fixture
def browser(three: None, ws: gemnb.Workspace) -> Any:
    return gemnb.browse(ws)


def letters(browser: Any) -> str:
    return "".join(row["id"][0] for row in browser.rows)


@pytest.mark.parametrize(
    ("sort", "reverse", "wanted"),
    [
        ("date", False, "bca"),
        ("date", True, "acb"),
        ("messages", False, "cab"),
        ("name", False, "abc"),
        ("name", True, "cba"),
        ("tokens", False, "abc"),
    ],
)
def test_rows_stand_in_the_order_that_is_asked_for(sort: str, reverse: bool, wanted: str) -> None:
    rows = browsing.keyed(
        [
            info("a", message_count=2, last_updated=NOW - timedelta(days=3)),
            info("b", message_count=1),
            info("c", message_count=3, last_updated=NOW - timedelta(days=1)),
        ]
    )

    ordered = browsing.in_order(rows, sort, reverse=reverse, tokens={"a": 30, "b": 20, "c": 10})

    assert "".join(key for key, _ in ordered) == wanted


def test_hidden_ones_stand_last_in_any_order() -> None:
    rows = browsing.keyed([info("a", hidden_because="empty"), info("b", last_updated=NOW - timedelta(days=9))])

    for reverse in (False, True):
        assert [key for key, _ in browsing.in_order(rows, "date", reverse=reverse, tokens={})] == ["b", "a"]


def test_two_files_of_one_id_are_two_rows() -> None:
    assert len(browsing.keyed([info("a"), info("a", path=Path("/other.jsonl"))])) == 2


@pytest.mark.parametrize(("seconds", "live"), [(0, True), (59, True), (60, False), (-5, False)])
def test_a_session_that_changed_within_the_last_minute_is_live(seconds: int, live: bool) -> None:
    row = info("a", last_updated=NOW - timedelta(seconds=seconds))

    assert browsing.is_live(row, NOW) is live
    assert not browsing.is_live(replace(row, is_current=True), NOW)


@pytest.mark.parametrize(("gone", "wanted"), [("b", "c"), ("c", "b"), ("a", "b"), ("x", "a")])
def test_the_neighbour_is_selected_once_a_row_is_gone(gone: str, wanted: str) -> None:
    left = [{"id": id} for id in "abc" if id != gone]

    assert browsing.near(left, list("abc"), gone) == wanted


def test_titles_and_ids_match_in_any_case(browser: Any) -> None:
    browser.query = "LAKE"
    assert letters(browser) == "b"
    browser.query = session_id("c")[:10].upper()
    assert letters(browser) == "c"
    browser.query = "nowhere at all"
    assert browser.rows == [] and browser.selected is None and browser.preview == {}


def test_what_was_said_is_found_with_its_context(browser: Any, ws: gemnb.Workspace) -> None:
    found: dict[str, browsing.Found] = {}
    list(browsing.counted(ws.search("bbb"), found))

    (row,) = browsing.rows_of(browsing.keyed(ws.sessions()), NOW, query="bbb", found=found)

    assert row["matches"] == 1 and row["match"][1] == "bbb"


def test_a_match_stands_apart_from_the_words_around_it(browser: Any, ws: gemnb.Workspace) -> None:
    found: dict[str, browsing.Found] = {}
    list(browsing.counted(ws.search("is the river"), found))

    (row,) = browsing.rows_of(browsing.keyed(ws.sessions()), NOW, query="is the river", found=found)

    assert "".join(row["match"]) == "How long is the river?"


def test_a_preview_is_facts_and_safe_html(browser: Any) -> None:
    browser.selected = session_id("a")

    told = browser.preview
    assert dict(told["facts"])["First prompt"] == "How long is the river?"
    assert "<strong>aaa</strong>" in "".join(told["talk"]) and "<script" not in "".join(told["talk"])


def test_pictures_wait_until_asked_for(browser: Any) -> None:
    browser.selected = session_id("c")
    assert browser.preview["pictures"] == 1 and "<img" not in "".join(browser.preview["talk"])

    browser.act("pictures")

    assert browser.preview["pictures"] == 0 and "data:image/png" in "".join(browser.preview["talk"])


def test_a_long_talk_is_rendered_a_page_at_a_time(write_session: Write, root: Path, ws: gemnb.Workspace) -> None:
    write_session(header(root=root), *(user(f"u{n}", f"prompt {n}") for n in range(50)))
    browser: Any = gemnb.browse(ws)
    assert (len(browser.preview["talk"]), browser.preview["more"]) == (browsing.PAGE, 50 - browsing.PAGE)

    browser.act("more")

    assert len(browser.preview["talk"]) == 2 * browsing.PAGE


def test_a_long_text_is_cut_and_says_so(ws: gemnb.Workspace, write_session: Write, root: Path) -> None:
    write_session(header(root=root), user("u1", "x" * (browsing.LONGEST + 5)), gemini("g1", "ok"))
    row = ws.find(1)

    told = browsing.preview(ws.load(1), row, price=list_price)

    assert "5 characters more" in told["talk"][0]


def test_looking_writes_nothing(browser: Any, home: Path) -> None:
    before = tree(home)

    for name in ("sort", "reverse", "all", "worktrees", "hidden", "sort", "sort", "more", "pictures", "close"):
        browser.act(name)

    assert tree(home) == before


def test_resume_makes_it_the_current_one_and_leaves_a_card(browser: Any, ws: gemnb.Workspace) -> None:
    browser.act("resume", session_id("b"))

    assert ws.chat is not None and ws.chat.session_id == session_id("b")
    assert "lake" in browser.card["title"] and "%%gemini" in browser.card["how"]


def test_fork_goes_on_in_a_copy(browser: Any, ws: gemnb.Workspace) -> None:
    browser.act("fork", session_id("b"))

    assert ws.chat is not None and ws.chat.session_id != session_id("b")


def test_a_deletion_is_asked_first_and_goes_to_the_trash(browser: Any, ws: gemnb.Workspace) -> None:
    browser.act("confirm", session_id("b"))
    assert letters(browser) == "cba", "nothing was asked"

    browser.act("delete", session_id("b"))
    browser.act("confirm", session_id("b"))

    assert letters(browser) == "ca" and "--undo" in browser.status
    ws.undo_deletion()
    browser.act("hidden")
    assert letters(browser) == "cba"


@pytest.mark.parametrize("action", ["resume", "delete"])
def test_the_current_session_is_neither_resumed_nor_deleted(browser: Any, ws: gemnb.Workspace, action: str) -> None:
    ws.resume(session_id("b"))
    browser.act("hidden")

    browser.act(action, session_id("b"))

    assert "current" in browser.status and browser.card == {} and browser.asking is None


@pytest.fixture
def stranger(home: Path, tmp_path: Path) -> gemnb.Chat:
    """A session of another project."""
    other = tmp_path / "other"
    other.mkdir()
    chat = gemnb.open_workspace(other, home=home, llm=ScriptedLlm("hi"), clock=lambda: NOW).new_chat()
    chat.send("hello")
    return chat


@pytest.mark.parametrize("actions", [["resume"], ["delete", "confirm"]], ids="-".join)
def test_a_session_of_another_project_is_not_touched_and_says_how_to_go_there(
    browser: Any, home: Path, tmp_path: Path, stranger: gemnb.Chat, actions: list[str]
) -> None:
    browser.act("all")
    assert len(browser.rows) == 4
    before = tree(home)

    for action in actions:
        browser.act(action, stranger.session_id)

    assert f"Gemnb.root = {str(tmp_path / 'other')!r}" in browser.status and browser.card == {}
    assert tree(home) == before


def test_a_session_of_another_project_is_forked_into_this_one(
    browser: Any, ws: gemnb.Workspace, root: Path, stranger: gemnb.Chat
) -> None:
    browser.act("all")

    browser.act("fork", stranger.session_id)

    assert ws.chat is not None and ws.chat.session_id not in ("", stranger.session_id)
    assert ws.chat.header.project_hash == project_hash(str(root))
    assert [message.text for message in ws.chat.messages if message.type == "gemini"] == ["hi"]


def test_what_is_empty_is_not_sent(browser: Any) -> None:
    sent = browser.get_state()["rows"][0]

    assert sent["title"] == browser.rows[0]["title"] and sent["matches"] == 0
    assert not {"tokens", "marks", "match", "current", "live", "hidden"} & sent.keys()


def test_tokens_are_counted_beside_and_order_the_rows(browser: Any) -> None:
    for _ in range(3):
        browser.act("sort")
    settle()

    assert browser.sort == "tokens" and all(row["tokens"] is not None for row in browser.rows)
    assert "3 of 3" in browser.status


def test_a_session_that_goes_while_it_is_looked_into_hides_no_other(three: None, ws: gemnb.Workspace) -> None:
    gone = ws.find(session_id("b"))

    def load(info: SessionInfo) -> Session:
        gone.path.unlink(missing_ok=True)
        return ws.store.load(info)

    assert [hit.session_id[0] for hit in search("bbb", [gone], load)] == []
    assert [hit.session_id[0] for hit in search("it is", ws.sessions(), load)] == ["c", "a"]


def test_a_deletion_that_fails_stays_in_the_list_and_says_why(browser: Any, ws: gemnb.Workspace) -> None:
    trash = ws.cleanup.trash.folder
    trash.parent.mkdir(parents=True, exist_ok=True)
    trash.write_text("in its place")

    browser.act("delete", session_id("b"))
    browser.act("confirm", session_id("b"))

    assert letters(browser) == "cba" and str(trash) in browser.status


def settle() -> None:
    """Wait for what runs in the background."""
    for thread in threading.enumerate():
        if thread.name == "gemnb-browser":
            thread.join()


def test_a_notebook_that_was_run_and_converted_shows_the_table(three: None, home: Path, root: Path) -> None:
    code = f"import gemnb\ngemnb.browse(gemnb.open_workspace({str(root)!r}, home={str(home)!r}))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])  # type: ignore[no-untyped-call]
    NotebookClient(notebook, kernel_name="python3", store_widget_state=False).execute()

    for exporter in (HTMLExporter(), MarkdownExporter()):
        text, _ = exporter.from_notebook_node(notebook)
        assert re.search("<td[^>]*>[^<]*How long is the river", text)


def test_the_worktrees_of_a_repository_are_shown_together(browser: Any, root: Path, home: Path, tmp_path: Path) -> None:
    (root / ".git" / "worktrees" / "two").mkdir(parents=True)
    tree, stranger = tmp_path / "two", tmp_path / "stranger"
    for place in (tree, stranger):
        place.mkdir()
        gemnb.open_workspace(place, home=home, llm=ScriptedLlm("hi")).new_chat().send("hello")
    (tree / ".git").write_text(f"gitdir: {root / '.git' / 'worktrees' / 'two'}\n")

    browser.act("worktrees")

    assert {row["project"] for row in browser.rows} == {str(root), str(tree)}


def test_messages_that_are_none_of_ours_do_nothing(browser: Any) -> None:
    before = browser.rows

    for content in ({}, {"do": 3}, {"do": "nonsense"}, {"do": "delete", "id": "nobody"}, [], "x"):
        browser._handle_custom_msg(content, [])

    assert browser.rows == before and browser.asking is None


def test_without_a_front_end_it_is_a_table_and_text(browser: Any) -> None:
    data, _ = browser._repr_mimebundle_()

    assert "<table" in data["text/html"] and session_id("a") in data["text/html"]
    assert session_id("a") in data["text/plain"] and "application/vnd.jupyter.widget-view+json" in data


def test_an_empty_project_is_no_error(ws: gemnb.Workspace) -> None:
    browser: Any = gemnb.browse(ws)

    assert browser.rows == [] and browser.selected is None
    browser.act("resume")
    assert "No session" in browser.status
