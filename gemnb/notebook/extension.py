"""`%load_ext gemnb`: what it puts into a shell, and takes out again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from traitlets import TraitError
from traitlets.config import Config

import gemnb
from gemnb.errors import GemnbWarning
from gemnb.notebook import display as looks
from gemnb.notebook.completion import make_matcher
from gemnb.notebook.magics import Gemnb
from gemnb.notebook.notice import LateNotice, Notice, one_line
from gemnb.notebook.prefix import cell_transformer, line_transformer, prompt_transformer
from gemnb.notebook.progress import unwatch, watch

if TYPE_CHECKING:
    from gemnb.workspace import Workspace

ATTRIBUTE = "_gemnb_loaded"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was put into a shell."""

    magics: Gemnb
    matcher: Any
    line_transformers: tuple[Any, ...]
    cell_transformer: Any
    format_warning: Callable[..., str]
    notice: LateNotice | None = None


def load(ip: InteractiveShell) -> None:
    """Register the magics, their completion, unique prefixes, and how values look."""
    if getattr(ip, ATTRIBUTE, None):
        return
    magics = _configured(ip)
    ip.register_magics(magics)

    def names(kind: str) -> Iterable[str]:
        table: dict[str, Any] = ip.magics_manager.magics[kind]
        return table

    ours = frozenset(magics.magics["line"]) | frozenset(magics.magics["cell"])
    loaded = Loaded(
        magics,
        make_matcher(magics, names, ours),
        (prompt_transformer(names, ours), line_transformer(names, ours)),
        cell_transformer(names, ours),
        one_line(warnings.formatwarning),
    )
    warnings.formatwarning = loaded.format_warning  # type: ignore[assignment]
    ip.input_transformer_manager.token_transformers[:0] = loaded.line_transformers
    ip.input_transformer_manager.cleanup_transforms.append(loaded.cell_transformer)
    ip.Completer.custom_matchers.append(loaded.matcher)
    looks.install(ip)
    if magics.progress_line:
        watch(ip, magics.progress_line)
    ip.push({"Gemnb": magics}, interactive=False)
    setattr(ip, ATTRIBUTE, replace(loaded, notice=_look_at_retention(ip, magics)))


def _look_at_retention(ip: InteractiveShell, magics: Gemnb) -> LateNotice | None:
    """As `Gemnb.cleanup_on_load` says: tell what is due, once it is known, or delete it now."""
    if magics.cleanup_on_load == "off":
        return None
    if magics.cleanup_on_load == "apply":
        result = magics.workspace.retention().apply()
        if result.deleted or result.failed or result.outputs:
            display(Notice(str(result)))  # type: ignore[no-untyped-call]
        return None
    root, home = Path(magics.root or ".").absolute(), magics.home
    notice = LateNotice(ip, lambda: gemnb.open_workspace(root, home=home).retention().notice)
    notice.start()
    return notice


def unload(ip: InteractiveShell) -> None:
    """Take everything out again; IPython itself cannot."""
    loaded: Loaded | None = getattr(ip, ATTRIBUTE, None)
    if loaded is None:
        return
    for table in ip.magics_manager.magics.values():
        for name in [n for n, function in table.items() if getattr(function, "__self__", None) is loaded.magics]:
            del table[name]
    ip.magics_manager.registry.pop(type(loaded.magics).__name__, None)
    ip.configurables[:] = [c for c in ip.configurables if id(c) != id(loaded.magics)]
    transformers = ip.input_transformer_manager
    transformers.token_transformers[:] = [
        t for t in transformers.token_transformers if t not in loaded.line_transformers
    ]
    transformers.cleanup_transforms[:] = [
        t for t in transformers.cleanup_transforms if t is not loaded.cell_transformer
    ]
    ip.Completer.custom_matchers[:] = [m for m in ip.Completer.custom_matchers if m is not loaded.matcher]
    if warnings.formatwarning is loaded.format_warning:
        warnings.formatwarning = loaded.format_warning.__wrapped__  # type: ignore[attr-defined]
    looks.uninstall(ip)
    if loaded.magics.progress_line:
        unwatch(ip, loaded.magics.progress_line)
    if loaded.notice:
        loaded.notice.stop()
    ip.drop_by_id({"Gemnb": loaded.magics})
    delattr(ip, ATTRIBUTE)


def workspace_of(ip: InteractiveShell) -> Workspace:
    """The workspace that the magics of `ip` work on."""
    loaded: Loaded = getattr(ip, ATTRIBUTE)
    return loaded.magics.workspace


def _configured(ip: InteractiveShell) -> Gemnb:
    """The magics with the shell's configuration; a bad value in it is told and left out, the others count."""
    try:
        return Gemnb(ip, parent=ip)
    except TraitError:
        section = ip.config["Gemnb"]
    for name in list(section):
        try:
            Gemnb(ip, config=Config(Gemnb={name: section[name]}))
        except TraitError as error:
            warnings.warn(f"Gemnb.{name} of the configuration is not used: {error}", GemnbWarning, stacklevel=4)
            del section[name]
    return Gemnb(ip, parent=ip)
