"""No text makes a pattern go over it again and again: each is gone through in a time that grows as its length."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from gemnb.model.shown import clean_line
from gemnb.model.talk import without_context
from gemnb.model.turns import Turn
from gemnb.services.audit import audit
from gemnb.services.audit_facts import facts_of_text, normal
from gemnb.services.export import part_markdown
from gemnb.services.markdown import markdown_html, safe_markdown
from gemnb.services.memory_imports import Resolver
from gemnb.services.redaction import Redactor
from gemnb.store.journal import parse_lines
from gemnb.store.settings import parse_settings
from gemnb.store.titles import title_of

LENGTH = 20_000
MOST_S = 2.0
"""Of the processor: some hundredths where the time grows as the length, far more where it grows as its square."""
UNITS = [
    *("x", "A", "Aa", "aA", "a.", "a/", "a_", "1", "1,", "1.", "v1.", "-", "--", "_", "__a", "=", "= ", ",", "|", "|-"),
    *(" ", "\n", "\t", " \n", "\n ", "\r\n", "\n$ ", "$ ", "#", "> ", "- ", "  - ", "1. ", "*", "**", "**a", "~", "~~"),
    *(
        "`",
        "``",
        "```\n",
        "\n`",
        "`git ",
        "git ",
        "~~~\n",
        "<",
        "<a ",
        "</a",
        "<!--",
        "<?",
        "<![CDATA[",
        "&",
        "&#",
        "&amp",
    ),
    *(
        "[",
        "[a](",
        "![",
        "](",
        "[x]: ",
        "(",
        "()",
        "https://",
        "http://a)",
        "://",
        "://a:",
        "a:b@",
        "bearer ",
        "@",
        "@a",
    ),
    *(
        "@./a ",
        "Error",
        "Error:",
        "aError",
        "port ",
        "port  ",
        "端口 ",
        "C:\\",
        "C:\\a ",
        "C:\\Users\\",
        "/home/a/",
        "\\",
    ),
    *("eyJ", "eyJ-", "eyJ-a.", "eyJaaaaaaaa.", "AIza", "AIza-", "sk-", "sk-a-", "xoxb-", "ya29.", "-----BEGIN A"),
    *("password=", 'password":', "api_key ", "token: ", "'", '"', '"a"', "{", "}", '{"id":', "//", "//\n", "/*", "*/"),
    *("\x1b[", "不", "。", "まだ", "?", "? ", "export A="),
]


def facts(text: str) -> None:
    for _, told in facts_of_text(text, by_person=True):
        normal(told)


def audited(text: str) -> None:
    audit([Turn.prompt(text)], text)


def redacted(text: str) -> None:
    Redactor(["/home/me"]).text(text)


def settings(text: str) -> None:
    for start in ('{"a":"', '{"a":', ""):
        with suppress(ValueError):
            parse_settings((start + text).encode())


def imports(text: str) -> None:
    Resolver(Path("/none")).resolve(text, Path("/none/GEMINI.md"))


def journal(text: str) -> None:
    for start in ("", '{"id":', '{"id":"a","content":"'):
        list(parse_lines((start + text).encode().splitlines(keepends=True)))


def titles(text: str) -> None:
    title_of(None, text, None)
    without_context(f"<session_context>{text}")
    clean_line(text)


def parts(text: str) -> None:
    part_markdown({"functionCall": {"name": text, "args": text}})
    part_markdown({"text": text, "thought": True})


@pytest.mark.parametrize(
    "reads",
    [facts, audited, redacted, settings, imports, journal, titles, parts, markdown_html, safe_markdown],
    ids=lambda function: function.__name__,
)
def test_the_time_grows_as_the_length(reads: Callable[[str], object]) -> None:
    for unit in UNITS:
        text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
        start = time.process_time()
        reads(text)
        assert time.process_time() - start < MOST_S, repr(unit)
