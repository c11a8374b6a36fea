"""The pages are true to the code. `GEMNB_WRITE_DOCS=1 pytest tests/test_docs.py` writes their tables anew."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any

import pytest

import gemnb
from gemnb import errors
from gemnb.frames.columns import Column, describe
from gemnb.frames.retention import RETENTION
from gemnb.frames.tables import MESSAGES, SESSIONS, TOOL_CALLS
from gemnb.frames.usage import KEYS, SUMS, usage_columns
from gemnb.notebook.magics import Gemnb

README = Path(__file__).parents[1] / "README.md"
COLUMNS = README.with_name("COLUMNS.md")
TABLES: dict[str, tuple[str, tuple[Column[Any], ...]]] = {
    'sessions_df(source=None, hidden=False, prices="list")': ("session", SESSIONS),
    'messages_df(source=None, hidden=False, prices="list")': ("message", MESSAGES),
    "tool_calls_df(source=None, hidden=False)": ("call of a tool", TOOL_CALLS),
    'usage_df(source=None, by=["day", "model"], tz=None, dedupe=True, prices="list")': (
        "group of `by`: `" + "`, `".join(KEYS) + "`",
        SUMS,
    ),
    'retention_df(source=None, prices="list")': ("session that is listed", RETENTION),
}


def rewritten(path: Path, name: str, block: str) -> str:
    """The text of the page at `path`, its block `name` written anew where that is asked for."""
    text = path.read_text()
    if os.environ.get("GEMNB_WRITE_DOCS"):
        whole = f"<!-- {name} -->\n{block}\n<!-- end -->"
        text = re.sub(rf"<!-- {name} -->\n.*?<!-- end -->", lambda _: whole, text, flags=re.DOTALL)
        path.write_text(text)
    return text


@pytest.mark.parametrize("call", TABLES)
def test_every_column_is_described(call: str) -> None:
    name, columns = call.partition("(")[0], TABLES[call][1]
    keys = usage_columns(KEYS, "ZONE")[: len(KEYS)] if columns is SUMS else ()

    assert f"<!-- {name} -->\n{describe([*keys, *columns])}\n<!-- end -->" in rewritten(
        COLUMNS, name, describe([*keys, *columns])
    )


def test_the_readme_has_every_frame_and_the_names_of_its_columns() -> None:
    rows = [
        f"| `{call}` | {grain} | {' '.join(f'`{column.name}`' for column in columns)} |"
        for call, (grain, columns) in TABLES.items()
    ]
    block = "\n".join(["| `gemnb.` | a row for each | columns |", "|---|---|---|", *rows])

    assert f"<!-- frames -->\n{block}\n<!-- end -->" in rewritten(README, "frames", block)


def test_the_readmes_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))

    assert len(pictures) == 2
    for picture in pictures:
        assert (README.parent / picture).read_bytes().startswith(b"\x89PNG")


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
