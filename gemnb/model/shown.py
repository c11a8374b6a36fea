"""Text of strangers as it is shown: without what cannot be seen, or with it written out. Loads nothing else."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control, escape and bidi characters, but for those that are white space."""
HALF = re.compile("[\ud800-\udfff]")
_WRITTEN_OUT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff"
    "\U000e0000-\U000e007f]"
)
"""What would be written and not seen; the line end is told apart."""


def clean_line(text: str) -> str:
    """`text` on one line, fit to be shown: white space folded, control, bidi and escape characters stripped.

    >>> clean_line("two\\n lines\\x1b[31m")
    'two lines[31m'
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line  # as nearly every text is, and five times as fast
    return " ".join(HALF.sub("\ufffd", UNSEEN.sub("", text)).split())


def visible(text: str) -> str:
    """`text` with control, bidi and other characters that are not seen written out; line ends stay.

    >>> visible("two\\n lines\\x1b[31m")
    'two\\n lines<U+001B>[31m'
    """
    return _WRITTEN_OUT.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
