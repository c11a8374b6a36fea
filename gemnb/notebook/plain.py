"""Text of strangers made fit for a terminal."""

from __future__ import annotations

import unicodedata

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """`text` with its lines, without control, escape and bidi characters and half characters."""
    return "".join(
        char if char in "\n\t" or (unicodedata.category(char) not in ("Cc", "Cs") and char not in _BIDI) else ""
        for char in text
    )
