"""Plain Python functions as tools: how the model is told of them, and how its calls are run."""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gemnb.errors import ToolError
from gemnb.model.records import JsonObject
from gemnb.services.llm import ToolDeclaration

LONGEST_OUTPUT = 200_000
"""Characters of a result that are recorded and sent."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call."""

    response: JsonObject
    """`{"output": …}`, or `{"error": …}`."""
    status: str
    """`success`, `error` or `cancelled`."""

    @property
    def display(self) -> str:
        """The words that a person sees."""
        return str(self.response.get("output", self.response.get("error", "")))


def declare_all(functions: Sequence[Callable[..., Any]]) -> tuple[ToolDeclaration, ...]:
    """Declare each of `functions`.

    Raises:
        ToolError: one cannot be offered, or two have one name.
    """
    found = tuple(declare(function) for function in functions)
    names = [declaration.name for declaration in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ToolError(f"Two tools are called {twice!r}: rename one of the functions.")
    return found


def declare(function: Callable[..., Any]) -> ToolDeclaration:
    """How the model is told of `function`: its name, its docstring, a JSON Schema of its parameters.

    Raises:
        ToolError: it has no name or parameters that cannot be given by name.
    """
    name = getattr(function, "__name__", "")
    if not callable(function) or not _NAME.fullmatch(name):
        raise ToolError(f"{function!r} cannot be a tool: give a function with a name (`def`, not a lambda).")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise ToolError(f"{name!r} cannot be a tool: its parameters are not known; wrap it in a function.") from None
    if inspect.iscoroutinefunction(function):
        raise ToolError(f"{name!r} cannot be a tool: it is `async`; offer a plain function that waits for it.")
    if {p.kind for p in signature.parameters.values()} == {inspect.Parameter.VAR_POSITIONAL}:
        raise ToolError(f"{name!r} cannot be a tool: it takes only `*args`, and the model gives arguments by name.")
    hints = _hints(function)
    doc = inspect.getdoc(function) or ""
    told = _parameter_words(doc)
    properties: JsonObject = {}
    required = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ToolError(
                f"{name!r} cannot be a tool: its parameter {parameter.name!r} cannot be given by name;"
                " take the `/` out of its `def`."
            )
        properties[parameter.name] = _schema(hints.get(parameter.name, Any)) | (
            {"description": told[parameter.name]} if parameter.name in told else {}
        )
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return ToolDeclaration(name, doc.split("\n\nArgs:")[0].strip() or name, schema, function)


def run(declaration: ToolDeclaration, args: object) -> ToolResult:
    """Call the tool with the model's `args`; an exception of the function is a result. An interrupt passes."""
    given = args if isinstance(args, dict) else {}
    try:
        inspect.signature(declaration.function).bind(**given)
    except TypeError as error:
        return ToolResult({"error": f"{declaration.name}: {error}"}, "error")
    hints = _hints(declaration.function)
    meant = {name: _meant(hints.get(name), value) for name, value in given.items()}
    try:
        return ToolResult({"output": _output(declaration.function(**meant))}, "success")
    except Exception as error:  # noqa: BLE001 - whatever a person's function, or its result's `__str__`, raises is the model's to know
        return ToolResult({"error": _clean(f"{type(error).__name__}: {error}")}, "error")


def _meant(hint: Any, value: object) -> object:
    """The value that a text of the model's stands for, where the hint names a choice: an enum's member, a literal."""
    choices: list[Any] = []
    for inner in (hint, *get_args(hint)):
        if get_origin(inner) is Literal:
            choices += get_args(inner)
        elif isinstance(inner, type) and issubclass(inner, enum.Enum):
            choices += inner
    told = (choice.value if isinstance(choice, enum.Enum) else choice for choice in choices)
    return next((choice for choice, word in zip(choices, told, strict=True) if str(word) == value), value)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The type hints of `function`; one that cannot be resolved is left out, the others stay."""
    named = getattr(function, "__annotations__", {})
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError, SyntaxError):
        scope = getattr(function, "__globals__", {})
    found: dict[str, Any] = {}
    for name, hint in named.items():
        alone = types.SimpleNamespace(__annotations__={name: hint})
        try:
            found |= get_type_hints(alone, globalns=scope)
        except (NameError, TypeError, AttributeError, SyntaxError):
            continue
    return found


def _output(value: object) -> object:
    """`value` as JSON: text as it is, tables as text, the rest as it can be told."""
    if isinstance(value, str):
        return _clean(value)
    if hasattr(value, "to_string") and hasattr(value, "shape"):
        return _clean(value.to_string(max_rows=60))
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _clean(str(value))
    return json.loads(_clean(text)) if len(text) <= LONGEST_OUTPUT else _clean(text)


def _clean(text: str) -> str:
    """`text` without half characters, cut where it is longer than anything a model would read."""
    if len(text) > LONGEST_OUTPUT:
        text = f"{text[:LONGEST_OUTPUT]}\n… {len(text) - LONGEST_OUTPUT} more characters"
    return text.encode("utf-8", "replace").decode("utf-8")


def _schema(hint: Any) -> JsonObject:
    """A JSON Schema of a type hint, in the part of the language that the API takes."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": [str(value) for value in args]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"type": "string", "enum": [str(member.value) for member in hint]}
    if origin in (Union, types.UnionType):
        options = [_schema(a) for a in args if a is not type(None)]
        extra = {"nullable": True} if type(None) in args else {}
        return (options[0] if len(options) == 1 else {"anyOf": options}) | extra
    if origin in (list, tuple, set, frozenset, Sequence) or hint in (list, tuple, set, frozenset):
        return {"type": "array", "items": _schema(args[0]) if args else {"type": "string"}}
    if origin in (dict, Mapping):
        return {"type": "object"}
    return {"type": "string"}


def _parameter_words(doc: str) -> dict[str, str]:
    """The description of each parameter in the `Args:` of a docstring."""
    section = re.search(r"\n\s*(?:Args|Arguments|Parameters):\s*\n(.*?)(?:\n\s*\n|\Z)", doc, re.DOTALL)
    if not section:
        return {}
    found = re.findall(r"^\s*\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.+)$", section[1], re.MULTILINE)
    return {name: words.strip() for name, words in found}
