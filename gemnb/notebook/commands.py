"""What the sub-commands of the magics give: each calls the workspace and returns what that returns."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gemnb
from gemnb.notebook.arguments import UsageMistake

if TYPE_CHECKING:  # `%load_ext gemnb` is quick: what a magic works with is imported when it is first used
    from pandas import DataFrame

    from gemnb.services.memory import Memory
    from gemnb.services.memory_inbox import Inbox
    from gemnb.services.rescue import Rescue
    from gemnb.services.retention_plan import CleanupResult, RetentionPlan
    from gemnb.store.checkpoints import Checkpoint
    from gemnb.store.sessions import Deleted
    from gemnb.store.trash import Restored
    from gemnb.workspace import Workspace


def _list(workspace: Workspace, args: Namespace) -> Any:
    if args.browse:
        return gemnb.browse(workspace)
    if args.search:
        from gemnb.services.listing import HitList

        return HitList(workspace.search(args.search, projects="all" if args.all else "current", hidden=args.hidden))
    if args.df:
        return gemnb.sessions_df("all" if args.all else workspace, hidden=args.hidden)
    return workspace.listing(everywhere=args.all, hidden=args.hidden)


def _delete(workspace: Workspace, args: Namespace) -> Deleted | Restored:
    if args.undo:
        if args.session or args.purge:
            raise UsageMistake("%sessions delete --undo: give it alone, it takes nothing beside it.")
        return workspace.undo_deletion("delete")
    if not args.session:
        raise UsageMistake("%sessions delete: say which one, as in `%sessions delete 2`; `%sessions` lists them.")
    return workspace.delete(args.session, purge=args.purge)


def _usage(workspace: Workspace, args: Namespace) -> DataFrame:
    from gemnb.notebook.display import show_picture

    table = gemnb.usage_df("all" if args.all else workspace, by=args.by.split(","))
    show_picture(gemnb.plots.usage(table))  # an output of its own; the table is the value, and can be kept
    return table


def _retention(workspace: Workspace, args: Namespace) -> RetentionPlan | CleanupResult | Restored:
    if args.undo:
        if args.apply or args.purge:
            raise UsageMistake("%sessions retention --undo: give it alone, it takes nothing beside it.")
        return workspace.undo_deletion("retention")
    if args.purge and not args.apply:
        raise UsageMistake("%sessions retention --purge: say `--apply --purge` to delete for good what is due.")
    plan = workspace.retention()
    return plan.apply(purge=args.purge) if args.apply else plan


def _rescue(workspace: Workspace, args: Namespace) -> Rescue | Restored:
    return workspace.restore_rescued() if args.restore else workspace.rescue(args.session)


SESSIONS: dict[str | None, Callable[[Workspace, Namespace], Any]] = {
    None: _list,
    "delete": _delete,
    "usage": _usage,
    "retention": _retention,
    "rescue": _rescue,
}
"""What each sub-command of `%sessions` gives."""


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The project's checkpoints, each with its time."""

    rows: tuple[Checkpoint, ...]

    def __repr__(self) -> str:
        from gemnb.model.shown import clean_line

        told = [f"{clean_line(row.tag)}  ({row.saved_at:%Y-%m-%d %H:%M} UTC)" for row in self.rows]
        return "\n".join(told) or "No checkpoints yet: `%resume save TAG` makes one."


def _add_fact(workspace: Workspace, args: Namespace) -> Memory:
    workspace.memory().add(args.fact, args.scope, force=args.force)
    return workspace.memory()


def _apply(workspace: Workspace, args: Namespace) -> Inbox:
    memory = workspace.memory()
    return memory.inbox(*(f"{path} was changed." for path in memory.apply(args.fact)))


def _dismiss(workspace: Workspace, args: Namespace) -> Inbox:
    memory = workspace.memory()
    memory.dismiss(args.fact)
    return memory.inbox("It was thrown away.")


MEMORY: dict[str | None, Callable[[Workspace, Namespace], Any]] = {
    None: lambda workspace, _: workspace.memory(),
    "show": lambda workspace, _: workspace.memory().text,
    "reload": lambda workspace, _: workspace.reload_memory(),
    "add": _add_fact,
    "inbox": lambda workspace, _: workspace.memory().inbox(),
    "apply": _apply,
    "dismiss": _dismiss,
    "suggest": lambda workspace, _: workspace.suggest_memory(),
}
"""What each sub-command of `%memory` gives."""


def checkpoint(workspace: Workspace, args: Namespace, magic: str) -> Any:
    """Save, list, load, delete a checkpoint, or share the talk as a file."""
    command, name = args.command, args.name
    if command != "list" and not name:
        wanted = "FILE" if command == "share" else "TAG"
        raise UsageMistake(f"%{magic} {command}: give one name, as in `%{magic} {command} {wanted}`.")
    if command == "save":
        return Checkpointed((workspace.save_checkpoint(name, overwrite=args.overwrite),))
    if command == "resume":
        return workspace.load_checkpoint(name)
    if command == "share":
        return workspace.attached().export(name, redact=args.redact, progress=workspace.progress)
    if command == "delete":
        workspace.delete_checkpoint(name)
    return Checkpointed(tuple(workspace.checkpoints()))
