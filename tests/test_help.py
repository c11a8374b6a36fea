"""Help where one is: every message of an error says what to do next, every public name has an example that works."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import io
import pkgutil
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from IPython.core.interactiveshell import InteractiveShell
from support import NOW
from traitlets.config import Config

import gemnb
import gemnb.plots
import gemnb.testing
from gemnb.errors import GemnbError
from gemnb.notebook.arguments import TAKES, commands, options
from gemnb.notebook.magics import Gemnb

PACKAGE = Path(gemnb.__file__).parent
ACT = (
    "ask|change|choose|close|compress|dismiss|fork|give|go on|look|make|move|offer|put|raise|rename|resume|say|set"
    "|shorten|start|take|try|undo|use|wrap|write"
)
NEXT = re.compile(rf"`[^`]+`|--\w+|(?:^|[.:;,] |\b(?:and|or|then) )(?:{ACT})\b", re.IGNORECASE)
"""What stands in a message that says what to do: a command, an option, or a verb that tells one to act."""
MADE_ELSEWHERE = {"self._told(error)", 'reply.error or "The model\'s service failed."'}
"""Messages of the model's service: tests/test_genai.py has the table of them."""


class Site(NamedTuple):
    """A place that raises an error on purpose."""

    where: str
    error: str
    message: str


def sites() -> Iterator[Site]:
    """Every place that makes one of our errors with a message, with `…` for what is filled in."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(("gemnb", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and (error := made_by(node, name)):
                yield Site(f"{name}:{node.lineno}", error, told(node.args[0], name))


def made_by(call: ast.Call, module: str) -> str | None:
    """The error that a call makes, where it is one of ours and is given its message."""
    text = ast.unparse(call.func)
    if text == "super().__init__" and module == "gemnb.errors":
        return "in errors.py"
    made = getattr(importlib.import_module(module), text, None) if text.isidentifier() else None
    ours = isinstance(made, type) and issubclass(made, GemnbError) and "__init__" not in vars(made)
    return text if ours else None


def told(node: ast.expr, module: str) -> str:
    """The words of an expression that makes a message."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(told(part, module) for part in parts)
        case ast.FormattedValue(value=ast.Name(id=name)) | ast.Name(id=name):
            known = getattr(importlib.import_module(module), name, "…")
            return known if isinstance(known, str) else "…"
        case ast.Call(func=ast.Attribute(value=ast.Name() as text, attr="format")):
            return told(text, module)
        case ast.Call(func=ast.Attribute(attr="_clean"), args=[inner]):
            return told(inner, module)
        case ast.FormattedValue():
            return "…"
        case _:
            return ast.unparse(node)


TAKEN_UP = "gemnb.services.memory_model:"
"""What it raises stops nobody: the inbox's notes tell it, and what was done instead."""
SITES = [s for s in sites() if s.message not in MADE_ELSEWHERE and not s.where.startswith(TAKEN_UP)]


@pytest.mark.parametrize("site", SITES, ids=lambda s: f"{s.where.removeprefix('gemnb.')}-{s.error}")
def test_a_message_says_what_to_do_next(site: Site) -> None:
    assert NEXT.search(site.message), f"{site.where} is a dead end: {site.message}"
    assert site.message[-1:] in ".)…" and not site.message.endswith(" "), site.message


def public() -> Iterator[tuple[str, object]]:
    """Every public name with what it is: of the package, of its values' classes, of `plots` and `testing`."""
    from gemnb.services.chat import Chat

    for module in (gemnb, gemnb.plots, gemnb.testing):
        for name in module.__all__:
            yield f"{module.__name__}.{name}", getattr(module, name)
    for cls in (gemnb.Workspace, Chat):
        for name, value in inspect.getmembers(cls):
            if not name.startswith("_"):
                yield f"{cls.__name__}.{name}", value


