"""Titles keep every script and nothing that could act; ages are told in whole units."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemnb.model.records import Message
from gemnb.model.shown import clean_line
from gemnb.model.talk import is_resumable, prompts, without_context
from gemnb.store.titles import age_of, title_of


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("日本語 の 題", "日本語 の 題", id="CJK stays"),
        pytest.param("a\u202eb\u2066c", "abc", id="bidi marks go"),
        pytest.param("\x1b[31mred\x1b[0m", "[31mred[0m", id="escapes go"),
        pytest.param(" a\n\tb\u2028c ", "a b c", id="white space folds"),
        pytest.param("half \ud83d", "half \ufffd", id="half a character is shown as one that is missing"),
        pytest.param("👩‍👩‍👧 ok", "👩‍👩‍👧 ok", id="joined emoji stay"),
    ],
)
def test_clean_line(text: str, line: str) -> None:
    assert clean_line(text) == line


@given(st.text())
def test_a_clean_line_is_one_line_and_stays_so(text: str) -> None:
    line = clean_line(text)

    assert clean_line(line) == line and "\n" not in line and "\x1b" not in line


@pytest.mark.parametrize("char", ["x", "日", "👩‍👩‍👧", "é"])
def test_a_title_is_cut_by_what_a_person_counts(char: str) -> None:
    assert title_of(char * 100, None, None) == char * 100
    assert title_of(char * 101, None, None) == char * 97 + "..."


def test_the_next_best_title_is_taken() -> None:
    assert title_of(" ", "live", "first") == "live"
    assert title_of(None, None, "first") == "first"
    assert title_of(None, None, None) == "Empty conversation"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "Just now"),
        (59, "Just now"),
        (60, "1 minute ago"),
        (7199, "1 hour ago"),
        (172_800, "2 days ago"),
        (-5, "Just now"),
    ],
)
def test_age(seconds: int, told: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    assert age_of(now - timedelta(seconds=seconds), now) == told


def message(id: str, type: str, content: object) -> Message:
    return Message(id=id, type=type, content=content)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "counts"),
    [
        pytest.param("/help", False, id="a command"),
        pytest.param(" ? ", False, id="a question mark"),
        pytest.param("<session_context>x</session_context>", False, id="context"),
        pytest.param("<hook_context>x</hook_context> real", True, id="text after context"),
        pytest.param([{"text": ""}], False, id="an empty part"),
        pytest.param([{"inlineData": {}}], True, id="a picture"),
        pytest.param([{"functionResponse": {}}], True, id="a response"),
    ],
)
def test_what_a_user_message_counts_for(content: object, counts: bool) -> None:
    assert is_resumable(message("u", "user", content)) is counts


def test_a_command_that_was_answered_is_a_prompt() -> None:
    talk = [
        message("a", "user", "/etc/hosts?"),
        message("i", "info", "x"),
        message("b", "gemini", "Names."),
        message("c", "user", "/quit"),
    ]

    assert [m.id for m in prompts(talk)] == ["a"]


def test_context_is_cut_from_the_front_alone() -> None:
    assert without_context("<session_context>a</session_context>\n<hook_context>b</hook_context> c <hook_context>") == (
        "c <hook_context>"
    )
