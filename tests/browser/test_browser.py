"""The session browser in a real JupyterLab and a real Notebook 7: its keys, its buttons, and what it leaves alone."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from lab import Room, until

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]

HOSTILE = "<img src=x onerror=window.pwned=1></div><script>window.pwned=1</script>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SAID = HOSTILE + " [link](javascript:window.pwned=1) ![picture](http://example.invalid/x.png) 河川の数は🏞️です"


def selected(room: Room) -> int:
    return int(room.ask("[row['id'] for row in browser.rows].index(browser.selected)"))


@pytest.fixture(autouse=True)
def fresh(room: Room) -> None:
    """A new browser, which no key of the test before can reach."""
    room.open()


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["ArrowDown"], 1),
        (["ArrowDown", "ArrowDown", "ArrowUp"], 1),
        (["G"], -1),
        (["End", "Home"], 0),
        (["End", "g"], 0),
        (["j", "j", "k"], 1),
    ],
    ids=lambda told: "-".join(told) if isinstance(told, list) else "",
)
def test_keys_move_the_selection(room: Room, keys: list[str], place: int) -> None:
    wanted = place % room.ask("len(browser.rows)")

    room.press(*keys)

    until(lambda: selected(room), wanted)
    assert room.cells() == ["code"] * 3


@pytest.mark.parametrize(("down", "up", "pages"), [("PageDown", "PageUp", 1), ("d", "u", 0.5)])
def test_a_page_moves_down_and_up_again(room: Room, down: str, up: str, pages: float) -> None:
    row, whole = (
        room.page.evaluate(f"document.querySelector('.gemnb-browser {place}').clientHeight")
        for place in ("[role=option]", "[role=listbox]")
    )
    room.press(down)
    until(lambda: selected(room), math.ceil((whole // row - 1) * pages))

    room.press(up)

    until(lambda: selected(room), 0)


@pytest.mark.parametrize(
    ("key", "action", "state"),
    [
        ("s", "sort", "browser.sort != 'date'"),
        ("r", "reverse", "browser.reverse"),
        ("a", "all", "browser.everywhere"),
        ("w", "worktrees", "browser.worktrees"),
        ("h", "hidden", "browser.hidden"),
    ],
)
def test_a_key_and_its_button_do_the_same(room: Room, key: str, action: str, state: str) -> None:
    room.press(key)
    until(lambda: room.ask(f"bool({state})"))
    room.run("browser.sort = 'date'")

    room.click(action)

    until(lambda: room.ask(f"bool({state})"), action == "sort")


def test_search_shows_each_match_in_its_context_and_esc_leaves_it(room: Room) -> None:
    count = room.ask("len(browser.rows)")
    room.press("/")
    room.page.keyboard.type("report")

    until(lambda: 0 < room.ask("len(browser.rows)") < count)
    until(lambda: room.root.locator("mark").first.text_content().casefold() == "report")
    room.page.keyboard.press("Escape")

    until(lambda: room.ask("[browser.query, len(browser.rows)]"), ["", count])
    assert room.cells() == ["code"] * 3


@pytest.mark.parametrize("word", ["河川の数", "🏞️"])
def test_search_finds_cjk_and_emoji_and_a_strangers_words_run_nothing(room: Room, word: str) -> None:
    record = {"type": "user", "timestamp": "2026-11-30T10:00:00.000Z", "content": [{"text": SAID}]}
    answer = {"type": "gemini", "timestamp": "2026-11-30T10:00:01.000Z", "content": SAID}
    header = {"sessionId": "bad0bad0-0000-4000-8000-000000000000", "startTime": record["timestamp"], "kind": "main"}
    lines = [header, {"id": "u1", **record}, {"id": "g1", **answer}, {"$set": {"summary": HOSTILE}}]
    chats = Path(room.ask("str(ws.folder / 'chats')"))
    (chats / "session-2026-11-30T10-00-bad0bad0.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    room.run("browser.act('reverse'); browser.act('reverse'); browser._read()")

    room.click("search")
    room.page.keyboard.type(word)
    until(lambda: room.ask("[row['id'][:8] for row in browser.rows]"), ["bad0bad0"])
    room.list.focus()
    until(lambda: "河川" in (room.root.locator(".gemnb-preview").text_content() or ""))

    assert HOSTILE in room.root.locator("[role=option]").first.text_content()
    assert room.root.locator("img, script, a[href^=javascript]").count() == 0
    assert room.page.evaluate("window.pwned") is None
    assert room.foreign == []


@pytest.mark.parametrize("keys", [["x", "n"], ["X", "Escape"]], ids="-".join)
def test_a_deletion_asks_and_can_be_refused(room: Room, keys: list[str]) -> None:
    count = room.ask("len(browser.rows)")
    room.press(keys[0])
    room.root.locator("[role=alertdialog]").wait_for()
    until(lambda: room.page.evaluate("document.activeElement.dataset.action"), "cancel")

    room.page.keyboard.press(keys[1])

    until(lambda: room.ask("browser.asking"), None)
    assert room.ask("len(browser.rows)") == count
    assert room.cells() == ["code"] * 3


def test_a_deletion_that_is_confirmed_goes_to_the_trash(room: Room) -> None:
    gone = room.ask("browser.selected")
    room.click("delete")
    room.root.locator("[role=alertdialog]").wait_for()

    room.click("confirm")

    until(lambda: gone not in room.ask("[row['id'] for row in browser.rows]"))
    until(lambda: "--undo" in room.root.locator("[role=status]").text_content())
    room.run("ws.undo_deletion('delete'); browser._read()")


def test_keys_for_the_notebook_do_nothing_to_it_here(room: Room) -> None:
    room.press("b", "m", "y", "0", "0", "i", "i", "c", "v", "o", "z", "1")

    assert room.cells() == ["code"] * 3
    assert room.page.locator(".jp-Dialog").count() == 0
    room.list.focus()
    assert room.page.evaluate("document.activeElement.getAttribute('role')") == "listbox"


@pytest.mark.parametrize("touched", [False, True], ids=["goes on", "runs it again once it was used"])
def test_who_runs_cell_by_cell_is_not_held_up(room: Room, touched: bool) -> None:
    room.open(click=False)
    until(lambda: room.page.evaluate("document.activeElement.getAttribute('role')"), "listbox")
    if touched:
        room.page.keyboard.press("ArrowDown")
    ran = room.ask("len(In)")

    room.page.keyboard.press("Shift+Enter")

    until(lambda: room.ask("len(In)"), ran + 1)
    until(lambda: room.ask("In[-1]") == "1 + 1", not touched)


def test_typing_in_a_cell_does_nothing_to_the_browser(room: Room) -> None:
    before = room.ask("[browser.sort, browser.selected, browser.query, browser.asking]")
    room.page.locator(".jp-Cell .cm-content").nth(2).click()

    room.page.keyboard.type("xsr/")

    until(lambda: "xsr/" in room.page.locator(".jp-Cell .cm-content").nth(2).text_content())
    assert room.ask("[browser.sort, browser.selected, browser.query, browser.asking]") == before
    for _ in range(4):
        room.page.keyboard.press("Backspace")


def test_a_chord_stays_with_the_application(room: Room) -> None:
    room.list.focus()
    notebook = room.folder / "browse.ipynb"
    before = notebook.stat().st_mtime_ns

    room.page.keyboard.press("Control+s")

    until(lambda: notebook.stat().st_mtime_ns != before)
    assert room.ask("browser.sort") == "date"


def test_the_keys_are_told(room: Room) -> None:
    room.press("?")
    assert room.root.locator(".gemnb-help").is_visible()

    room.click("help")

    assert not room.root.locator(".gemnb-help").is_visible()


@pytest.mark.parametrize("how", ["key", "button"])
def test_fork_then_resume_close_it_into_a_card(room: Room, how: str) -> None:
    room.press("ArrowDown" if how == "key" else "End")
    until(lambda: selected(room) > 0)
    room.press("f") if how == "key" else room.click("fork")
    card = room.root.locator(".gemnb-card")
    card.wait_for()
    assert "%%gemini" in card.text_content()
    fork = room.ask("ws.chat.session_id")

    room.open()
    room.press("G" if how == "key" else "ArrowDown")
    until(lambda: selected(room) > 0)
    wanted = room.ask("browser.selected")
    room.press("Enter") if how == "key" else room.click("resume")
    card.wait_for()

    until(lambda: room.ask("ws.chat.session_id"), wanted)
    assert fork != wanted
    room.open()
    current = room.ask("[row['id'] for row in browser.rows if row['current']]")
    assert current == [wanted]
    room.run(f"browser.selected = {wanted!r}")
    room.root.locator("[aria-selected=true] .gemnb-badge", has_text="current").wait_for()
    room.press("x")
    until(lambda: "current" in room.root.locator("[role=status]").text_content())
    assert room.ask("browser.asking") is None


def test_a_click_selects_and_two_resume(room: Room) -> None:
    row = room.root.locator("[role=option]").nth(3)
    row.click()
    until(lambda: selected(room), 3)
    wanted = room.ask("browser.selected")

    row.dblclick()

    room.root.locator(".gemnb-card").wait_for()
    until(lambda: room.ask("ws.chat.session_id"), wanted)


def test_a_long_talk_with_a_picture_is_shown_as_far_as_it_is_asked_for(room: Room) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    header = {
        "sessionId": "10001000-0000-4000-8000-000000000000",
        "projectHash": "",
        "startTime": "2026-01-01T10:00:00.000Z",
    }
    said = [{"id": f"u{n}", "type": "user", "content": [{"text": f"prompt {n}"}, picture]} for n in range(45)]
    chats = Path(room.ask("str(ws.folder / 'chats')"))
    (chats / "session-2026-01-01T10-00-10001000.jsonl").write_text("\n".join(map(json.dumps, [header, *said])) + "\n")
    room.run(f"browser._read(); browser.selected = {header['sessionId']!r}")
    talk = room.root.locator(".gemnb-preview article")
    until(talk.count, 20)
    assert room.root.locator("img").count() == 0

    room.click("pictures")
    until(room.root.locator("img").count, 20)
    room.click("more")
    until(talk.count, 40)
    room.click("more")

    until(talk.count, 45)
    assert room.root.locator("[data-action=more]").count() == 0


@pytest.mark.parametrize("how", ["Escape", "q", "button"])
def test_it_closes(room: Room, how: str) -> None:
    room.click("close") if how == "button" else room.press(how)

    room.root.locator(".gemnb-card").wait_for()
    assert room.ask("bool(browser.card)")
    assert room.cells() == ["code"] * 3
