"""Bytes to records: whatever the bytes, nothing raises, nothing after a bad place is lost, each bad place is told."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import TALK, header, to_bytes, user

from gemnb.model.records import Damage
from gemnb.store import journal
from gemnb.store.brief import brief_records
from gemnb.store.journal import open_regular, parse_json, parse_line, parse_lines, to_line
from gemnb.store.replay import read_fold

A, B = {"id": "a", "type": "user"}, {"id": "b", "type": "user"}


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "ids", "reasons"),
    [
        pytest.param(line(A) + line(B), "ab", [], id="each line is a record"),
        pytest.param(line(A) + b"\n \t\r\n" + line(B), "ab", [], id="blank lines are nothing"),
        pytest.param(line(A).replace(b"\n", b"\r\n") + line(B), "ab", [], id="CRLF ends a line"),
        pytest.param(b"\xef\xbb\xbf" + line(A), "a", [], id="a byte order mark is nothing"),
        pytest.param(line(A) + line(B)[:-1], "ab", [], id="the last newline may be missing"),
        pytest.param(line(A) + b'{"id": "b", "ty', "a", ["torn"], id="a torn tail is damage"),
        pytest.param(line(A) + b"\0" * 512 + line(B), "ab", ["NUL"], id="a record after NUL bytes is found"),
        pytest.param(line(A)[:-1] + line(B), "ab", ["not JSON"], id="two glued records are both found"),
        pytest.param(
            b'{"id":"x","content":"he' + line(B), "b", ["not JSON"], id="a record glued to a torn one is found"
        ),
        pytest.param(
            b'{"$set":{"messages":[' + line(A)[:-1] + b'],"lastUp\n' + line(B),
            "b",
            ["not JSON"],
            id="no part of a torn list",
        ),
        pytest.param(b'{"x":NaN}\n' + line(B), "b", ["not JSON"], id="NaN is damage"),
        pytest.param(b"[" * 100_000 + b"\n" + line(B), "b", ["not JSON"], id="100,000 brackets are damage"),
        pytest.param(
            b'{"id":"a","n":' + b"7" * 5000 + b"}\n" + line(B), "ab", [], id="a number of 5,000 digits is read"
        ),
        pytest.param(b'"text"\n7\nnull\n[]\n' + line(B), "b", ["not an object"] * 4, id="other values are damage"),
        pytest.param('{"id":"a","t":"l\u2028r\u0085s"}\n'.encode() + line(B), "ab", [], id="U+2028 ends no line"),
        pytest.param(b'{"id":"a","t":"\\ud83d"}\n' + line(B), "ab", [], id="half a character is read"),
        pytest.param(b'{"id":"a","t":"\xff\xfe"}\n' + line(B), "ab", [], id="bytes that are no UTF-8 are read"),
    ],
)
def test_a_file_is_read_past_its_damage(data: bytes, ids: str, reasons: list[str]) -> None:
    found = list(parse_lines(_lines(data)))

    damage = [d for d in found if isinstance(d, Damage)]
    assert "".join(r["id"] for r in found if not isinstance(r, Damage)) == ids
    assert len(damage) == len(reasons)
    assert all(told in d.reason for d, told in zip(damage, reasons, strict=True))


def _lines(data: bytes) -> list[bytes]:
    return [piece + b"\n" for piece in data.split(b"\n")[:-1]] + [p for p in [data.split(b"\n")[-1]] if p]


def test_damage_tells_line_and_offset() -> None:
    first = line(A)

    found = list(parse_lines([first, b"broken\n", line(B)]))

    assert [(d.line, d.offset) for d in found if isinstance(d, Damage)] == [(2, len(first))]


def test_as_the_client_a_damaged_line_is_lost() -> None:
    assert [r for r in parse_line(line(A)[:-1] + line(B), salvage=False) if not isinstance(r, Damage)] == []


@given(st.binary(max_size=400))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    list(parse_lines(_lines(data)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5) | st.just("\ud83d"), json_values | st.just("\udc00 half"), max_size=4))
def test_what_is_written_is_one_ascii_line_and_reads_back(record: dict[str, object]) -> None:
    written = to_line(record)

    assert written.isascii() and written.count(b"\n") == 1 and written.endswith(b"\n")
    assert parse_json(written) == record


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_a_regular_file_is_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "session-x.jsonl"
    if kind == "link":
        (tmp_path / "target").write_text("{}")
        path.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()

    with pytest.raises(OSError, match=r"."):
        open_regular(path)


@pytest.mark.parametrize("ending", [b"\n", b""], ids=["ended", "cut off"])
def test_a_line_that_is_too_long_is_damage_and_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: bytes
) -> None:
    monkeypatch.setattr(journal, "LONGEST_LINE", 100_000)
    path = tmp_path / "session-2026-05-01T10-00-aa11bb22.jsonl"
    start = to_bytes(header(), *TALK)
    long = b'{"id":"long","type":"user","content":"' + b"x" * 30_000_000 + b'"}' + ending
    path.write_bytes(start + long + (to_bytes(user("u2", "And on?"), b"{torn\n") if ending else b""))

    tracemalloc.start()
    brief, whole = read_fold(path, records=brief_records), read_fold(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert list(brief.live) == list(whole.live) == ["u1", "g1", *(["u2"] if ending else [])]
    assert brief.damage == whole.damage
    told = [(damage.line, damage.offset) for damage in whole.damage]
    after = len(start) + len(long) + len(to_bytes(user("u2", "And on?")))
    assert told == [(4, len(start)), *([(6, after)] if ending else [])]
    assert peak < 5_000_000
