"""The line of a magic, parsed: quotes, sub-commands, one clean sentence for a mistake."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import NoReturn

from gemnb.errors import GemnbError


class UsageMistake(GemnbError):
    """A magic was called with words that it does not take."""

    code = "USAGE"


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving, and says how the magic is called."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog=prog, add_help=False, allow_abbrev=True)

    def error(self, message: str) -> NoReturn:
        """Raise the mistake as one sentence."""
        raise UsageMistake(
            f"%{self.prog}: {message}. {' '.join(self.format_usage().split())} (`%{self.prog}?` tells more)"
        )


def words(line: str, *, magic: str) -> list[str]:
    """The words of a line as a shell would split them, quotes taken away.

    Raises:
        UsageMistake: a quote is not closed.
    """
    try:
        return shlex.split(line, comments=False, posix=True)
    except ValueError:
        raise UsageMistake(f'%{magic}: a quote is not closed in {line!r}; write it as \\" or close it.') from None


def sessions_parser() -> Parser:
    """`%sessions`."""
    parser = Parser("sessions")
    parser.add_argument("command", nargs="?", choices=["delete", "retention", "usage"])
    parser.add_argument("session", nargs="?")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--df", action="store_true")
    parser.add_argument("--search", metavar="WORDS")
    parser.add_argument("--by", default="day,model")
    parser.add_argument("--apply", action="store_true")
    return parser


def resume_parser(prog: str = "resume") -> Parser:
    """`%resume` and `%chat`."""
    parser = Parser(prog)
    parser.add_argument("session", nargs="?")
    parser.add_argument("what", nargs="*")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--redact", action="store_true")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--new", action="store_true")
    return parser


def compress_parser() -> Parser:
    """`%compress`."""
    parser = Parser("compress")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--pin", action="append", default=[])
    parser.add_argument("--accept-loss", action="store_true")
    parser.add_argument("--undo", action="store_true")
    return parser


def rewind_parser() -> Parser:
    """`%rewind`."""
    parser = Parser("rewind")
    parser.add_argument("to", nargs="?")
    parser.add_argument("--undo", action="store_true")
    return parser


def memory_parser() -> Parser:
    """`%memory`."""
    parser = Parser("memory")
    parser.add_argument("command", nargs="?", choices=["show", "reload", "add", "inbox", "apply", "dismiss", "suggest"])
    parser.add_argument("fact", nargs="?", default="")
    parser.add_argument("--scope", choices=["project", "private", "global"], default="project")
    parser.add_argument("--force", action="store_true")
    return parser


PARSERS = {
    "memory": memory_parser,
    "sessions": sessions_parser,
    "resume": resume_parser,
    "chat": lambda: resume_parser("chat"),
    "compress": compress_parser,
    "rewind": rewind_parser,
}


def parse(magic: str, line: str) -> argparse.Namespace:
    """The arguments of `line` for `magic`.

    Raises:
        UsageMistake: they are not what it takes.
    """
    return PARSERS[magic]().parse_args(words(line, magic=magic))


def options(magic: str) -> Sequence[str]:
    """The words that begin with `--` which `magic` takes."""
    actions = PARSERS[magic]()._actions if magic in PARSERS else []
    return [option for action in actions for option in action.option_strings]


def commands(magic: str) -> Sequence[str]:
    """The sub-commands that `magic` takes."""
    actions = PARSERS[magic]()._actions if magic in PARSERS else []
    return [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
