"""The session browser as a part of its page: focus, themes, a running cell, two views, a page loaded again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab import Room, until

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("default")]

THEMES = ("Light", "Dark", "Dark High Contrast")
STATES = {
    "list": [],
    "search": ["/", *"report"],
    "hidden": ["h"],
    "everywhere": ["a"],
    "question": ["x"],
    "help": ["?"],
    "card": ["q"],
}
"""What is pressed to come to each state."""
CONTRAST = """
() => {
  const parse = (colour) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (element) => {
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const told = [...document.querySelectorAll(".gemnb-browser *")].filter((element) =>
    element.checkVisibility() && [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  return told.map((element) => [ratio(element), element.tagName, element.className, element.textContent.slice(0, 30)]);
}
"""
"""The contrast of each element that holds text, by the formula of WCAG 2."""


CHOSEN = "[...document.querySelectorAll('.gemnb-browser [role=option]')].findIndex(row => row.ariaSelected === 'true')"
"""The place of the row that the page shows as selected."""


def selected(room: Room) -> int:
    return int(room.ask("[row['id'] for row in browser.rows].index(browser.selected)"))


def active(room: Room) -> str:
    return str(room.page.evaluate("document.activeElement.getAttribute('role') ?? document.activeElement.tagName"))


def run_cell(room: Room, number: int, code: str) -> None:
    """Write `code` into a cell in place of what it holds, and run it."""
    room.page.locator(".jp-Cell .cm-content").nth(number).click()
    room.page.keyboard.press("Control+a")
    room.page.keyboard.insert_text(code)
    room.page.keyboard.press("Control+Enter")


@pytest.fixture(autouse=True)
def fresh(room: Room) -> None:
    room.open()


def test_a_browser_that_opens_takes_the_keys(room: Room) -> None:
    room.page.locator(".jp-Cell .cm-content").nth(2).click()

    room.open(click=False)

    until(lambda: active(room), "listbox")
    room.page.keyboard.press("ArrowDown")
    until(lambda: selected(room), 1)


def test_who_is_in_it_already_keeps_the_keys_where_they_are(room: Room) -> None:
    room.press("/")
    until(lambda: active(room), "INPUT")

    room.ask("(browser.send({'do': 'focus'}), setattr(browser, 'selected', browser.rows[2]['id']))")
    until(lambda: room.page.evaluate(CHOSEN), 2)

    assert active(room) == "INPUT"


def test_tab_goes_through_it_and_leaves_and_the_focus_is_seen(room: Room) -> None:
    room.list.focus()
    room.page.keyboard.press("Tab")
    until(lambda: active(room), "region")
    assert room.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"

    for _ in range(40):
        if not room.page.evaluate("document.activeElement.closest('.gemnb-browser') !== null"):
            return
        room.page.keyboard.press("Tab")
    raise AssertionError("Tab never left the browser")


def test_closing_it_gives_the_keys_back_to_the_notebook(room: Room) -> None:
    room.press("Escape")
    room.root.locator(".gemnb-card").wait_for()

    room.page.keyboard.press("ArrowDown")
    room.page.keyboard.press("b")

    until(lambda: len(room.cells()), 4)
    room.page.keyboard.press("d")
    room.page.keyboard.press("d")
    until(lambda: len(room.cells()), 3)


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_can_be_read_in_every_theme(room: Room, theme: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get("GEMNB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    room.theme(theme)
    try:
        for state, keys in STATES.items():
            room.open()
            room.press(*keys)
            room.page.wait_for_function("() => document.querySelector('.gemnb-browser').checkVisibility()")
            until(lambda state=state: has_come(room, state))
            path = folder / f"{room.app}-{theme.replace(' ', '-').lower()}-{state}.png"
            room.root.screenshot(path=path)

            weak = [told for told in room.page.evaluate(CONTRAST) if told[0] < 4.5]
            assert not weak, f"{state}: {weak}"
            assert path.stat().st_size > 2_000
    finally:
        room.theme("Light")


def has_come(room: Room, state: str) -> bool:
    """Whether the page shows a state of `STATES`."""
    shown = {
        "search": "mark",
        "hidden": "[data-action=hidden][aria-pressed=true]",
        "everywhere": "[data-action=all][aria-pressed=true]",
        "question": "[role=alertdialog] button",
        "help": ".gemnb-help:not([hidden])",
        "card": ".gemnb-card",
    }
    return bool(room.root.locator(shown.get(state, "[role=option]")).count())


def test_it_answers_while_a_cell_runs(room: Room) -> None:
    run_cell(room, 1, "import time\nwhile browser.sort == 'date': time.sleep(0.02)\nbrowser.sort")
    room.page.locator(".jp-Cell").nth(1).get_by_text("[*]").wait_for()

    room.press("s")

    room.page.locator(".jp-Cell").nth(1).get_by_text("'messages'").wait_for()
    until(lambda: room.root.locator("[data-action=sort]").text_content(), "Sort: messages")


def test_two_views_of_one_browser_stay_in_step(room: Room) -> None:
    run_cell(room, 1, "browser")
    until(room.root.count, 2)
    first, second = room.root.nth(0), room.root.nth(1)
    second.locator("[role=option]").first.wait_for()

    first.locator("[role=listbox]").focus()
    room.page.keyboard.press("ArrowDown")
    chosen = "[role=option][aria-selected=true]"
    until(lambda: second.locator(chosen).get_attribute("aria-posinset"), "2")
    second.locator("[role=listbox]").focus()
    room.page.keyboard.press("ArrowDown")

    until(lambda: first.locator(chosen).get_attribute("aria-posinset"), "3")
    run_cell(room, 1, "1 + 1")
    until(room.root.count, 1)


def test_a_page_that_is_loaded_again_shows_it_where_it_was_and_takes_no_keys(room: Room) -> None:
    room.press("ArrowDown", "ArrowDown")
    until(lambda: selected(room), 2)
    room.page.keyboard.press("Control+s")
    model = room.ask("browser.model_id")
    until(lambda: model in (room.folder / "browse.ipynb").read_text())

    room.page.reload()

    room.root.locator("[role=option]").first.wait_for(timeout=60_000)
    until(lambda: room.root.locator("[aria-selected=true]").get_attribute("aria-posinset"), "3")
    assert active(room) != "listbox"
    room.press("ArrowDown")
    until(lambda: selected(room), 3)
