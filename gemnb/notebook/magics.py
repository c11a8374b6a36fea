"""The magics: each parses its line, calls the workspace and returns what that returns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand
from traitlets import Bool, Enum, Int, Unicode, observe

import gemnb
from gemnb.notebook.arguments import UsageMistake, parse
from gemnb.notebook.commands import MEMORY, SESSIONS, checkpoint
from gemnb.notebook.progress import ProgressLine

if TYPE_CHECKING:  # `%load_ext gemnb` is quick: what a magic works with is imported when it is first used
    from gemnb.notebook.stream import ShownReply
    from gemnb.services.chat import Chat
    from gemnb.services.compression import Compression
    from gemnb.services.listing import PromptList
    from gemnb.services.memory import Memory
    from gemnb.services.memory_inbox import Inbox
    from gemnb.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Explained:
    """Each setting, its value, and where that came from."""

    rows: tuple[tuple[str, object, str], ...]

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {value!r}  ({source})" for name, value, source in self.rows)


@magics_class
class Gemnb(Magics):
    """Settings and magics of gemnb: `%config Gemnb` lists them, `Gemnb.explain()` says where each value came from."""

    model = Unicode(
        None, allow_none=True, help="Model that answers; else the settings' `model.name`, else gemnb's default."
    ).tag(config=True)
    root = Unicode(None, allow_none=True, help="The project's folder; else the folder of the notebook.").tag(
        config=True
    )
    home = Unicode(
        None, allow_none=True, help="The folder that holds `.gemini`; else $GEMINI_CLI_HOME, else your home."
    ).tag(config=True)
    context = Bool(True, help="Begin a talk with date, platform and workspace, as the terminal client does.").tag(
        config=True
    )
    progress = Bool(True, help="Show an answer as it comes.").tag(config=True)
    cleanup_on_load = Enum(
        ["notify", "apply", "off"],
        "notify",
        help="At `%load_ext gemnb`: say in a line what retention would delete (notify), delete it (apply), or neither.",
    ).tag(config=True)
    index = Bool(
        True,
        help="Remember what listings and tables read of a file until it changes: what was said, in your cache folder.",
    ).tag(config=True)
    trash_days = Int(30, min=0, help="Days that a deleted session can be brought back.").tag(config=True)
    max_rounds = Int(50, min=1, help="Requests that one prompt may cost because of tools.").tag(config=True)

    def __init__(self, shell: InteractiveShell, **given: Any) -> None:
        super().__init__(shell=shell, **given)
        self._workspace: Workspace | None = None
        self.progress_line = ProgressLine() if hasattr(shell, "kernel") else None

    @property
    def workspace(self) -> Workspace:
        """The project that the magics work on, opened when first needed."""
        if self._workspace is None:
            self._workspace = gemnb.open_workspace(self.root or ".", home=self.home)
            self._workspace.model = self.model
            self._workspace.inject = self.context
            self._workspace.cleanup.trash_days = self.trash_days
            self._workspace.index.on = self.index
            self._workspace.progress = self.progress_line
        return self._workspace

    @workspace.setter
    def workspace(self, workspace: Workspace) -> None:
        self._workspace = workspace
        workspace.progress = workspace.progress or self.progress_line

    @observe("root", "home")
    def _moved(self, _: object) -> None:
        self._workspace = None

    @observe("model", "context", "trash_days", "index")
    def _changed(self, _: object) -> None:
        if getattr(self, "_workspace", None) is not None:
            self.workspace.model, self.workspace.inject = self.model, self.context
            self.workspace.cleanup.trash_days = self.trash_days
            self.workspace.index.on = self.index

    def explain(self) -> Explained:
        """Each setting with its value and where it came from."""
        ours = [(f"Gemnb.{name}", *self._source(name)) for name in self.trait_names(config=True)]
        theirs = [(s.key, s.value, s.source) for s in self.workspace.settings.explain()]
        return Explained((*ours, *theirs))

    def _source(self, name: str) -> tuple[object, str]:
        value = getattr(self, name)
        fallback = {
            "root": (self.workspace.root, "the notebook's folder"),
            "home": (
                str(self.workspace.home),
                "$GEMINI_CLI_HOME" if os.environ.get("GEMINI_CLI_HOME") else "your home",
            ),
            "model": (self.workspace.settings.get("model.name").value, "the settings' model.name"),
        }
        if value is None and name in fallback:
            return fallback[name]
        return value, "default" if value == self.trait_defaults(name) else "%config, or IPython's configuration"

    @no_var_expand
    @line_magic
    def sessions(self, line: str) -> Any:
        """List this project's sessions; look into them; delete one.

        `%sessions` numbers them as the terminal client does; `--all` takes every project of the store, `--hidden` adds
        what is not shown, and why, `--df` gives a DataFrame, `--search WORDS` what was said,
        `--browse` opens the session browser. `%sessions delete 2`
        deletes by number, id or a unique prefix of one, `%sessions delete --undo` brings the last one back; `--purge`
        deletes for good. `%sessions usage --by month,model` tells what was spent, as a chart and a DataFrame.
        `%sessions retention` tells what the settings would delete and why; `--apply` does it, `--undo` brings it back.
        `%sessions rescue` keeps what the terminal client would delete; `--restore` brings back what it took.

            s = %sessions --hidden
        """
        args = parse("sessions", line)
        return SESSIONS[args.command](self.workspace, args)

    @no_var_expand
    @line_magic
    def resume(self, line: str) -> Any:
        """Go on with an earlier session of this project; it becomes the current one.

        Give `latest`, `last-used`, a number of the list, an id or a unique prefix of one. `--fork` goes on in a copy,
        `--new` starts afresh. Without a word it opens the session browser to pick from. `%chat` is the same.
        `%resume save TAG`, `list`, `resume TAG` and `delete TAG` keep checkpoints of the talk; `--overwrite` saves in
        the place of one. `share FILE` exports it as `.json`, `.md`, `.html` or `.ipynb`, with `--redact` without
        secrets.

            chat = %resume latest
        """
        return self._resume("resume", line)

    def _resume(self, magic: str, line: str) -> Any:
        args = parse(magic, line)
        if args.command:
            return checkpoint(self.workspace, args, magic)
        if args.new:
            if args.name or args.fork:
                raise UsageMistake(f"%{magic}: `--new` starts afresh, so it takes no session and no `--fork`.")
            return self.workspace.new_chat()
        if args.name is None:
            if args.fork:
                raise UsageMistake(f"%{magic}: say what to fork, as in `%{magic} latest --fork`.")
            # a terminal shows no widgets: there the list is what one picks from
            return gemnb.browse(self.workspace) if hasattr(self.shell, "kernel") else self.workspace.listing()
        return self.workspace.resume(args.name, fork=args.fork)

    @no_var_expand
    @line_magic
    def chat(self, line: str) -> Any:
        """Go on with an earlier session: the same as `%resume`.

        chat = %chat last-used --fork
        """
        return self._resume("chat", line)

    @no_var_expand
    @line_magic
    def compress(self, line: str) -> Compression | Chat:
        """Sum up the older part of the current talk, so that it goes on shorter and cheaper.

        `--dry-run` tells what would come and changes nothing, `--undo` brings the talk back as it was. `--pin WORDS`
        keeps the words in the summary; `--accept-loss` goes on though the summary lost a rule that was stated.

            %compress --dry-run
        """
        args = parse("compress", line)
        chat = self.workspace.attached()
        if args.undo:
            chat.undo_compression()
            return chat
        taken: dict[str, Any] = {"floor": {}} if args.accept_loss else {}
        return chat.compress(dry_run=args.dry_run, pins=args.pin, **taken)

    @no_var_expand
    @line_magic
    def memory(self, line: str) -> Memory | Inbox | str:
        """The memory files that a new talk is given, in their order, and what is skipped and why.

        `%memory show` gives their text, `%memory reload` gives them to the current talk as they are now, and

            %memory add "Run the tests with pytest -q"

        adds a fact to the project's file (`--scope private` or `global` to another). What looks momentary is
        questioned, and taken with `--force`. `%memory inbox` shows proposed changes; `%memory apply 1` makes one,
        `%memory dismiss 1` throws it away. `%memory suggest` looks through past sessions for facts worth keeping.
        """
        args = parse("memory", line)
        told: Memory | Inbox | str = MEMORY[args.command](self.workspace, args)
        return told

    @no_var_expand
    @line_magic
    def rewind(self, line: str) -> Chat | PromptList:
        """Drop a prompt of the current talk and all after it.

        `%rewind` lists the prompts with their numbers, `%rewind 7` drops the seventh and what follows, `--undo` brings
        back what the last rewind dropped.

            %rewind 7
        """
        args = parse("rewind", line)
        chat = self.workspace.attached()
        if args.undo:
            chat.undo_rewind()
        elif args.to is None:
            from gemnb.services.listing import PromptList

            return PromptList.of(chat.messages)
        else:
            chat.rewind(args.to)
        return chat

    @no_var_expand
    @line_cell_magic
    def gemini(self, line: str, cell: str | None = None) -> ShownReply:
        """Send the line, or the whole cell, to the model; the answer streams in and is recorded as it goes.

        The prompt is text: quotes, `{…}` and `$x` stay as they are. Without a session it starts one.

            %%gemini
            Why does the second test fail?
        """
        text = line if cell is None else f"{line}\n{cell}" if line.strip() else cell
        if not text.strip():
            raise UsageMistake("%gemini: write the prompt after it, or in the cell below `%%gemini`.")
        chat = self.workspace.chat or self.workspace.new_chat()
        chat.max_rounds = self.max_rounds
        assert self.shell is not None  # the magics are made with one
        from gemnb.notebook.stream import show

        return show(self.shell, chat, text.strip("\n"), live=self.progress)
