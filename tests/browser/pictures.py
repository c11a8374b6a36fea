"""The README's pictures, made from the sample store: `python tests/browser/pictures.py`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lab

PICTURES = Path(__file__).parents[2] / "notebooks" / "pictures"
WORD = "report"
"""What is looked for in the picture."""


def main() -> None:
    """Write both."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.chromium_browser() as browser,
        lab.room(browser, "notebook", Path(folder)) as room,
    ):
        room.page.add_style_tag(content=".gemnb-browser :focus-visible { outline: none !important; }")
        room.click("search")
        room.page.keyboard.type(WORD)
        lab.until(lambda: "matches in what was said" in room.root.locator("[role=status]").text_content())
        room.root.locator("mark").first.wait_for()
        room.root.screenshot(path=PICTURES / "browser.png")
        chart = PICTURES / "usage.png"
        room.run("from pathlib import Path; table = gemnb.usage_df(ws, by=['month', 'model'], tz='UTC')")
        room.run(f"_ = Path({str(chart)!r}).write_bytes(gemnb.plots.usage(table).png())")


if __name__ == "__main__":
    main()
