"""The fold: one pass over a file gives the talk as it stands and everything that was paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import SID, TALK, TOKENS, gemini, header, to_bytes, tree, user

from gemnb.store.codec import line_of
from gemnb.store.replay import fold, read_session

A, B, C = user("a", "one"), gemini("b", "two"), user("c", "three")
SKETCH = {"$set": {"memoryScratchpad": {"version": 1}}}


@pytest.mark.parametrize(
    ("lines", "ids"),
    [
        pytest.param([A, B, C], "abc", id="in order"),
        pytest.param([A, B, A], "ab", id="the same id keeps its place"),
        pytest.param([A, B, C, {"$rewindTo": "b"}], "a", id="a rewind drops the named one and all after"),
        pytest.param([A, B, {"$rewindTo": "gone"}, C], "c", id="a rewind to an unknown id drops all"),
        pytest.param([A, B, {"$set": {"messages": [C]}}], "c", id="a list replaces"),
        pytest.param([A, B, {"$set": {"messages": []}}], "", id="an empty list replaces too"),
        pytest.param(
            [A, {"$set": {"messages": [None, 5, {"id": 7}, B]}}], "b", id="what is no message in a list is left out"
        ),
        pytest.param([{"id": "x", "$rewindTo": "a"}, A], "a", id="a rewind before an id"),
        pytest.param([A, header(messages=[B])], "ab", id="a header's messages are added"),
        pytest.param(
            [A, B, header(), {"$set": {"messages": [user("n", "<session_context>x</session_context>")]}}],
            "ab",
            id="context alone after a second header empties nothing",
        ),
        pytest.param(
            [A, B, {"$set": {"messages": [user("n", "<session_context>x</session_context>")]}}],
            "n",
            id="context alone without a second header does",
        ),
    ],
)
def test_fold_keeps(lines: list[dict[str, Any]], ids: str) -> None:
    found = fold(map(line_of, [header(), *lines]))

    assert "".join(found.live) == ids


@pytest.mark.parametrize(
    ("records", "sketched"),
    [
        ([A], None),
        ([A, SKETCH], True),
        ([A, SKETCH, {"$set": {"summary": "x"}}], True),
        ([A, SKETCH, {"$set": {"messages": []}}], True),
        ([A, SKETCH, B], False),
        ([A, SKETCH, {"$rewindTo": "a"}], False),
        ([A, SKETCH, B, SKETCH], True),
    ],
)
def test_the_clients_sketch_tells_of_all_until_more_is_said(records: list[Any], sketched: bool | None) -> None:
    assert fold(map(line_of, [header(), *records])).sketched is sketched


@pytest.mark.parametrize(
    "after",
    [
        pytest.param([{"$rewindTo": "u1"}], id="a rewind"),
        pytest.param([{"$set": {"messages": []}}], id="a replacement"),
        pytest.param([gemini("g1", "There are forty-two.", tokens=None)], id="a later null"),
        pytest.param([{"$set": {"messages": [user("u1", "x"), gemini("g1", "y")]}}], id="a list without tokens"),
    ],
)
def test_the_bill_stays_after(write_session: Callable[..., Path], after: list[Any]) -> None:
    session = read_session(write_session(header(), *TALK, *after))

    assert {id: m.tokens.total for id, m in session.usage.items() if m.tokens} == {"g1": 108}


def test_what_is_written_back_without_its_keys_gets_them_back(write_session: Callable[..., Path]) -> None:
    full = gemini(
        "g1", "a", tokens=TOKENS, model="m", thoughts=[{"subject": "S"}], toolCalls=[{"id": "c", "name": "f"}]
    )

    session = read_session(write_session(header(), full, {"$set": {"messages": [gemini("g1", [{"text": "a"}])]}}))

    (message,) = session.messages
    assert (message.model, message.thoughts[0].subject, message.tool_calls[0].id) == ("m", "S", "c")
    assert message.tokens and message.tokens.total == 108


def test_an_older_file_is_one_object_over_many_lines(write_session: Callable[..., Path]) -> None:
    import json

    text = json.dumps({"sessionId": SID, "messages": TALK}, indent=2).encode()

    session = read_session(write_session(text, name="session-2026-05-01T10-00-aa11bb22.json"))

    assert session.id == SID and [m.id for m in session.messages] == ["u1", "g1"] and not session.damage


def test_a_lost_header_hides_no_talk(write_session: Callable[..., Path]) -> None:
    session = read_session(write_session(b'{"sessionId": "aa1\n', *TALK))

    assert session.id == "aa11bb22" and len(session.messages) == 2 and session.damage


pieces = st.sampled_from(
    [
        header(),
        A,
        B,
        C,
        *TALK,
        {"$rewindTo": "b"},
        {"$set": {"messages": [A, B]}},
        {"$set": {"lastUpdated": "x"}},
        {"$set": {"summary": None}},
        {"id": 5},
        b"\xff\xfe\n",
        b"\0\0\0",
        b'{"id":"torn',
        b"\n",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(pieces | st.binary(max_size=30), max_size=12))
def test_reading_never_raises_and_never_writes(write_session: Callable[..., Path], lines: list[Any]) -> None:
    path = write_session(*lines)
    before = tree(path.parent)

    session = read_session(path)

    assert tree(path.parent) == before
    assert path.read_bytes() == to_bytes(*lines)
    assert set(session.usage) >= {m.id for m in session.messages if m.tokens}


@given(st.lists(st.sampled_from([A, B, C, *TALK, {"$rewindTo": "b"}, {"$set": {"messages": [A, B]}}]), max_size=12))
def test_folding_in_two_goes_is_folding_in_one(lines: list[dict[str, Any]]) -> None:
    whole = fold(map(line_of, lines))

    for cut in range(len(lines)):
        halves = fold(map(line_of, lines[cut:]), into=fold(map(line_of, lines[:cut])))
        assert list(halves.live) == list(whole.live) and list(halves.known) == list(whole.known)