PUBLIC = {name: value for name, value in public() if not isinstance(value, str)}


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of a sample store, which is the current folder, with a scripted model."""
    home, project = gemnb.testing.make_sample_store(tmp_path, now=NOW)
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    monkeypatch.setenv("GEMNB_LLM", "scripted")
    monkeypatch.chdir(project)
    return project


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example_that_works(name: str, sample: Path) -> None:
    value = PUBLIC[name]
    ws = gemnb.open_workspace(sample)
    known = {**vars(gemnb.testing), "gemnb": gemnb, "Path": Path, "warnings": warnings, "ws": ws}
    if name.startswith("Chat."):
        known["chat"] = ws.resume(19)
    said = io.StringIO()

    example = doctest.DocTestParser().get_doctest(inspect.getdoc(value) or "", known, name, None, None)
    with warnings.catch_warnings():
        failed, tried = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=said.write)

    assert tried, f"{name} has no example"
    assert not failed, said.getvalue()


RAISED = {
    "NoSessionsError": "gemnb.open_workspace(sample / 'new').find('latest')",
    "UnknownSessionError": "ws.load(99)",
    "AmbiguousSessionError": "resolve('aaaa', [replace(row, id=f'aaaa{row.index}') for row in ws.sessions()])",
    "UnreadableSessionError": "(row := ws.find(1)).path.unlink() or row.path.mkdir() or ws.store.load(row)",
    "CurrentSessionError": "ws.resume(19) and ws.delete(19)",
    "OtherProjectError": "ws.resume(next(row for row in ws.listing(everywhere=True) if row.project_root != ws.root))",
    "NoChatError": "ws.attached()",
    "UnknownMessageError": "ws.resume(19).rewind(99)",
    "NothingToUndoError": "ws.resume(19).undo_rewind()",
    "UnsafePathError": "child(sample, '../elsewhere')",
    "CheckpointError": "ws.load_checkpoint('never-saved')",
    "TrashError": "ws.undo_deletion()",
    "TurnLimitError": "limit(1) or ws.resume(19).send('One more?')",
    "PromptError": "ws.resume(19).send(42)",
    "LlmError": "next(ScriptedLlm().stream([]))",
    "NoKeyError": "make_llm(None, environ={})",
    "MemoryFileError": "ws.memory().apply(9)",
    "MomentaryFactError": "ws.memory().add('The build is red today')",
    "FrameError": "gemnb.usage_df(ws, by=['colour'])",
    "SearchError": "ws.search('rivers', projects='mine')",
    "ExportError": "ws.resume(19).export('talk.doc')",
    "ToolError": "setattr(ws.resume(19), 'tools', [lambda: 1])",
    "UsageMistake": "parse('sessions', 'delet 2')",
}
"""For each error a way to meet it on the sample store."""
MET_ELSEWHERE = {"GemnbError", "SessionError", "OutputError", "TalkChangedError"}
"""The two that only others are made of; what a full disk makes (tests/test_compression.py), and another program."""


def all_errors() -> Iterator[type[GemnbError]]:
    """The tree of errors, wherever its branches are defined."""
    for module in pkgutil.walk_packages(gemnb.__path__, "gemnb."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting: list[type[GemnbError]] = [GemnbError]
    while waiting:
        yield (error := waiting.pop())
        waiting += error.__subclasses__()


def test_each_error_is_met() -> None:
    assert {error.__name__ for error in all_errors()} == {*RAISED, *MET_ELSEWHERE}


@pytest.mark.parametrize("name", RAISED)
def test_an_error_is_one_line_that_says_what_to_do(name: str, sample: Path) -> None:
    from gemnb.notebook.arguments import parse
    from gemnb.services.genai import make_llm
    from gemnb.store.paths import child
    from gemnb.store.sessions import resolve

    def limit(turns: int) -> None:
        (sample / ".gemini").mkdir()
        (sample / ".gemini" / "settings.json").write_text(f'{{"model": {{"maxSessionTurns": {turns}}}}}')

    known = {**vars(gemnb.testing), "gemnb": gemnb, "ws": gemnb.open_workspace(sample), "sample": sample}
    known |= {
        "limit": limit,
        "replace": replace,
        "child": child,
        "resolve": resolve,
        "make_llm": make_llm,
        "parse": parse,
    }

    with pytest.raises(GemnbError) as raised:
        eval(RAISED[name], known)

    (line,) = raised.value._render_traceback_()
    assert type(raised.value).__name__ == name
    assert "\n" not in line and line.endswith(f"[{raised.value.code}]")
    assert NEXT.search(str(raised.value)), line


@pytest.fixture
def shell(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """A shell in the sample project, with the magics and the long talk in a session of its own."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    ip = InteractiveShell.instance(config=config)
    ip.extension_manager.load_extension("gemnb")
    ip.user_ns["Gemnb"].workspace.resume(19)
    yield ip
    ip.extension_manager.unload_extension("gemnb")
    InteractiveShell.clear_instance()


MAGICS = {name: inspect.getdoc(getattr(Gemnb, name)) or "" for name in sorted(Gemnb.magics["line"])}
BEFORE = {
    "%memory apply 1": "%resume 1\n%memory suggest",
    "%memory dismiss 1": "%resume 1\n%memory suggest",
    "%sessions delete --undo": "%sessions delete 2",
}
"""What has to come first for an example to have something to do."""


def examples(doc: str) -> list[str]:
    """The cells in a docstring: what is set in, and each command of the magics that stands in the text."""
    block = textwrap.dedent("\n".join(line for line in doc.splitlines() if line.startswith("    ")))
    return [*([block] if block else []), *re.findall(r"`(%[^`]+)`", doc)]


@pytest.mark.parametrize("name", MAGICS)
def test_the_help_of_a_magic_has_an_example_set_in_and_says_all_that_it_takes(name: str) -> None:
    doc = MAGICS[name]

    assert f"%{name}" in "".join(line for line in doc.splitlines() if line.startswith("    ")) or name == "chat"
    for word in {*commands(name), *(option for command in TAKES.get(name, {}) for option in options(name, command))}:
        assert word in doc or name == "chat", f"%{name}? does not tell of {word}"


@pytest.mark.parametrize("cell", sorted({cell for doc in MAGICS.values() for cell in examples(doc)}))
def test_an_example_in_the_help_of_a_magic_works(cell: str, shell: InteractiveShell) -> None:
    if first := BEFORE.get(cell):
        shell.run_cell(first)

    assert shell.run_cell(cell).success, cell
