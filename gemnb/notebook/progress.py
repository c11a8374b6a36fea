"""A line that says how far a cell's long job is, from its second second on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

AFTER_S = 1.0
"""A job that is done by then shows nothing."""
EVERY_S = 0.2
"""Shortest time between two updates."""
GAP_S = 0.5
"""A job that begins this long after the last one is another one, with a second of its own."""


class ProgressLine:
    """Told by the services, shown in the cell that runs; beside cells it shows nothing.

    Args:
        clock: seconds, of any origin.
        show: makes the display, and gives what updates it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, show: Callable[..., Any] = display) -> None:
        self._clock = clock
        self._show = show
        self._handle: Any = None
        self._running = True
        self._begun = self._last = self._shown = -GAP_S

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far it is, if it has taken a second."""
        now = self._clock()
        if done == 0 and now - self._last >= GAP_S:
            self._begun = now
        self._last = now
        if not self._running or now - self._begun < AFTER_S:
            return
        if now - self._shown >= EVERY_S or done == total:
            self._shown = now
            self._tell(f"{what}: {done:,} of {total:,}" + ("" if done == total else " …"))

    def begin(self, *_: object) -> None:
        """A cell starts, and with it another job."""
        self._handle, self._running = None, True
        self._last = -math.inf

    def end(self, *_: object) -> None:
        """The cell has ended, or was interrupted: what was shown stays as it is."""
        self._handle, self._running = None, False

    def _tell(self, text: str) -> None:
        if self._handle is None:
            self._handle = self._show({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)


def watch(shell: InteractiveShell, line: ProgressLine) -> None:
    """Let `line` know when cells start and end."""
    shell.events.register("pre_run_cell", line.begin)
    shell.events.register("post_run_cell", line.end)


def unwatch(shell: InteractiveShell, line: ProgressLine) -> None:
    """Take that back."""
    shell.events.unregister("pre_run_cell", line.begin)
    shell.events.unregister("post_run_cell", line.end)
