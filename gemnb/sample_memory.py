"""The memory of the sample store's main project: files, one of which is missing, and proposals that wait."""

from __future__ import annotations

from pathlib import Path

GLOBAL = "# Everywhere\n\n- Answer in short sentences.\n"
PRIVATE = "# rivers\n\n- Only clean.py changes what is in data/rivers.csv.\n"
PROJECT = {
    "GEMINI.md": (
        "# rivers\n\nThe yearly report on the rivers table. @docs/style.md\n\n"
        "- What the units mean: @docs/units.md\n- Where the sensors lie: @../calibration/README.md\n\n"
        "An import in code is none: `@docs/style.md`.\n"
    ),
    "docs/style.md": "Charts are SVG. Their words follow @words.md",
    "docs/words.md": "the list of the water board: discharge, never flow.\n",
}
"""The project's files by name; what they import of others is missing or lies out of the project."""


def write_memory(home: Path, root: Path, slug: str) -> None:
    """Write the memory files of the project `root`, and a proposal for each scope that has an inbox."""
    for name, text in PROJECT.items():
        _put(root / name, text)
    everywhere, private = home / ".gemini/GEMINI.md", home / ".gemini/tmp" / slug / "memory/MEMORY.md"
    _put(everywhere, GLOBAL)
    _put(private, PRIVATE)
    inbox = private.parent / ".inbox"
    _put(inbox / "private/preview.patch", _addition(private, PRIVATE, "The preview server listens on port 5433."))
    _put(inbox / "global/dates.patch", _addition(everywhere, GLOBAL, "Write dates as 2026-05-20."))


def _addition(path: Path, text: str, fact: str) -> str:
    """A patch that adds `fact` at the end of a file that holds `text`."""
    lines = text.splitlines()
    return f"--- {path}\n+++ {path}\n@@ -{len(lines)} +{len(lines)},2 @@\n {lines[-1]}\n+- {fact}\n"


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
