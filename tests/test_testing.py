"""The scripted model: answers from its script, keeps what it was asked."""

from __future__ import annotations

import doctest

import pytest

import gemnb.model.shown
import gemnb.model.talk
import gemnb.model.turns
import gemnb.testing
from gemnb.errors import LlmError
from gemnb.model.turns import Turn
from gemnb.services.answer import Answer
from gemnb.testing import ScriptedLlm


@pytest.mark.parametrize(
    "module", [gemnb.testing, gemnb.model.turns, gemnb.model.shown, gemnb.model.talk], ids=lambda m: m.__name__
)
def test_examples_in_docstrings_run(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]

    assert result.attempted and not result.failed


def gathered(llm: ScriptedLlm) -> Answer:
    answer = Answer()
    for chunk in llm.stream([Turn.prompt("hi")]):
        answer.add(chunk)
    return answer


def test_it_streams_in_pieces() -> None:
    assert len(list(ScriptedLlm("x" * 100).stream([]))) > 3


def test_every_form_of_a_reply_is_taken() -> None:
    parts = [{"text": "a"}, {"functionCall": {"name": "f", "args": {}}}]
    llm = ScriptedLlm(
        "t", parts, {"parts": [], "finish": "SAFETY", "usage": {"promptTokenCount": 7}}, lambda turns: turns[0].text
    )

    assert gathered(llm).text == "t"
    assert gathered(llm).parts == parts
    withheld = gathered(llm)
    assert withheld.outcome == "safety" and withheld.tokens and withheld.tokens.input == 7
    assert gathered(llm).text == "hi"


def test_a_script_that_has_run_out_says_so() -> None:
    with pytest.raises(LlmError, match="no reply left"):
        list(ScriptedLlm().stream([]))
    assert gathered(ScriptedLlm(default="again")).text == "again"
