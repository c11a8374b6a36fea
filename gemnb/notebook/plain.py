"""Text of strangers made fit for a terminal."""

from __future__ import annotations

from gemnb.model.shown import HALF, UNSEEN


def printable(text: str) -> str:
    """`text` with its lines, without control, escape and bidi characters and half characters."""
    return HALF.sub("", UNSEEN.sub("", text)).replace("\r", "")
