"""What is told in one line: what is due or at risk, after `%load_ext gemnb`, and warnings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from gemnb.errors import GemnbError, GemnbWarning


@dataclass(frozen=True, slots=True)
class Notice:
    """A line about the store."""

    text: str

    def __repr__(self) -> str:
        return self.text


class LateNotice:
    """Finds the line on a thread of its own, and shows it at the end of the next cell that ends after that."""

    def __init__(self, shell: InteractiveShell, find: Callable[[], str | None]) -> None:
        self._shell = shell
        self._find = find
        self._line: str | None = None
        self._thread = threading.Thread(target=self._look, name="gemnb-notice", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._shell.events.register("post_run_cell", self._show)
        self._thread.start()

    def stop(self) -> None:
        """Show nothing any more."""
        if self._show in self._shell.events.callbacks["post_run_cell"]:
            self._shell.events.unregister("post_run_cell", self._show)

    def wait(self) -> None:
        """Wait until the store was looked at."""
        self._thread.join()

    def _look(self) -> None:
        try:
            self._line = self._find()
        except (GemnbError, OSError):  # a store that cannot be read says so when it is asked for
            self._line = None

    def _show(self, *_: object) -> None:
        if self._thread.is_alive():
            return
        self.stop()
        if self._line:
            display(Notice(self._line))  # type: ignore[no-untyped-call]


def one_line(format_warning: Callable[..., str]) -> Callable[..., str]:
    """`format_warning`, but for our own warnings: their message says all, and no file of ours stands before it."""

    @wraps(format_warning)
    def formatted(message: Warning | str, category: type[Warning], *where: object, **more: object) -> str:
        if issubclass(category, GemnbWarning):
            return f"{category.__name__}: {message}\n"
        return format_warning(message, category, *where, **more)

    return formatted
