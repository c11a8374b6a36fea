"""A unique prefix of a magic's name is enough: `%resum`, `%%gem`. Bare words stay what they are."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Callable, Iterable
from tokenize import TokenInfo

from IPython.core.inputtransformer2 import TokenTransformBase, _find_assign_op

Names = Callable[[str], Iterable[str]]
"""Gives all magic names of a kind, `line` or `cell`."""


def full_name(name: str, known: Iterable[str], ours: Iterable[str]) -> str | None:
    """The magic of `ours` that `name` is a unique prefix of among all `known`; None for a whole or unclear name."""
    known = set(known)
    if name in known:
        return None
    matches = {k for k in known if k.startswith(name)}
    return matches.pop() if len(matches) == 1 and matches <= set(ours) else None


def line_transformer(names: Names, ours: frozenset[str]) -> type[TokenTransformBase]:
    """A token transformer for `%name` at the start of a statement or right of an assignment."""

    class UniquePrefix(TokenTransformBase):  # type: ignore[misc]
        """Completes the name after a `%`; it stands at the `%` itself and comes before the magics' own transformer."""

        priority = 1

        def __init__(self, percent: TokenInfo, name: TokenInfo, full: str) -> None:
            super().__init__(percent.start)
            self._from, self._to, self._full = name.start[1], name.end[1], full

        @classmethod
        def find(cls, tokens_by_line: list[list[TokenInfo]]) -> UniquePrefix | None:
            for line in tokens_by_line:
                for at in _magic_places(line):
                    full = full_name(line[at + 1].string, names("line"), ours)
                    if full:
                        return cls(line[at], line[at + 1], full)
            return None

        def transform(self, lines: list[str]) -> list[str]:
            changed = list(lines)
            line = lines[self.start_line]
            changed[self.start_line] = line[: self._from] + self._full + line[self._to :]
            return changed

    return UniquePrefix


def prompt_transformer(names: Names, ours: frozenset[str]) -> type[TokenTransformBase]:
    """A token transformer for `%gemini …?`: a prompt that ends in a question mark is no call for help."""

    class PromptLine(TokenTransformBase):  # type: ignore[misc]
        """Calls the magic with the line as it stands; at the line's start, it comes before IPython's rule for `?`."""

        priority = 0

        def __init__(self, percent: TokenInfo, name: TokenInfo) -> None:
            super().__init__((percent.start[0], 0))
            self._from, self._text_from = percent.start[1], name.end[1]

        @classmethod
        def find(cls, tokens_by_line: list[list[TokenInfo]]) -> PromptLine | None:
            for line in tokens_by_line:
                for at in _magic_places(line):
                    name = line[at + 1]
                    known = full_name(name.string, names("line"), ours) or name.string
                    text = name.line[name.end[1] :].strip()
                    if known == "gemini" and name.end[0] == line[at].start[0] and len(text) > 1 and text.endswith("?"):
                        return cls(line[at], name)
            return None

        def transform(self, lines: list[str]) -> list[str]:
            line = lines[self.start_line]
            call = f"get_ipython().run_line_magic('gemini', {line[self._text_from :].strip()!r})\n"
            return [*lines[: self.start_line], line[: self._from] + call, *lines[self.start_line + 1 :]]

    return PromptLine


def _magic_places(line: list[TokenInfo]) -> Iterable[int]:
    """Where in a line of tokens a `%` with a name right after it begins a magic."""
    start = 0
    while start < len(line) and line[start].type in (tokenize.INDENT, tokenize.DEDENT):
        start += 1
    assigned = _find_assign_op(line)
    for at in {start} | ({assigned + 1} if assigned is not None else set()):
        percent, name = line[at : at + 2] if at + 1 < len(line) else (None, None)
        if percent and name and percent.string == "%" and name.type == tokenize.NAME and percent.end == name.start:
            yield at


def cell_transformer(names: Names, ours: frozenset[str]) -> Callable[[list[str]], list[str]]:
    """A transform of whole cells for `%%name` on the first line."""

    def unique_prefix(lines: list[str]) -> list[str]:
        match = re.match(r"%%(\w+)", lines[0]) if lines else None
        full = full_name(match[1], names("cell"), ours) if match else None
        return [f"%%{full}{lines[0][match.end() :]}", *lines[1:]] if match and full else lines

    return unique_prefix
