"""Gemini sessions in the notebook: talk, resume, browse, compress, price and clean up what Gemini CLI keeps."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemnb.errors import GemnbError, GemnbWarning

if TYPE_CHECKING:  # names for readers and type checkers; IPython is not a must for a script
    from IPython.core.interactiveshell import InteractiveShell

    from gemnb import plots
    from gemnb.notebook.browser import browse
    from gemnb.services.genai import GenaiLlm
    from gemnb.tables import messages_df, retention_df, sessions_df, tool_calls_df, usage_df
    from gemnb.workspace import Workspace, open_workspace, projects

__version__ = "0.1.0"

_LAZY = {
    "GenaiLlm": "gemnb.services.genai",
    "browse": "gemnb.notebook.browser",
    "messages_df": "gemnb.tables",
    "retention_df": "gemnb.tables",
    "sessions_df": "gemnb.tables",
    "tool_calls_df": "gemnb.tables",
    "usage_df": "gemnb.tables",
    "Workspace": "gemnb.workspace",
    "open_workspace": "gemnb.workspace",
    "projects": "gemnb.workspace",
}

__all__ = [
    "GemnbError",
    "GemnbWarning",
    "GenaiLlm",
    "Workspace",
    "__version__",
    "browse",
    "messages_df",
    "open_workspace",
    "plots",
    "projects",
    "retention_df",
    "sessions_df",
    "tool_calls_df",
    "usage_df",
]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("gemnb.plots")
    if name not in _LAZY:
        raise AttributeError(f"module 'gemnb' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(ip: InteractiveShell) -> None:
    """`%load_ext gemnb`: the magics, their completion, and how gemnb's values are shown."""
    from gemnb.notebook.extension import load

    load(ip)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """`%unload_ext gemnb`: nothing stays behind."""
    from gemnb.notebook.extension import unload

    unload(ip)
