"""Plain functions as tools: how the model is told of them, what it gets back."""

from __future__ import annotations

import enum
import functools
from typing import Any, Literal

import pytest

from gemnb.errors import ToolError
from gemnb.services.tools import LONGEST_OUTPUT, declare, declare_all, run


class Order(enum.Enum):
    UP = "up"
    DOWN = "down"


def load(
    name: str,
    rows: int = 5,
    *,
    order: Order = Order.UP,
    how: Literal["a", "b"] | None = None,
    tags: list[str] | None = None,
) -> str:
    """Load a table.

    Only the first rows.

    Args:
        name: Of the table.
        rows (int): How many.
    """
    return f"{name} {rows}"


def test_a_function_is_declared_by_its_signature() -> None:
    told = declare(load)

    assert (told.name, told.description) == ("load", "Load a table.\n\nOnly the first rows.")
    assert told.parameters == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Of the table."},
            "rows": {"type": "integer", "description": "How many."},
            "order": {"type": "string", "enum": ["up", "down"]},
            "how": {"type": "string", "enum": ["a", "b"], "nullable": True},
            "tags": {"type": "array", "items": {"type": "string"}, "nullable": True},
        },
        "required": ["name"],
    }


def test_a_choice_arrives_as_what_it_names() -> None:
    def pick(order: Order, level: Literal[1, 2] = 1, word: str = "") -> str:
        return f"{order!r} {level!r} {word!r}"

    result = run(declare(pick), {"order": "down", "level": "2", "word": "up"})

    assert result.response == {"output": "<Order.DOWN: 'down'> 2 'up'"}


def positional(a: int, /) -> None: ...


def only_args(*args: int) -> None: ...


async def later(a: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: 1, "name"),
        (5, "name"),
        (functools.partial(load), "name"),
        (positional, "by name"),
        (only_args, "args"),
        (later, "async"),
    ],
)
def test_what_cannot_be_offered_is_told(function: Any, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        declare(function)


def test_two_tools_need_two_names() -> None:
    with pytest.raises(ToolError, match="'load'"):
        declare_all([load, load])


class Frame:
    shape = (1, 1)

    def to_string(self, max_rows: int) -> str:
        return "a table"


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("text", "text"),
        ({"a": [1]}, {"a": [1]}),
        (None, None),
        (Frame(), "a table"),
        ("half \ud83d", "half ?"),
        (float("nan"), "nan"),
        ({1, 2} - {2}, "{1}"),
    ],
)
def test_results_become_json(value: object, output: object) -> None:
    def give() -> object:
        return value

    assert run(declare(give), {}).response == {"output": output}


def test_a_huge_result_is_cut() -> None:
    def give() -> str:
        return "x" * (LONGEST_OUTPUT + 5)

    assert run(declare(give), {}).response["output"].endswith("… 5 more characters")


@pytest.mark.parametrize("args", [None, [], "x", {"nope": 1}, {}])
def test_wrong_arguments_are_an_error_for_the_model(args: object) -> None:
    result = run(declare(load), args)

    assert result.status == "error" and "load" in result.response["error"]


def partly_hinted(a: "Nowhere", b: int, c: "list[int]") -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037


def test_a_hint_that_is_not_there_spoils_no_other() -> None:
    assert declare(partly_hinted).parameters["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "array", "items": {"type": "integer"}},
    }


class Mute:
    def __str__(self) -> str:
        raise ValueError("no words")


def test_a_result_that_cannot_be_told_is_an_error_for_the_model() -> None:
    def give() -> object:
        return Mute()

    assert run(declare(give), {}).response == {"error": "ValueError: no words"}
