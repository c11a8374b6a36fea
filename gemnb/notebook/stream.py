"""An answer shown as it comes: one display that is updated, or plain text in a terminal."""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from typing import Protocol

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import Markdown, display

from gemnb.errors import LlmError
from gemnb.model.outcome import Outcome
from gemnb.notebook.plain import printable
from gemnb.services.chat import Cancelled, Chat, Reply
from gemnb.services.markdown import safe_markdown

EVERY_S = 0.1
"""Shortest time between two updates: front ends redraw the whole Markdown each time."""


class ShownReply(Reply):
    """A reply whose text is on the page already; shown itself, it is one line about how it went."""

    def __repr__(self) -> str:
        spent = f"{self.tokens.total:,} tokens" if self.tokens and self.tokens.total is not None else "tokens unknown"
        return f"[{self.outcome} · {spent}]"

    __str__ = __repr__


class Screen(Protocol):
    """Where an answer appears."""

    def add(self, text: str) -> None:
        """Show one more piece."""
        ...

    def end(self, note: str | None) -> None:
        """Show all of it, and a note on how it ended."""
        ...


class MarkdownScreen:
    """A display of the front end, updated at most ten times a second."""

    def __init__(self, *, live: bool) -> None:
        self._text = ""
        self._shown_at = time.monotonic()
        self._live = live
        self._handle = display(Markdown("…"), display_id=True)

    def add(self, text: str) -> None:
        """Show one more piece."""
        self._text += text
        if self._live and time.monotonic() - self._shown_at > EVERY_S:
            self._shown_at = time.monotonic()
            self._handle.update(Markdown(safe_markdown(printable(self._text))))

    def end(self, note: str | None) -> None:
        """Show all of it, and a note on how it ended."""
        told = f"{self._text}\n\n*[{note}]*" if note else self._text
        self._handle.update(Markdown(safe_markdown(printable(told)).strip()))


class TerminalScreen:
    """Plain text, piece by piece."""

    def add(self, text: str) -> None:
        """Show one more piece."""
        sys.stdout.write(printable(text))
        sys.stdout.flush()

    def end(self, note: str | None) -> None:
        """Close the line, and show a note on how it ended."""
        sys.stdout.write(f"\n[{printable(note)}]\n" if note else "\n")


def show(shell: InteractiveShell, chat: Chat, text: str, *, live: bool) -> ShownReply:
    """Send `text` and show the answer as it comes.

    Raises:
        LlmError: the service failed; what it said.
        Cancelled: an interrupt, while the model answered or while a piece was shown; what had come is recorded.
    """
    pieces = chat.stream(text)
    screen: Screen = MarkdownScreen(live=live) if getattr(shell, "kernel", None) else TerminalScreen()
    try:
        for chunk in pieces:
            screen.add(chunk.text)
    except KeyboardInterrupt:
        pieces.close()
        if chat.last_reply is None:
            raise
        raise Cancelled(chat.last_reply) from None
    finally:
        pieces.close()  # whatever stopped us, what had come is recorded now
        reply = chat.last_reply
        failed = reply is not None and reply.outcome is Outcome.ERROR
        screen.end(None if reply is None or failed else reply.error)
    assert reply is not None  # the stream ran to its end
    if failed:
        raise LlmError(reply.error or "The model's service failed.")
    return ShownReply(**{f.name: getattr(reply, f.name) for f in fields(Reply)})
