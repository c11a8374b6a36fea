"""The line of a magic, parsed: quotes, sub-commands, one clean sentence for a mistake."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gemnb.errors import GemnbError

TAKES: dict[str, dict[str | None, tuple[str, ...]]] = {
    "sessions": {
        None: ("all", "hidden", "df", "search", "browse"),
        "delete": ("session", "purge", "undo"),
        "retention": ("apply", "purge", "undo"),
        "rescue": ("session", "restore"),
        "usage": ("all", "by"),
    },
    "resume": {
        None: ("name", "fork", "new"),
        "save": ("name", "overwrite"),
        "list": (),
        "resume": ("name",),
        "delete": ("name",),
        "share": ("name", "redact"),
    },
    "compress": {None: ("dry_run", "pin", "accept_loss"), "--undo": ("undo",)},
    "rewind": {None: ("to",), "--undo": ("undo",)},
    "memory": {
        None: (),
        "show": (),
        "reload": (),
        "add": ("fact", "scope", "force"),
        "inbox": (),
        "apply": ("fact",),
        "dismiss": ("fact",),
        "suggest": (),
    },
}
"""What each magic takes, by sub-command; a word or an option beside that is a mistake, and never passed over."""
TAKES["chat"] = TAKES["resume"]


class UsageMistake(GemnbError):
    """A magic was called with words that it does not take."""

    code = "USAGE"


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving, and says how the magic is called."""

    def __init__(self, magic: str) -> None:
        super().__init__(prog=f"%{magic}", add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Raise the mistake as one sentence."""
        known = self.usage  # `parse_intermixed_args` may have kept it, ready made: its `%` is no format
        usage = " ".join(self.format_usage().split() if known is None else ("usage:", *known.split()))
        raise UsageMistake(f"{self.prog}: {message}. {usage} (`{self.prog}?` tells more)")


class _Joined(argparse.Action):
    """The words up to the next option as one text, quoted or not; a list of such texts where the default is a list."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, __: object = None) -> None:
        text = " ".join(values)
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*before, text] if isinstance(before, list) else text)


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
    parser.add_argument("command", nargs="?", choices=commands("sessions"))
    parser.add_argument("session", nargs="?")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--browse", action="store_true")
    parser.add_argument("--hidden", action="store_true")
    parser.add_argument("--df", action="store_true")
    parser.add_argument("--search", metavar="WORDS", nargs="+", action=_Joined)
    parser.add_argument("--by", default="day,model")
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--purge", action="store_true")
    parser.add_argument("--undo", action="store_true")
    parser.add_argument("--restore", action="store_true")
    return parser


def resume_parser(magic: str = "resume") -> Parser:
    """`%resume` and `%chat`; their first word is a sub-command or a session."""
    parser = Parser(magic)
    parser.add_argument("command", nargs="?", metavar="session | save | list | resume | delete | share")
    parser.add_argument("name", nargs="?")
    parser.add_argument("--overwrite", action="store_true")
    parser.add_argument("--redact", action="store_true")
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--new", action="store_true")
    return parser


def compress_parser() -> Parser:
    """`%compress`."""
    parser = Parser("compress")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--pin", metavar="WORDS", nargs="+", action=_Joined, default=[])
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
    parser.add_argument("command", nargs="?", choices=commands("memory"))
    parser.add_argument("fact", nargs="?", default="")
    parser.add_argument("--scope", choices=["project", "private", "global"], default="project")
    parser.add_argument("--force", action="store_true")
    return parser


PARSERS: dict[str, Callable[[], Parser]] = {
    "memory": memory_parser,
    "sessions": sessions_parser,
    "resume": resume_parser,
    "chat": lambda: resume_parser("chat"),
    "compress": compress_parser,
    "rewind": rewind_parser,
}


def parse(magic: str, line: str) -> argparse.Namespace:
    """The arguments of `line` for `magic`; its sub-command, if any, is `command`.

    Raises:
        UsageMistake: they are not what it takes.
    """
    parser = PARSERS[magic]()
    told = words(line, magic=magic)
    if magic in ("resume", "chat") and told[:1] == ["checkpoints"]:  # the terminal client's word for all of them
        told = told[1:] or ["list"]
    args = parser.parse_intermixed_args(told)
    _name_command(magic, args)
    called = f"{parser.prog} {args.command}" if args.command else parser.prog
    for name, value in vars(args).items():
        given = name != "command" and value != parser.get_default(name)
        if given and name not in TAKES[magic][args.command]:
            word = repr(value) if name in ("session", "name", "fact") else _option(name)
            where = [f"`{parser.prog} {command or ''}".rstrip() + "`" for command in _takers(magic, name)]
            raise UsageMistake(f"{called}: {word} goes only with {', '.join(where)}; `{parser.prog}?` tells more.")
    return args


def _name_command(magic: str, args: argparse.Namespace) -> None:
    """Settle what `args.command` is, where it is not a word of its own choices."""
    if magic in ("resume", "chat"):
        if args.command not in TAKES[magic]:
            if args.name is not None:
                raise UsageMistake(f"%{magic}: give one session, not {args.command!r} and {args.name!r}.")
            args.command, args.name = None, args.command
    elif "command" not in args:
        args.command = "--undo" if args.undo else None


def options(magic: str, command: str | None = None) -> Sequence[str]:
    """The words that begin with `--` which `magic` takes, after `command`."""
    taken = TAKES.get(magic, {})
    flags = [word for word in taken if word and word.startswith("--")] if command is None else []
    named = {action.dest for action in PARSERS[magic]()._actions if action.option_strings} if taken else set()
    return [*(_option(name) for name in taken.get(command, ()) if name in named), *flags]


def commands(magic: str) -> Sequence[str]:
    """The sub-commands that `magic` takes."""
    return [word for word in TAKES.get(magic, {}) if word and not word.startswith("--")]


def _takers(magic: str, name: str) -> Sequence[str | None]:
    """The sub-commands of `magic` that take `name`."""
    return [command for command, taken in TAKES[magic].items() if name in taken]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
