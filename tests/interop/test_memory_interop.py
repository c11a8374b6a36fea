"""What a talk is given of memory and workspace: the same from us as from the client, for the same tree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from client import Client

import gemnb
from gemnb.services.memory import SCOPES
from gemnb.services.session_context import session_context

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

RULES = {"rules": [], "default": [{"text": "Seen."}]}


OUT = "SECRET"
"""What lies out of the project, and is in no context."""
TREES: dict[str, dict[str, Any]] = {
    "several-names": {
        "settings": {"context": {"fileName": ["RULES.md", "GEMINI.md", "AGENTS.md"]}},
        "GEMINI.md": "Of the one name.\n",
        "AGENTS.md": "Of the other @more/a.md\n",
        "more/a.md": "imported",
        "home/.gemini/AGENTS.md": "Global, by another name.\n",
    },
    "one-name-that-is-not-the-usual": {
        "settings": {"context": {"fileName": "RULES.md"}},
        "RULES.md": "These hold.\n",
        "GEMINI.md": "These don't.\n",
    },
    "nested-deeper-than-is-followed": {
        "GEMINI.md": "zero @l1.md",
        **{f"l{n}.md": f"level {n} @l{n + 1}.md and more" for n in range(1, 8)},
    },
    "cycles-and-one-file-twice": {
        "GEMINI.md": "@a.md @c.md\n@./GEMINI.md\n",
        "a.md": "A @b.md",
        "b.md": "B @a.md @c.md",
        "c.md": "C",
    },
    "code": {
        "GEMINI.md": "```sh\nrun @a.md\n```\n`@a.md` and ``x ` @a.md`` but @a.md\n\nme@a.md (@a.md)\n",
        "sub/GEMINI.md": "````\n```\n@../a.md\n````\n@../a.md\n",
        "cwd": "sub",
        ".git/HEAD": "",
        "a.md": "A",
    },
    "links": {
        "GEMINI.md": "@in.md @out.md @folder/x.md\n",
        "real.md": "inside",
        "in.md": Path("real.md"),
        "out.md": Path("../out.md"),
        "folder": Path("../outside"),
    },
    "what-is-no-import": {
        "GEMINI.md": "@none.md @docs @https://x.org/a.md @ä.md @1.md @/etc/hostname @../out.md\r\n\r\nlast\r\n\r\n",
        "docs/a.md": "A",
    },
    "flat": {
        "settings": {"context": {"importFormat": "flat"}},
        "GEMINI.md": "zero @a.md @docs/b.md",
        "a.md": "A @c.md @GEMINI.md",
        "docs/b.md": "B @../c.md `@../a.md`",
        "c.md": "C",
    },
    "worktree-and-a-folder-below": {
        "cwd": "sub/deep",
        ".git": "gitdir: elsewhere\n",
        "GEMINI.md": "top @shared.md",
        "sub/GEMINI.md": "middle",
        "sub/deep/GEMINI.md": "here @../../shared.md @../../../out.md",
        "shared.md": "shared",
        "above/GEMINI.md": "not on the way",
    },
    "no-repository-and-a-folder-below": {
        "cwd": "sub",
        "GEMINI.md": "above @sub/a.md",
        "sub/GEMINI.md": "here @a.md @../GEMINI.md",
        "sub/a.md": "A",
    },
    "a-name-in-a-folder": {
        "settings": {"context": {"fileName": ["GEMINI.md", "./.github/rules.md"]}},
        "GEMINI.md": "one",
        ".github/rules.md": "two @more.md @../GEMINI.md",
        ".github/more.md": "three",
    },
    "a-folder-that-comes-before": {
        "cwd": "Also",
        ".git/HEAD": "",
        "GEMINI.md": "top",
        "Also/GEMINI.md": "below",
    },
    "one-file-by-two-names": {
        "settings": {"context": {"fileName": ["GEMINI.md", "AGENTS.md"]}},
        "GEMINI.md": "once",
        "AGENTS.md": Path("GEMINI.md"),
    },
    "empty-and-a-folder-in-its-place": {
        "cwd": "sub",
        ".git/HEAD": "",
        "GEMINI.md/x": "",
        "sub/GEMINI.md": " \n",
    },
}

OTHERWISE = {
    "one-name-that-is-not-the-usual": "the names of the settings are those that are read; it reads the usual one too",
    "a-folder-that-comes-before": "from the repository's root down; it sorts paths, so a folder may come first",
}
"""Trees of which the client is given something else than we give, with the reason."""


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sections(text: str) -> list[str]:
    """The memory files that a text holds, as they stand there."""
    return re.findall(r"^--- Context from: (?:[^\n]*) ---$.*?^--- End of Context from: [^\n]* ---$", text, re.M | re.S)


def tree_of(text: str) -> list[str]:
    """The lines of the directory structure."""
    return [line for line in text.split("\n") if "───" in line or line.startswith("Showing")]


def test_the_same_tree_gives_the_same_context(
    real_client: Callable[..., Client], home: Path, root: Path, ws: gemnb.Workspace
) -> None:
    (root / ".git").mkdir()
    put(root / "GEMINI.md", "Rules @docs/a.md\n\n```\n@docs/a.md\n```\n@none.md @../out.md @docs/loop.md\n")
    put(root / "docs/a.md", "Brief.\n")
    put(root / "docs/loop.md", "again @loop.md")
    put(root / "日本/川.csv", "x")
    put(root / "node_modules/x/y.js", "x")
    put(root.parent / "out.md", "SECRET")
    for number in range(250):
        put(root / f"many/{number:03}.txt", "")
    put(home / ".gemini/GEMINI.md", "Global rule.\n")

    client = real_client(RULES)
    client.prompt("Hello")

    request = next(r["body"] for r in list(client.server.recent) if r.get("body", {}).get("tools"))
    theirs: Any = request["contents"][0]["parts"][0]["text"]
    mine = session_context(root, temp=ws.folder, now=datetime.now(UTC))
    project = "\n\n".join(file.section for file in ws.memory().files if file.scope == "project")
    other = "\n\n".join(file.section for file in ws.memory().files if file.scope == "global")
    assert os.fspath(root) in theirs and tree_of(mine) == tree_of(theirs)
    assert project in theirs and "SECRET" not in theirs
    assert other in request["systemInstruction"]["parts"][0]["text"]


@pytest.mark.parametrize("name", TREES)
def test_what_the_client_is_given_of_a_tree_so_is_a_talk_of_ours(
    real_client: Callable[..., Client], home: Path, root: Path, name: str
) -> None:
    tree = dict(TREES[name])
    settings, cwd = tree.pop("settings", {}), root / tree.pop("cwd", "")
    put(root.parent / "out.md", OUT)
    put(root.parent / "outside/x.md", OUT)
    for path, told in tree.items():
        place = home / path.removeprefix("home/") if path.startswith("home/") else root / path
        if isinstance(told, Path):
            place.symlink_to(told)
        else:
            put(place, told)
    put(home / ".gemini/GEMINI.md", "Everywhere @g.md\n")
    put(home / ".gemini/g.md", "Global.")
    client = real_client(RULES)
    client.setup(**settings)
    client.cwd = cwd
    ws = gemnb.open_workspace(cwd, home=home, environ={})
    ws._projects.claim(ws.root)
    put(ws.folder / "memory/MEMORY.md", "Private @p.md\n")
    put(ws.folder / "memory/p.md", "mine")

    client.prompt("Hello")

    request = next(r["body"] for r in list(client.server.recent) if r.get("body", {}).get("tools"))
    first = request["contents"][0]["parts"][0]["text"]
    system = request["systemInstruction"]["parts"][0]["text"]
    read = ws.memory().files
    ours = {scope: [f.section for f in read if f.scope == scope and f.text.strip()] for scope in SCOPES}
    assert OUT not in first + system
    given, theirs = [*ours["global"], *ours["private"], *ours["project"]], sections(system) + sections(first)
    assert (theirs == given) == (name not in OTHERWISE)
    assert set(given) <= set(theirs)
