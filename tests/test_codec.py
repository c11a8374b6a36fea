"""What is not understood survives: decode, then encode, gives the record back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemnb.model.records import Tokens
from gemnb.store.codec import decode_header, decode_message, encode_header, encode_message

values = st.none() | st.text(max_size=5) | st.integers() | st.booleans() | st.floats(allow_nan=False)
odd = values | st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=4), values, max_size=2)
KEYS = ["timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls", "new key"]
calls = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("id", "name", "args", "result", "status", "x"), odd)), max_size=2
)
records = st.fixed_dictionaries(
    {"id": st.text(max_size=5)}, optional=dict.fromkeys(KEYS, odd) | {"toolCalls": calls | odd, "thoughts": calls}
)


@given(records)
def test_a_message_survives(record: dict[str, Any]) -> None:
    assert encode_message(decode_message(record)) == record


@given(
    st.fixed_dictionaries(
        {"sessionId": st.text()}, optional=dict.fromkeys(("kind", "summary", "directories", "y"), odd)
    )
)
def test_a_header_survives(record: dict[str, Any]) -> None:
    assert encode_header(decode_header(record)) == record | {"kind": record.get("kind", "main")} | {
        "projectHash": record.get("projectHash", "")
    }


@pytest.mark.parametrize(
    ("told", "read"),
    [
        pytest.param(7, 7, id="a whole number"),
        pytest.param(7.0, 7, id="a whole number written with a point"),
        pytest.param(7.5, None, id="no whole number"),
        pytest.param("7", None, id="a text"),
        pytest.param(True, None, id="a truth value"),
        pytest.param(None, None, id="null"),
    ],
)
def test_odd_token_counts_are_unknown(told: object, read: int | None) -> None:
    assert decode_message({"id": "g", "tokens": {"input": told}}).tokens == Tokens(input=read)
