"""What gemnb opens in a store that was made to lead it out: `python tests/attack/reach.py FOLDER`.

Prints, as JSON, each path that was opened below the folder and how, as the interpreter itself tells it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import gemnb
from gemnb.testing import DemoLlm

ENDINGS = ("json", "md", "html", "ipynb")


def errands(base: Path) -> None:
    """Everything that a person asks of a store, whatever comes of it."""
    ws = gemnb.open_workspace(base / "work" / "app", home=base / "home", llm=DemoLlm(), environ={})
    tried: list[Callable[[], object]] = [
        lambda: ws.listing(everywhere=True, hidden=True),
        gemnb.projects(base / "home").__len__,
        lambda: list(ws.search("river", projects="all")),
        ws.retention,
        lambda: gemnb.sessions_df(ws).shape,
        lambda: gemnb.messages_df(ws).shape,
        lambda: ws.memory().text,
        ws.checkpoints,
        *[lambda tag=c.tag: ws.load_checkpoint(tag).send("On.") for c in ws.checkpoints()],  # type: ignore[misc]
    ]
    for attempt in tried:
        with suppress(gemnb.GemnbError):
            attempt()
    for info in ws.sessions(hidden=True):
        with suppress(gemnb.GemnbError):
            chat = ws.resume(info.id)
            chat.send("Go on.")
            chat.compress(floor={})
            for ending in ENDINGS:
                chat.export(base / "exports" / f"out.{ending}")
    ws.new_chat().send("Another.")
    for info in ws.sessions(hidden=True):
        with suppress(gemnb.GemnbError):
            ws.delete(info.id)
    with suppress(gemnb.GemnbError):
        ws.undo_deletion()


def main(base: Path) -> None:
    """Run the errands, and tell what was opened below `base`."""
    opened: set[tuple[str, str]] = set()

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and isinstance(args[0], str | bytes) and os.fsdecode(args[0]).startswith(str(base)):
            flags = args[2] if isinstance(args[2], int) else 0
            opened.add((os.fsdecode(args[0]), "write" if flags & (os.O_WRONLY | os.O_RDWR) else "read"))

    sys.addaudithook(hook)
    errands(base)
    print(json.dumps(sorted(opened)))  # noqa: T201 - a program


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
