"""Gemini over google-genai, against a service on loopback."""

from __future__ import annotations

from typing import Any

import pytest

from gemnb.errors import LlmError, NoKeyError
from gemnb.model.outcome import Outcome
from gemnb.model.records import Tokens
from gemnb.model.turns import Turn
from gemnb.services.answer import Answer
from gemnb.services.genai import GenaiLlm, make_llm
from gemnb.services.tools import declare

KEY = "AIzaSyNotARealKey0000000000000"
USAGE = {
    "promptTokenCount": 9,
    "candidatesTokenCount": 4,
    "cachedContentTokenCount": 3,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 15,
}


def look(table: str, rows: int = 5) -> str:
    """Look at a table."""
    return f"{table} {rows}"


def ask(server: Any, turns: list[Turn] | None = None, **more: Any) -> Answer:
    llm = GenaiLlm("gemini-2.5-flash", api_key=KEY, base_url=server.base_url, retries=1, timeout_s=5)
    answer = Answer()
    for chunk in llm.stream(turns or [Turn.prompt("hi")], **more):
        answer.add(chunk)
    return answer


def test_text_thoughts_and_tokens_arrive(model_server: Any) -> None:
    server = model_server([{"thought": "**Plan** think"}, {"text": "Hello "}, {"text": "世界", "usage": USAGE}])

    answer = ask(server, system="Be kind")

    assert (answer.text, answer.thoughts, answer.outcome) == ("Hello 世界", ["**Plan** think"], Outcome.COMPLETED)
    assert answer.tokens == Tokens(input=9, output=4, cached=3, thoughts=2, tool=0, total=15)
    message = answer.message(id="g", timestamp="t", model="m")
    assert (message.thoughts[0].subject, message.thoughts[0].description) == ("Plan", "think")
    assert server.recent[0]["body"]["systemInstruction"]["parts"][0]["text"] == "Be kind"


def test_calls_signatures_and_answers_go_both_ways(model_server: Any) -> None:
    call = {"functionCall": {"name": "look", "args": {"table": "x"}, "id": "c1"}, "signature": "c2lnbmF0dXJl"}
    server = model_server([call])
    turns = [
        Turn.prompt("hi"),
        Turn(
            "m", "model", ({"functionCall": {"id": "a", "name": "look", "args": {}}, "thoughtSignature": "c2lnbg=="},)
        ),
        Turn("r", "user", ({"functionResponse": {"id": "a", "name": "look", "response": {"output": "日"}}, "odd": 1},)),
    ]

    answer = ask(server, turns, tools=[declare(look)])

    assert answer.parts == [
        {"functionCall": {"id": "c1", "name": "look", "args": {"table": "x"}}, "thoughtSignature": "c2lnbmF0dXJl"}
    ]
    body = server.recent[0]["body"]
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "c2lnbg=="
    assert body["contents"][2]["parts"][0] == {
        "functionResponse": {"id": "a", "name": "look", "response": {"output": "日"}}
    }
    assert body["tools"][0]["functionDeclarations"][0]["name"] == "look"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ([{"text": "a", "finishReason": "MAX_TOKENS"}], Outcome.MAX_TOKENS),
        ([{"no_content": True, "finishReason": "SAFETY"}], Outcome.SAFETY),
        ([{"text": "a", "finishReason": "RECITATION"}], Outcome.RECITATION),
        ([{"block": "SAFETY"}], Outcome.BLOCKED),
        ([{"no_content": True, "finishReason": "MALFORMED_FUNCTION_CALL"}], Outcome.ERROR),
    ],
)
def test_endings_are_told_apart(model_server: Any, reply: Any, outcome: Outcome) -> None:
    assert ask(model_server(reply)).outcome is outcome


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ([{"status": 400, "message": f"API key not valid: {KEY}"}], "400 INVALID_ARGUMENT"),
        ([{"status": 404, "message": "no such model"}], "may be no model 'gemini-2.5-flash'"),
        ([{"status": 429, "message": "slow down"}], "quota"),
        ([{"status": 500, "message": "oops"}], "500 INTERNAL"),
        ([{"status": 503, "message": "overloaded"}], "503 UNAVAILABLE"),
        ([{"text": "a"}, {"drop": "reset"}], "could not be reached"),
    ],
)
def test_a_failing_service_is_told_without_the_key(model_server: Any, reply: Any, words: str) -> None:
    with pytest.raises(LlmError, match=words) as told:
        ask(model_server(reply))
    assert KEY not in str(told.value) and told.value.__cause__ is None


