"""Search finds what was said, in any script and case, and shows it in its context."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import SID, TALK, gemini, header, user

import gemnb
from gemnb.services import search as searching

Write = Callable[..., Path]


def talk(write_session: Write) -> None:
    call = {"id": "c", "name": "read_file", "args": {"file_path": "data/barley-2025.csv", "deep": [{"x": "Tief"}]}}
    write_session(
        header(summary="Harvest figures"),
        user("u1", "Die Straße in 売上高 columns"),
        gemini("g1", 'It says "revenue" 👩‍👩‍👧 and more', toolCalls=[call]),
        user("u2", "gone"),
        {"$rewindTo": "u2"},
    )


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        pytest.param("harvest FIG", [(None, "title")], id="a title, in any case"),
        pytest.param("STRASSE", [], id="case alone is folded"),
        pytest.param("straße", [("u1", "user")], id="letters beyond ASCII"),
        pytest.param("売", [("u1", "user")], id="one CJK character"),
        pytest.param('"revenue"', [("g1", "gemini")], id="quotes"),
        pytest.param("READ_FILE", [("g1", "tool")], id="a tool's name"),
        pytest.param("barley-2025", [("g1", "tool")], id="a file in a call"),
        pytest.param("tief", [("g1", "tool")], id="deep in the arguments"),
        pytest.param("gone", [], id="what was rewound is not found"),
        pytest.param("  ", [], id="nothing finds nothing"),
    ],
)
def test_what_is_found(ws: gemnb.Workspace, write_session: Write, query: str, hits: list[Any]) -> None:
    talk(write_session)

    assert [(hit.message_id, hit.role) for hit in ws.search(query)] == hits


def test_a_match_stands_in_its_context(ws: gemnb.Workspace, write_session: Write) -> None:
    talk(write_session)

    (hit,) = ws.search("売上高")

    assert (hit.session_id, hit.before, hit.match, hit.after) == (SID, "Die Straße in ", "売上高", " columns")


@pytest.mark.parametrize("escape", ["raw", "lower", "upper", "all"])
@pytest.mark.parametrize("word", ["売上", "needle", "a/b"])
def test_every_spelling_of_json_is_found(ws: gemnb.Workspace, write_session: Write, escape: str, word: str) -> None:
    def spelled(char: str) -> str:
        return f"\\u{ord(char):04X}" if escape == "upper" else f"\\u{ord(char):04x}"

    text = "".join(spelled(c) if escape == "all" or (escape != "raw" and not c.isascii()) else c for c in word)
    line = json.dumps(user("u1", "X")).replace("X", text).replace("/", "\\/" if escape == "lower" else "/")
    write_session(header(), line.encode() + b"\n")

    assert [hit.message_id for hit in ws.search(word)][-1] == "u1"


@pytest.mark.parametrize(
    ("query", "text"), [("kind", "kınd"), ("kind", "KİND"), ("sand", "ſand"), ("kelvin", "\u212aelvin")]
)
@pytest.mark.parametrize("ascii", [True, False])
def test_letters_that_are_one_only_without_case(
    ws: gemnb.Workspace, write_session: Write, query: str, text: str, ascii: bool
) -> None:
    path = write_session(header(), user("u1", "Q"), gemini("g1", "PLACE"))
    path.write_text(path.read_text("utf-8").replace("PLACE", json.dumps(text, ensure_ascii=ascii)[1:-1]), "utf-8")
    assert [hit.match for hit in ws.search(query)] == [text]


def test_a_limit_and_the_order(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)
    newer = header("bb22cc33-1", lastUpdated="2026-05-09T10:00:00.000Z")
    write_session(newer, *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")

    assert [hit.session_id for hit in ws.search("forty", limit=1)] == ["bb22cc33-1"]
    assert len(list(ws.search("forty"))) == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
@given(st.text(min_size=1, max_size=4), st.lists(st.text(max_size=12), min_size=1, max_size=4), st.booleans())
def test_the_prefilter_hides_nothing(write_session: Write, query: str, texts: list[str], ascii: bool) -> None:
    lines = [user(f"u{n}", text) for n, text in enumerate(texts)]
    path = write_session(
        *(json.dumps(line, ensure_ascii=ascii).encode("utf-8", "surrogatepass") + b"\n" for line in [header(), *lines])
    )
    import re

    if any(re.search(re.escape(query), text, re.IGNORECASE) for text in texts):
        assert searching._prefilter(query)(path)
