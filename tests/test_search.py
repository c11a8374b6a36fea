"""Search finds what was said, in any script and case, and shows it in its context."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import SID, TALK, gemini, header, user

import gemnb
from gemnb.model.session import SessionInfo
from gemnb.services import search as searching
from gemnb.services import spelling
from gemnb.store.replay import read_session

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


def test_what_the_client_put_before_the_words_is_no_hit(ws: gemnb.Workspace, write_session: Write) -> None:
    context = "<session_context>\nToday is a barley day</session_context>"
    write_session(
        header(),
        user("u0", context),
        user("u1", [{"text": context}, {"text": "More barley?"}]),
        user("u2", "<hook_context>barley</hook_context> Barley, I said"),
        gemini("g2", "<session_context>barley</session_context>"),
    )

    assert [(hit.message_id, hit.match) for hit in ws.search("BARLEY")][1:] == [
        ("u1", "barley"),
        ("u2", "Barley"),
        ("g2", "barley"),
    ]


def test_a_match_may_stand_in_any_part_but_in_one(ws: gemnb.Workspace, write_session: Write) -> None:
    call = {"id": "c", "name": "read_file", "args": {"a": "wheat", "b": "wheat, rye"}}
    write_session(header(), user("u1", [{"text": "One. "}, {"text": "Two."}]), gemini("g1", "", toolCalls=[call]))

    assert [(hit.before, hit.match, hit.after) for hit in ws.search("two")][1:] == [("One. ", "Two", ".")]
    assert [(hit.before, hit.after) for hit in ws.search("wheat")] == [("read_file ", " wheat, rye")]
    assert [hit.role for hit in ws.search("e. t")] == ["title"]


def test_a_second_search_looks_at_the_word_alone(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(header(), *TALK)
    monkeypatch.setattr("gemnb.store.rows.SETTLED_NS", -(10**10))
    looked: list[int] = []
    real = spelling._has
    monkeypatch.setattr(spelling, "_has", lambda block: looked.append(1) or real(block))

    for word in ("zzz", "zzy"):
        assert list(ws.search(word)) == []
    assert looked == [1]

    path.write_bytes(path.read_bytes().replace(b"forty", b"\\u007azz"))
    assert [hit.match for hit in ws.search("zzz")] == ["zzz"]


def as_json(text: str, style: int) -> str:
    """`text` as a JSON string; each bit of `style` says whether a character is escaped, and in which case."""
    told = []
    for number, char in enumerate(text):
        units = char.encode("utf-16-be", "surrogatepass")
        codes = "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
        match style >> (2 * number) & 3:
            case 1:
                told.append(codes)
            case 2:
                told.append("".join("\\u" + code.upper() for code in codes.split("\\u")[1:]))
            case 3 if char == "/":
                told.append("\\/")
            case _:
                told.append(json.dumps(char, ensure_ascii="\ud800" <= char <= "\udfff")[1:-1])
    return '"' + "".join(told) + '"'


LETTERS = st.text(
    st.sampled_from('aBsSkKiIzé/É"\\ ß\u1e9eſ\u212aİıσςΣдД\u1c81売上👩\u200d🏽\ud83d\ufffd\x7f\x1f\n')
    | st.characters(),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400, deadline=None)
@given(texts=st.lists(LETTERS, min_size=1, max_size=3), style=st.integers(0, 2**16), data=st.data())
def test_the_bytes_hide_nothing_that_reading_finds(
    write_session: Write, texts: list[str], style: int, data: st.DataObject
) -> None:
    lines = [json.dumps(user(f"u{n}", "Q")).replace('"Q"', as_json(text, style)) for n, text in enumerate(texts)]
    path = write_session(header(), *(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines))
    text = data.draw(st.sampled_from(texts))
    start, end = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 8))
    recased = data.draw(st.sampled_from([str, str.upper, str.lower, str.swapcase, str.title]))
    query = recased(text[start : start + end])

    row = SessionInfo(id=SID, path=path)
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    there = [m.id for m in read_session(path).messages if query.strip() and pattern.search(m.text)]

    assert [hit.message_id for hit in searching.search(query, [row], lambda row: read_session(row.path))] == there


def test_every_letter_is_found_in_every_case() -> None:
    """What `re` takes for one letter, the look at the bytes does too."""
    cased = [c for c in map(chr, range(0x1F000)) if c.lower() != c or c.upper() != c]
    for char in cased:
        pattern = re.compile(re.escape(char), re.IGNORECASE)
        forms = {
            other for other in {*char.lower(), *char.upper(), *spelling._cases()[char]} if pattern.fullmatch(other)
        }
        word = spelling.Word(char)
        assert word._raw
        for form in forms:
            told = form.encode()
            assert word._raw.search(told) or (char.isascii() and spelling._has(told) & spelling.ASCII), (char, form)


def test_no_letter_without_a_case_is_one_with_another() -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x1F000)]))
    for char in everything[::97]:
        if char.lower() == char == char.upper():
            assert set(re.findall(re.escape(char), everything, re.IGNORECASE)) == {char}
