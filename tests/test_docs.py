"""The README is true to the code. `GEMNB_WRITE_DOCS=1 pytest tests/test_docs.py` writes its tables anew."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest

import gemnb
from gemnb import errors
from gemnb.frames.columns import describe
from gemnb.frames.retention import RETENTION
from gemnb.frames.tables import MESSAGES, TOOL_CALLS, sessions_columns
from gemnb.notebook.magics import Gemnb
from gemnb.services.prices import list_price

README = Path(__file__).parents[1] / "README.md"
TABLES: dict[str, Any] = {
    "messages": MESSAGES,
    "tool_calls": TOOL_CALLS,
    "sessions": sessions_columns(list_price),
    "retention": RETENTION,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_described(name: str) -> None:
    text = README.read_text()
    block = f"<!-- columns: {name} -->\n{describe(TABLES[name])}\n<!-- end -->"
    if os.environ.get("GEMNB_WRITE_DOCS"):
        text = re.sub(rf"<!-- columns: {name} -->\n.*?<!-- end -->", lambda _: block, text, flags=re.DOTALL)
        README.write_text(text)

    assert block in text


@pytest.mark.parametrize("name", sorted({*Gemnb.magics["line"], *Gemnb.magics["cell"]}))
def test_every_magic_is_in_the_readme(name: str) -> None:
    assert f"%{name}" in README.read_text()


@pytest.mark.parametrize("name", [n for n in gemnb.__all__ if n[0].islower() and n[0] != "_"])
def test_every_public_function_is_in_the_readme_or_says_what_it_does(name: str) -> None:
    assert inspect.getdoc(getattr(gemnb, name))


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    told = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[<>=]", line)[0] for line in told}

    rows = re.findall(r"^\| ([\w, -]+) \|", README.read_text().split("## Dependencies")[1].split("##")[0], re.MULTILINE)
    assert {name.strip() for row in rows for name in row.split(",")} - {"package"} == names


CLASSES = [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.GemnbError)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda c: c.__name__)
def test_every_error_has_a_code_and_stands_in_the_tree(error: type[errors.GemnbError]) -> None:
    assert error.__doc__ and error.code.isupper()
    assert error is errors.GemnbError or error.__name__ in (errors.__doc__ or "")


def test_codes_are_one_each() -> None:
    codes = [c.code for c in CLASSES]

    assert len(set(codes)) == len(codes)


def test_an_error_shows_as_one_line() -> None:
    assert (
        errors.NoChatError()._render_traceback_()[0].startswith("NoChatError: No session is attached: `%resume latest`")
    )
