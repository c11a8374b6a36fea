"""Search finds what was said, in any script and case, and shows it in its context."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import stringzilla as sz
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import SID, TALK, gemini, header, user

import gemnb
from gemnb.errors import SearchError
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
    ("query", "text"),
    [
        ("kind", "kınd"),
        ("kınd", "kind"),
        ("kind", "KİND"),
        ("KİND", "kınd"),
        ("sand", "ſand"),
        ("ſand", "Sand"),
        ("kelvin", "\u212aelvin"),
        ("\u212aelvin", "kelvin"),
        ("gro\u1e9e", "GROß"),
        ("\u212bngström", "ångSTRÖM"),
    ],
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


def test_what_was_typed_as_it_was_sent_is_one_hit(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(summary="-"), user("u1", "rivers", displayContent=[{"text": "rivers"}]))

    assert [hit.message_id for hit in ws.search("rivers")] == ["u1"]


@pytest.mark.parametrize("projects", ["here", "All", None])
def test_where_nothing_can_be_searched_is_told(ws: gemnb.Workspace, projects: Any) -> None:
    with pytest.raises(SearchError, match='give "current" or "all"'):
        ws.search("rivers", projects=projects)


def spelled(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("told", "may"),
    [
        (spelled("a needle"), True),
        (spelled("a NeEdLe"), True),
        (b"n\\u0065edle", True),
        (b"NEEDL\\u0045", True),
        (spelled("a noodle"), False),
        (b"".join(f"\\u{code:04x}".encode() for code in range(32)) * 9, False),
        (b"\\u001b[0m \\u0041 \\u0062 \\u212a \\u00dcber", False),
        (spelled("K\u0131nd ſand"), False),
        (b"", False),
    ],
)
def test_only_what_may_hold_the_word_is_read(tmp_path: Path, told: bytes, may: bool) -> None:
    path = tmp_path / "told"
    path.write_bytes(told)

    assert spelling.Word("needle").may_stand_in(path) is may


def test_letters_that_share_bytes_are_found_in_each_case(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("\u0440\u0450", encoding="utf-8")

    assert spelling.Word("\u0420\u0400").may_stand_in(path)


@pytest.mark.parametrize("told", ["R\\u0055NE", "r\\u0075ne", "R\\u0075n\\u0065", "\\u0072une"])
def test_the_letter_of_an_escape_may_be_one_of_the_word(tmp_path: Path, told: str) -> None:
    (tmp_path / "told").write_text(told)

    assert spelling.Word("Rune").may_stand_in(tmp_path / "told")


@pytest.mark.parametrize("told", ["A/needle", "a/nee/dle", 'a"needle\\', "\x1fneedle\n", "\ud83dneedle\ufffd"])
def test_the_longest_part_that_is_spelled_in_one_way_is_looked_for(tmp_path: Path, told: str) -> None:
    path = tmp_path / "told"
    path.write_bytes(spelled("nothing of it"))
    assert not spelling.Word(told).may_stand_in(path)

    path.write_bytes(json.dumps(told.upper()).encode().replace(b"/", b"\\/"))
    assert spelling.Word(told).may_stand_in(path)


def test_the_sign_for_bytes_that_are_no_character_stands_for_any(ws: gemnb.Workspace, write_session: Write) -> None:
    line = json.dumps(user("u1", "a caf? b")).encode().replace(b"?", b"\xe9") + b"\n"
    write_session(header(summary="Lunch"), line)

    assert [hit.match for hit in ws.search("f\ufffd B")] == ["f\ufffd b"]
    assert [hit.match for hit in ws.search("\ufffd")] == ["\ufffd"]


def test_a_word_of_nothing_but_short_escapes_may_stand_anywhere(tmp_path: Path) -> None:
    (tmp_path / "told").write_bytes(b"x")

    assert spelling.Word('/"\\').may_stand_in(tmp_path / "told")
    assert not spelling.Word('/"\\').may_stand_in(tmp_path / "gone")


@pytest.mark.parametrize("block", [1, 2, 3, 5, 8, 13, 64])
@pytest.mark.parametrize("told", ["Größe 売上", "\\u0067R\\u00f6SSE", "\\u0047röſſe", "\\ud83d\\udc69", "👩", "\u212a"])
def test_no_end_of_a_block_hides_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, told: str) -> None:
    monkeypatch.setattr(spelling, "BLOCK_BYTES", block)
    word = spelling.Word(next(text for text in ("größe 売上", "grösse", "👩", "k") if same(text, told)))
    path = tmp_path / "told"

    for before in range(20):
        path.write_bytes(b"\xe5" * before + told.encode() + b"\xe5" * 20)
        assert word.may_stand_in(path), before


def same(text: str, told: str) -> bool:
    return re.fullmatch(re.escape(text), json.loads(f'"{told}"'), re.IGNORECASE) is not None


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


TRICKY = (
    'auUBsSkKiIzé/É"\\ ß\u1e9eſ\u212aİıσςΣιᾳ\u0345\u0301ﬁÅ\u212bΩ\u2126дД'
    "ᲁᎠꭰა\u1c90đƯợⱥȺ𐐀𐐨𞤀𞤢売上👩\u200d🏽\ud83d\udc69\ufffd\x7f\x1f\x00\n"
)
CASED = [char for char in map(chr, range(sys.maxunicode + 1)) if char.lower() != char or char.upper() != char]
LETTERS = st.text(st.sampled_from(TRICKY) | st.sampled_from(CASED) | st.characters(), max_size=8)
JUNK = st.lists(st.tuples(st.integers(0, 99), st.binary(min_size=1, max_size=3)), max_size=2)


def with_junk(told: bytes, junk: list[tuple[int, bytes]]) -> bytes:
    """A JSON string with bytes beyond ASCII put into it, be they a character or none."""
    for place, some in junk:
        here = 1 + place % (len(told) - 1)
        told = told[:here] + bytes(byte | 0x80 for byte in some) + told[here:]
    return told


@cache
def partners(char: str) -> list[str]:
    return re.findall(re.escape(char), "".join(CASED), re.IGNORECASE) or [char]


RECASED = [str, str.upper, str.lower, str.swapcase, str.title, lambda text: "".join(partners(c)[-1] for c in text)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=800, deadline=None)
@given(
    texts=st.lists(LETTERS, min_size=1, max_size=3),
    style=st.integers(0, 2**16),
    junk=JUNK,
    block=st.sampled_from([1, 7, 64, 2**20]),
    data=st.data(),
)
def test_the_bytes_hide_nothing_that_reading_finds(
    write_session: Write,
    texts: list[str],
    style: int,
    junk: list[tuple[int, bytes]],
    block: int,
    data: st.DataObject,
) -> None:
    strings = [with_junk(as_json(text, style).encode("utf-8", "surrogatepass"), junk) for text in texts]
    lines = [json.dumps(gemini(f"u{n}", "Q")).encode().replace(b'"Q"', told) for n, told in enumerate(strings)]
    path = write_session(header(), *(line + b"\n" for line in lines))
    text = data.draw(st.sampled_from(texts))
    start, end = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 8))
    query = data.draw(st.sampled_from(RECASED))(text[start : start + end])

    row = SessionInfo(id=SID, path=path)
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    there = [m.id for m in read_session(path).messages if query.strip() and pattern.search(m.text)]

    with patch.object(spelling, "BLOCK_BYTES", block):
        found = [hit.message_id for hit in searching.search(query, [row], lambda row: read_session(row.path))]
    assert found == there


def test_every_letter_is_known_in_every_case() -> None:
    """What `re` takes for one letter, the look at the bytes does too."""
    for char in CASED:
        same, longer = spelling._ways(char)
        assert sorted(form.decode() for form in (*same, *longer)) == sorted(partners(char)), char


def test_no_letter_without_a_case_is_one_with_another() -> None:
    everything = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    uncased = "".join(sorted({*everything} - {*CASED}))
    assert not re.search(f"[{re.escape(''.join(CASED))}]", uncased, re.IGNORECASE)
    for char in uncased[::9973]:
        assert re.findall(re.escape(char), uncased, re.IGNORECASE) == [char]


@pytest.mark.parametrize("alphabet", [b"ab", b"\\u01", bytes(range(256)), b"\xc5\xbf\xe2\x84\xaa\x00\xff"])
def test_the_fast_looks_at_bytes_are_those_of_python(alphabet: bytes) -> None:
    """The library has other code for each kind of processor, and in it other code for each rest of a block."""
    draw = random.Random(0)
    for size in [*range(140), 255, 256, 257, 4095, 4096, 4097] * 3:
        memory = bytearray(size + 64)
        at = draw.randrange(64)
        block = memoryview(memory)[at : at + size]
        block[:] = told = bytes(draw.choices(alphabet, k=size))
        for length in (1, 2, 3, 5, 8, 16, 17, 33, 65):
            start = draw.choice([0, max(0, size - length), draw.randrange(size + 1)])
            needle = told[start : start + length] or b"?"
            missing = needle[:-1] + bytes([needle[-1] ^ 1])
            for looked in (needle, missing):
                assert (sz.find(block, looked), sz.count(block, looked)) == (told.find(looked), told.count(looked))
        table = bytes(draw.choices(range(256), k=256))
        sz.translate(block, table, inplace=True)
        assert memory == bytes(at) + told.translate(table) + bytes(64 - at)
