"""What the model is sent: the client's rules, and repairs that are told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemnb.model.turns import Turn, wire_contents
from gemnb.services.projection import client_turns, history, repaired
from gemnb.store.codec import decode_message

CALL = {"functionCall": {"id": "t1", "name": "ls", "args": {}}}
RESULT = {"functionResponse": {"id": "t1", "name": "ls", "response": {"output": "x"}}}


def turns_of(*parts: tuple[str, list[dict[str, Any]]]) -> list[Turn]:
    return [Turn(f"t{n}", role, tuple(p)) for n, (role, p) in enumerate(parts)]


@pytest.mark.parametrize(
    ("turns", "roles", "told"),
    [
        pytest.param([("user", [{"text": "a"}]), ("model", [CALL]), ("user", [RESULT])], "umu", 0, id="whole"),
        pytest.param(
            [("user", [{"text": "a"}]), ("model", [CALL]), ("user", [RESULT]), ("user", [RESULT])], "umu", 0, id="twice"
        ),
        pytest.param([("user", [{"text": "a"}]), ("model", [CALL])], "umu", 1, id="no result"),
        pytest.param([("user", [{"text": "a"}]), ("user", [RESULT])], "u", 1, id="no call"),
        pytest.param([("user", [{"text": ""}]), ("model", [{"text": "b"}])], "m", 1, id="an empty part"),
        pytest.param(
            [("user", [{"text": "a"}]), ("model", [CALL, CALL]), ("user", [RESULT])], "umu", 1, id="a call twice"
        ),
    ],
)
def test_each_call_is_answered_once(turns: Any, roles: str, told: int) -> None:
    mended = repaired(turns_of(*turns))

    assert "".join(t.role[0] for t in mended.turns) == roles
    assert len(mended.repairs) == told
    assert_paired(mended.turns)


def assert_paired(turns: Any) -> None:
    for at, turn in enumerate(turns):
        asked = [c.get("id") for c in turn.calls]
        if turn.role == "model" and asked:
            assert [r.get("id") for r in turns[at + 1].responses] == asked
        if turn.responses:
            assert turns[at - 1].calls


parts = st.sampled_from(
    [
        {"text": "a"},
        {"text": ""},
        {},
        CALL,
        RESULT,
        {"functionCall": {"name": "ls"}},
        {"functionResponse": {"name": "ls"}},
        {"text": "t", "thought": True},
        {"inlineData": {"data": "x"}},
        {"thoughtSignature": "s", **CALL},
    ]
)


@given(st.lists(st.tuples(st.sampled_from(["user", "model"]), st.lists(parts, max_size=4)), max_size=8))
def test_whatever_the_turns_the_api_would_take_them(turns: Any) -> None:
    mended = repaired(turns_of(*turns))

    assert_paired(mended.turns)
    assert all(part for turn in mended.turns for part in turn.parts)
    assert repaired(mended.turns).repairs == ()


def test_unknown_keys_and_signatures_survive() -> None:
    part = {"text": "x", "thoughtSignature": "c2ln", "next year": [1]}
    message = decode_message({"id": "g", "type": "gemini", "content": [part]})

    assert history([message]).contents() == [{"role": "model", "parts": [part]}]


def test_a_synthetic_id_is_the_same_each_time_and_on_its_answer() -> None:
    talk = turns_of(
        ("model", [{"functionCall": {"name": "ls"}}]), ("user", [{"functionResponse": {"name": "ls", "response": {}}}])
    )

    first, second = repaired(talk).turns, repaired(talk).turns

    assert first == second and first[0].calls[0]["id"] == first[1].responses[0]["id"]


def test_on_the_wire_thoughts_stay_home_and_a_signature_takes_their_place() -> None:
    sent = wire_contents(turns_of(("user", [{"text": "a"}]), ("model", [{"text": "t", "thought": True}, CALL])))

    assert sent[1]["parts"] == [{**CALL, "thoughtSignature": "skip_thought_signature_validator"}]


def test_an_object_that_is_no_part_is_wrapped() -> None:
    message = {
        "id": "g",
        "type": "gemini",
        "content": "",
        "toolCalls": [{"id": "c", "name": "f", "result": {"rows": 3}}],
    }

    *_, answer = client_turns([decode_message(message)])

    assert answer.responses == [{"id": "c", "name": "f", "response": {"output": {"rows": 3}}}]
