"""Tab after a magic of ours: sub-commands, options, sessions. One matcher, in IPython and through a kernel."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from gemnb.errors import GemnbError
from gemnb.model.shown import clean_line
from gemnb.notebook.arguments import commands, options
from gemnb.notebook.prefix import full_name

if TYPE_CHECKING:
    from gemnb.notebook.magics import Gemnb

_MAGIC = re.compile(r"\s*(?:\w[\w\s,]*=\s*)?%%?(?P<name>\w+)\s(?P<rest>.*)$", re.DOTALL)
KEYWORDS = ("latest", "last-used")


def make_matcher(
    magics: Gemnb, names: Callable[[str], Iterable[str]], ours: frozenset[str]
) -> Callable[[CompletionContext], Any]:
    """The matcher for the magics `ours`."""

    @context_matcher(identifier="gemnb.magics", priority=100)
    def gemnb_magics(context: CompletionContext) -> Any:
        line = context.text_until_cursor.rsplit("\n", 1)[-1]
        match = _MAGIC.match(line)
        if not match:
            return {"completions": []}
        name = full_name(match["name"], names("line"), ours) or match["name"]
        if name not in ours or name == "gemini":
            return {"completions": []}
        *before, word = re.split(r"\s+", match["rest"])
        found = [text for text in candidates(magics, name, [w for w in before if w]) if text.startswith(word)]
        return {
            "completions": [SimpleCompletion(text=text, type="magic") for text in found],
            "matched_fragment": word,
            "suppress": True,
            "ordered": True,
        }

    matcher: Callable[[CompletionContext], Any] = gemnb_magics
    return matcher


def candidates(magics: Gemnb, name: str, before: Sequence[str]) -> list[str]:
    """What may come after `%name` and the words `before`."""
    given = [word for word in before if not word.startswith("-")]
    command = given[0] if given and given[0] in commands(name) else None
    flags = [option for option in options(name, command) if option not in before]
    if not given:
        sessions = _sessions(magics) if name in ("resume", "chat") else []
        return [*sessions, *commands(name), *flags]
    if (name, *given) == ("sessions", "delete"):
        return [*_sessions(magics), *flags]
    if name in ("resume", "chat") and given in (["save"], ["resume"], ["delete"]):
        return [*_tags(magics), *flags]
    return flags


def _sessions(magics: Gemnb) -> list[str]:
    """What names a session: the keywords, the ids of the listing, newest first, then the numbers."""
    try:
        rows = magics.workspace.sessions()
    except (GemnbError, OSError):
        return []
    return [*(KEYWORDS if rows else ()), *(row.id for row in reversed(rows)), *(str(row.index) for row in rows)]


def _tags(magics: Gemnb) -> list[str]:
    """The tags of the project's checkpoints, as a line takes them."""
    try:
        return [shlex.quote(clean_line(point.tag)) for point in magics.workspace.checkpoints()]
    except (GemnbError, OSError):
        return []