def test_a_stand_in_for_a_key_leaves_words_whole(model_server: Any) -> None:
    server = model_server([{"status": 429, "message": "You exceeded your next quota"}])

    with pytest.raises(LlmError, match="exceeded your next quota"):
        list(GenaiLlm(api_key="x", base_url=server.base_url, retries=1).stream([Turn.prompt("Hello")]))


def test_a_service_that_is_not_there_is_told() -> None:
    llm = GenaiLlm(api_key=KEY, base_url="http://127.0.0.1:9", retries=1, timeout_s=2)

    with pytest.raises(LlmError, match="could not be reached"):
        list(llm.stream([Turn.prompt("hi")]))


def test_leaving_a_slow_answer_closes_it(model_server: Any) -> None:
    server = model_server([{"text": "a", "delay_ms": 1}, {"text": "b", "delay_ms": 30_000}])
    llm = GenaiLlm(api_key=KEY, base_url=server.base_url, retries=1)

    stream = llm.stream([Turn.prompt("hi")])
    assert next(stream).text == "a"
    stream.close()  # type: ignore[attr-defined]


def test_an_overloaded_service_is_asked_again(model_server: Any) -> None:
    server = model_server([{"status": 503, "message": "busy"}], [{"text": "Now."}])
    llm = GenaiLlm(api_key=KEY, base_url=server.base_url, retries=2)

    assert "".join(chunk.text for chunk in llm.stream([Turn.prompt("hi")])) == "Now."


def test_the_key_is_in_no_repr() -> None:
    assert KEY not in repr(GenaiLlm(api_key=KEY))


@pytest.mark.parametrize("environ", [{}, {"GEMINI_API_KEY": ""}])
def test_no_key_is_one_sentence(environ: dict[str, str]) -> None:
    with pytest.raises(NoKeyError, match="set GEMINI_API_KEY") as told:
        make_llm(None, environ=environ)
    assert told.value.code == "NO_API_KEY"


def test_the_environment_chooses_the_model() -> None:
    assert make_llm(None, environ={"GEMINI_API_KEY": KEY}).name == "gemini-2.5-pro"
    assert make_llm("gemini-x", environ={"GEMINI_API_KEY": KEY}).name == "gemini-x"
    assert make_llm(None, environ={"GEMNB_LLM": "scripted"}).name == "scripted"


def test_a_damaged_signature_is_left_behind(model_server: Any) -> None:
    server = model_server([{"text": "Yes."}])
    said = {"text": "a", "thoughtSignature": "!!"}

    ask(server, [Turn.prompt("hi"), Turn(id="m", role="model", parts=(said,)), Turn.prompt("on")])

    assert server.recent[-1]["body"]["contents"][1]["parts"] == [{"text": "a"}]


@pytest.mark.parametrize("part", [{"text": 5}, {"functionCall": {"name": 5}}, {"inlineData": {"data": "@"}}])
def test_a_part_that_no_service_takes_is_told(model_server: Any, part: Any) -> None:
    with pytest.raises(LlmError, match="holds a part"):
        ask(model_server([{"text": "Yes."}]), [Turn(id="u", role="user", parts=(part,))])


def test_a_half_character_is_sent_as_a_whole_one(model_server: Any) -> None:
    server = model_server([{"text": "Yes."}])

    ask(server, [Turn.prompt("half \ud83d")])

    assert server.recent[-1]["body"]["contents"][0]["parts"] == [{"text": "half \ufffd"}]
