"""How quick the session browser is on a page: `python tests/benchmarks/browser_page.py STORE` with Chromium.

Prints milliseconds in a real JupyterLab: the making of the browser with its listing, the script of a key, from a key to
the preview of the next session, and from a letter in the search to rows on the page (the pause after it included).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[1] / "browser"))
import lab

OPEN = """
import gemnb, time
ws = gemnb.open_workspace({project!r}, home={home!r})
listing = ws.listing()
begun = time.perf_counter()
browser = gemnb.browse(ws)
made = (time.perf_counter() - begun) * 1000
browser
"""
KEYS = """(count) => {
  const list = document.querySelector(".gemnb-browser [role=listbox]");
  return Array.from({ length: count }, () => {
    const begun = performance.now();
    list.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
    list.getBoundingClientRect();
    return performance.now() - begun;
  });
}"""
DRAWN = """([action, value, place]) => new Promise((resolve) => {
  const root = document.querySelector(".gemnb-browser");
  const begun = performance.now();
  new MutationObserver((_, observer) => {
    if (action === "search" && !root.querySelector(place).textContent.includes(`“${value}”`)) return;
    observer.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - begun));
  }).observe(root.querySelector(place), { childList: true, subtree: true, characterData: true });
  if (action === "key") {
    const list = root.querySelector("[role=listbox]");
    list.dispatchEvent(new KeyboardEvent("keydown", { key: value, bubbles: true }));
  } else {
    const search = root.querySelector("input");
    search.focus();
    search.value = value;
    search.dispatchEvent(new Event("input", { bubbles: true }));
  }
})"""
WORDS = ("plot", "error", "test", "data", "函数", "row", "port")


def report(name: str, times: list[float]) -> None:
    """Print the middle and the 95th percentile."""
    print(f"{name}: {median(times):.1f} ms, 95th percentile {quantiles(times, n=20)[-1]:.1f} ms")


def main(store: Path) -> None:
    """Measure and print."""
    first = OPEN.format(project=str(store / "proj"), home=str(store / "home"))
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.chromium_browser() as chromium,
        lab.room(chromium, "lab", Path(folder), first) as room,
    ):
        count = room.ask("len(browser.rows)")
        print(f"{count} sessions; made in {room.ask('made'):.0f} ms with a listing of its own")
        report("script of a key with its layout", room.page.evaluate(KEYS, 200))
        room.press("Home")
        seen = [room.page.evaluate(DRAWN, ["key", "ArrowDown", ".gemnb-preview"]) for _ in range(30)]
        report("a key to the next preview", seen)
        letters = []
        for word in WORDS:
            for end in range(1, len(word) + 1):
                letters.append(room.page.evaluate(DRAWN, ["search", word[:end], "[role=status]"]))
            room.page.keyboard.press("Escape")
            lab.until(lambda: room.root.locator("[role=status]").text_content().startswith(str(count)))
        report("a letter to rows on the page", letters)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
