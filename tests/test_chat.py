"""Talking: recorded as it happens, in the client's form; outcomes told apart; a history that is accepted next time."""

from __future__ import annotations

import json
import resource
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import NOW, SID, TALK, gemini, header, to_bytes, user
from test_projection import assert_paired

import gemnb
from gemnb.errors import GemnbWarning, LlmError, NoKeyError, PromptError, TurnLimitError
from gemnb.services.chat import Cancelled
from gemnb.store.replay import read_session
from gemnb.testing import ScriptedLlm

Write = Callable[..., Path]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def kind(line: dict[str, Any]) -> str:
    if "$set" in line:
        return "messages" if "messages" in line["$set"] else "set"
    return str(line.get("type") or ("rewind" if "$rewindTo" in line else "header"))


@pytest.fixture
def file(home: Path) -> Callable[[], Path]:
    return lambda: next((home / ".gemini/tmp/app/chats").iterdir())


def count(table: str) -> str:
    """Count the rows of a table."""
    return f"{table}: 42"


def broken(table: str) -> str:
    """Fail."""
    raise ValueError(f"no {table}")


CALL = {"functionCall": {"id": "c1", "name": "count", "args": {"table": "rivers"}}, "thoughtSignature": "c2ln"}


def test_a_new_talk_is_written_as_the_client_writes_it(ws: gemnb.Workspace, llm: ScriptedLlm, file: Any) -> None:
    llm._replies = ["Forty-two."]

    reply = ws.new_chat().send("How many?")

    assert (reply.text, reply.outcome) == ("Forty-two.", "completed")
    written = lines(file())
    assert [kind(line) for line in written] == ["header", "messages", "user", "set", "gemini", "set"]
    assert written[0]["kind"] == "main" and written[4]["content"] == [{"text": "Forty-two."}]
    assert file().stat().st_mode & 0o777 == 0o600
    assert file().name == f"session-2026-05-20T12-00-{written[0]['sessionId'][:8]}.jsonl"


def test_nothing_is_on_disk_before_the_first_prompt(ws: gemnb.Workspace, home: Path) -> None:
    ws.new_chat()

    assert not (home / ".gemini").exists()


def test_the_prompt_is_on_disk_before_the_network_is_touched(ws: gemnb.Workspace, llm: ScriptedLlm, file: Any) -> None:
    seen = []
    llm._replies = [lambda turns: seen.append(lines(file())[-2]["content"]) or "Yes."]

    ws.new_chat().send("Now?")

    assert seen == [[{"text": "Now?"}]]


def test_a_resume_appends_to_its_file_alone(ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    before = path.read_bytes()
    llm._replies = ["Gladly."]

    ws.resume("latest").send("Go on")

    assert path.read_bytes().startswith(before) and len(list(path.parent.iterdir())) == 1
    assert [m.text for m in ws.load("1").messages][2:] == ["Go on", "Gladly."]
    assert [t.text for t in llm.asked[0]][1:] == ["How many rivers are in the table?", "There are forty-two.", "Go on"]


@pytest.mark.parametrize("tail", [b"", b'{"id":"torn', b"\0\0\0"])
def test_a_missing_newline_is_closed_first(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write, tail: bytes
) -> None:
    path = write_session(to_bytes(header(), *TALK)[:-1] if not tail else to_bytes(header(), *TALK) + tail)
    llm._replies = ["Gladly."]

    ws.resume("latest").send("Go on")

    assert [m.text for m in read_session(path).messages][-3:] == ["There are forty-two.", "Go on", "Gladly."]


def test_tool_calls_are_run_recorded_and_sent_back(ws: gemnb.Workspace, llm: ScriptedLlm, file: Any) -> None:
    llm._replies = [[{"text": "Let me see."}, CALL], "Forty-two."]
    chat = ws.new_chat()
    chat.tools = [count]

    reply = chat.send("How many?")

    assert reply.text == "Forty-two." and [c.status for c in reply.tool_calls] == ["success"]
    assert [kind(line) for line in lines(file())][2:] == [
        "user",
        "set",
        "gemini",
        "set",
        "gemini",
        "set",
        "gemini",
        "set",
    ]
    told = lines(file())[6]
    assert told["id"] == lines(file())[4]["id"] and told["content"][1] == CALL
    assert told["toolCalls"][0]["result"][0]["functionResponse"]["response"] == {"output": "rivers: 42"}
    assert_paired(llm.asked[1])


@pytest.mark.parametrize(
    ("tools", "call", "error"),
    [
        pytest.param([broken], {"name": "broken", "args": {"table": "x"}}, "ValueError: no x", id="it raises"),
        pytest.param([count], {"name": "count", "args": {"wrong": 1}}, "argument", id="wrong arguments"),
        pytest.param([count], {"name": "nothing", "args": {}}, "no tool", id="unknown tool"),
    ],
)
def test_a_call_that_fails_is_told_to_the_model(
    ws: gemnb.Workspace, llm: ScriptedLlm, tools: Any, call: Any, error: str
) -> None:
    llm._replies = [[{"functionCall": call}], "I see."]
    chat = ws.new_chat()
    chat.tools = tools

    reply = chat.send("Try")

    assert reply.outcome == "completed" and reply.tool_calls[0].status == "error"
    assert error in llm.asked[1][-1].responses[0]["response"]["error"]


def test_a_call_can_be_refused(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._replies = [[CALL], "Never asked."]
    chat = ws.new_chat()
    chat.tools = [count]
    chat.approve = lambda call: call.name != "count"

    reply = chat.send("How many?")

    assert reply.outcome == "refused" and reply.tool_calls[0].status == "cancelled"
    llm._replies = ["Fine."]
    assert chat.send("Without it, then").outcome == "completed"
    assert_paired(llm.asked[-1])


def test_tools_that_never_end_reach_a_limit(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._default = [CALL]
    chat = ws.new_chat()
    chat.tools, chat.max_rounds = [count], 3

    assert chat.send("Loop").outcome == "turn_limit" and len(llm.asked) == 3


@pytest.mark.parametrize(
    ("reply", "outcome", "text"),
    [
        pytest.param(
            {"parts": [{"text": "It begins"}], "finish": "MAX_TOKENS"}, "max_tokens", "It begins", id="cut off"
        ),
        pytest.param({"parts": [], "finish": "SAFETY"}, "safety", "", id="withheld"),
        pytest.param({"parts": [{"text": "x"}], "finish": "RECITATION"}, "recitation", "x", id="recitation"),
        pytest.param({"parts": [], "blocked": "SAFETY"}, "blocked", "", id="blocked"),
        pytest.param({"parts": [], "finish": "MALFORMED_FUNCTION_CALL"}, "error", "", id="malformed call"),
        pytest.param({"parts": []}, "error", "", id="nothing at all"),
        pytest.param(LlmError("503"), "error", "", id="the service fails"),
        pytest.param(ConnectionError("gone"), "error", "", id="the network fails"),
    ],
)
def test_outcomes_are_told_apart_and_the_next_prompt_is_accepted(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write, reply: Any, outcome: str, text: str
) -> None:
    path = write_session(header(), *TALK)
    llm._replies = [reply, "Gladly."]
    chat = ws.resume("1")

    told = chat.send("Tell all")

    assert (told.outcome, told.text) == (outcome, text) and told.error
    assert [m.type for m in read_session(path).messages][-1] in ("info", "error")
    assert chat.send("Again").text == "Gladly."
    assert_paired(llm.asked[-1])
    assert "Tell all" in [p["text"] for p in chat.contents()[-2]["parts"] if "text" in p] + [
        t.text for t in llm.asked[-1]
    ]


def test_an_interrupt_keeps_what_had_come(ws: gemnb.Workspace, llm: ScriptedLlm, file: Any) -> None:
    class Stopped(ScriptedLlm):
        def stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from list(ScriptedLlm("A beginning and more of it.").stream(*args))[:1]
            raise KeyboardInterrupt

    ws.llm = Stopped()
    chat = ws.new_chat()

    with pytest.raises(Cancelled) as stop:
        chat.send("Tell")

    assert (
        stop.value.reply.text == "A beginning and more of "
        and chat.last_reply
        and chat.last_reply.outcome == "cancelled"
    )
    assert [m["type"] for m in lines(file()) if "type" in m] == ["user", "gemini", "info"]
    assert stop.value._render_traceback_() == [
        "Cancelled: The answer was stopped before it was complete. What had come is kept."
    ]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_after_a_call_that_was_stopped_no_other_runs_and_each_is_answered(
    ws: gemnb.Workspace, llm: ScriptedLlm, raised: type[BaseException]
) -> None:
    ran: list[str] = []

    def stop(table: str) -> str:
        ran.append(table)
        raise raised

    other = {"functionCall": {"id": "c2", "name": "stop", "args": {"table": "b"}}}
    llm._replies = [[{"functionCall": {"id": "c1", "name": "stop", "args": {"table": "a"}}}, other], "Fine."]
    chat = ws.new_chat()
    chat.tools = [stop]

    with pytest.raises(Cancelled if raised is KeyboardInterrupt else raised):
        chat.send("Run")

    assert ran == ["a"]
    assert [c.status for m in chat.messages for c in m.tool_calls][1:] == ["cancelled"]
    chat.send("Go on")
    assert_paired(llm.asked[-1])


def test_leaving_a_stream_is_a_cancel(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._replies = ["A long answer that nobody waits for to the end."]
    chat = ws.new_chat()

    stream = chat.stream("Tell")
    next(stream)
    stream.close()

    assert chat.last_reply and chat.last_reply.outcome == "cancelled"


def test_an_answer_that_nobody_reads_on_stands_before_the_next_prompt(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._replies = ["A long answer that is left open.", "Fine."]
    chat = ws.new_chat()

    left = chat.stream("Tell")
    next(left)
    assert chat.last_reply is None
    chat.send("Again")

    assert [m.type for m in chat.messages if m.type != "user" or m.text in ("Tell", "Again")][-5:] == [
        "user",
        "gemini",
        "info",
        "user",
        "gemini",
    ]
    assert list(left) == []


def test_a_bug_in_a_model_is_not_swallowed_but_noted(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._replies = [ZeroDivisionError("oops"), "Fine."]
    chat = ws.new_chat()

    with pytest.raises(ZeroDivisionError):
        chat.send("Tell")
    assert chat.messages[-1].type == "error" and chat.send("Again").text == "Fine."


def test_the_turn_limit_of_the_settings_holds(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    path = write_session(header(), *TALK)
    (home / ".gemini/settings.json").write_text('{"model": {"maxSessionTurns": 1}}')
    before = path.read_bytes()

    with pytest.raises(TurnLimitError, match=r"settings\.json"):
        ws.resume("1").send("One more")
    assert path.read_bytes() == before


def test_without_a_key_nothing_is_recorded(home: Path, root: Path) -> None:
    chat = gemnb.open_workspace(root, home=home, environ={}).new_chat()

    with pytest.raises(NoKeyError, match="GEMINI_API_KEY"):
        chat.send("Hello")
    assert len(chat.messages) == 1 and not home.exists()


def test_what_another_wrote_is_folded_in_and_said(ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    llm._replies = ["From here."]
    chat = ws.resume("1")
    with path.open("ab") as other:
        other.write(to_bytes(user("u8", "From the terminal"), gemini("g8", "Terminal answer")))

    with pytest.warns(GemnbWarning, match="2 new messages"):
        chat.send("From the notebook")

    assert [m.text for m in chat.messages][2:4] == ["From the terminal", "Terminal answer"]
    assert [m.text for m in read_session(path).messages] == [m.text for m in chat.messages]


def test_what_another_wrote_during_an_answer_is_folded_in_too(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write
) -> None:
    path = write_session(header(), *TALK)
    chat = ws.resume("1")

    def meanwhile(turns: Any) -> str:
        with path.open("ab") as other:
            other.write(to_bytes(user("u8", "From the terminal"), gemini("g8", "Terminal answer")))
        return "From here."

    llm._replies = [meanwhile]
    with pytest.warns(GemnbWarning, match="2 new messages"):
        chat.send("From the notebook")

    assert [m.text for m in chat.messages] == [m.text for m in read_session(path).messages]
    assert [m.text for m in chat.messages][2:] == [
        "From the notebook",
        "From the terminal",
        "Terminal answer",
        "From here.",
    ]


def test_two_chats_on_one_session_lose_nothing(home: Path, root: Path, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    one, two = (
        gemnb.open_workspace(root, home=home, llm=ScriptedLlm(default=f"from {n}"), clock=lambda: NOW).resume("1")
        for n in "ab"
    )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(3):
            one.send(f"one {turn}")
            two.send(f"two {turn}")

    texts = [m.text for m in read_session(path).messages]
    assert [t for t in texts if t.startswith(("one", "two"))] == [f"{w} {n}" for n in range(3) for w in ("one", "two")]
    assert texts == [m.text for m in two.messages]


@pytest.fixture
def full_disk() -> Iterator[Callable[[int | None], None]]:
    """A disk that is full where a file would grow past a size."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

    def fill(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    import signal

    held = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield fill
    fill(None)
    signal.signal(signal.SIGXFSZ, held)


@pytest.mark.parametrize("slack", [0, 1, 12, 200, 330])
def test_a_full_disk_stops_no_talk_and_loses_no_record(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write, full_disk: Any, slack: int
) -> None:
    path = write_session(header(), *TALK, {"id": "p", "type": "info", "content": "x" * 40_000})
    before = path.read_bytes()
    llm._replies = ["Heard one.", "Heard two."]
    chat = ws.resume("1")
    full_disk(len(before) + slack)

    with pytest.warns(GemnbWarning, match="Nothing is being saved since"):
        reply = chat.send("First")

    assert reply.outcome == "completed" and not chat.recording.active and chat.recording.unsaved
    assert path.read_bytes().startswith(before)
    full_disk(None)
    chat.send("Second")
    assert chat.recording.active and chat.recording.unsaved == 0
    assert [m.text for m in read_session(path).messages][3:] == ["First", "Heard one.", "Second", "Heard two."]


def test_no_half_of_a_new_file_is_left_behind(
    ws: gemnb.Workspace, llm: ScriptedLlm, home: Path, full_disk: Any
) -> None:
    llm._default = "Heard."
    chat = ws.new_chat()
    full_disk(60)
    with pytest.warns(GemnbWarning, match="Nothing is being saved"):
        chat.send("First")
    assert list((home / ".gemini/tmp").rglob("session-*")) == []

    full_disk(None)
    chat.send("Second")

    (path,) = (home / ".gemini/tmp").rglob("session-*")
    assert [m.text for m in read_session(path).messages][1:] == ["First", "Heard.", "Second", "Heard."]


def test_a_folder_that_vanished_is_made_again_with_the_whole_talk(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write
) -> None:
    path = write_session(header(), *TALK)
    chat = ws.resume("1")
    path.unlink()
    path.parent.rmdir()
    llm._replies = ["I am."]

    assert chat.send("There?").text == "I am."

    assert [m.text for m in read_session(path).messages] == [m.text for m in chat.messages]
    assert [m.text for m in chat.messages][-2:] == ["There?", "I am."]


def test_a_folder_that_cannot_be_made_turns_recording_off(
    ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write
) -> None:
    path = write_session(header(), *TALK)
    chat = ws.resume("1")
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("in the way")
    llm._replies = ["I am."]

    with pytest.warns(GemnbWarning, match="Nothing is being saved"):
        reply = chat.send("There?")

    assert reply.outcome == "completed" and not chat.recording.active


def test_an_older_file_is_carried_over_and_kept(ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write) -> None:
    old = json.dumps({**header(), "messages": TALK}, indent=2).encode()
    path = write_session(old, name="session-2026-05-01T10-00-aa11bb22.json")
    llm._replies = ["Gladly."]

    ws.resume("1").send("Go on")

    assert path.read_bytes() == old
    (row,) = ws.sessions()
    assert row.path == path.with_suffix(".jsonl") and row.message_count == 4
    assert ws.load(SID).usage["g1"].tokens


def test_a_fork_leaves_its_source(ws: gemnb.Workspace, llm: ScriptedLlm, write_session: Write) -> None:
    path = write_session(header(summary="The rivers"), *TALK)
    before = path.read_bytes()
    llm._replies = ["Sure."]

    chat = ws.resume("1", fork=True)
    chat.send("Another way")

    assert path.read_bytes() == before and chat.session_id != SID and len(ws.sessions()) == 2
    assert next(m.text for m in ws.load(chat.session_id).messages) == "How many rivers are in the table?"


def test_a_new_id_shares_no_eight_characters(ws: gemnb.Workspace, write_session: Write, monkeypatch: Any) -> None:
    import uuid

    write_session(header(), *TALK)
    ws.inject = False  # else an id is drawn for a message, too
    drawn = iter([SID, "ff000000-0000-4000-8000-000000000000"])
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(next(drawn)))

    assert ws.new_chat().session_id.startswith("ff000000") and next(drawn, None) is None


def test_resuming_the_current_session_is_the_same_chat(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)

    assert ws.resume("1") is ws.resume("latest") is ws.chat


def test_latest_without_sessions_warns_and_starts_anew(ws: gemnb.Workspace) -> None:
    with pytest.warns(GemnbWarning, match="new one was started"):
        assert ws.resume("latest").messages


def test_file_handles_stay_few(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._default = "Yes."
    chat = ws.new_chat()
    chat.send("a")
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        chat.send("b")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("odd", ["many", -3, 10**400, None], ids=["a word", "negative", "400 digits", "none"])
def test_a_count_of_tokens_that_is_none_is_unknown(ws: gemnb.Workspace, llm: ScriptedLlm, file: Any, odd: Any) -> None:
    usage = {"input": odd, "output": 2, "total": 5}
    llm._replies = [{"parts": [CALL], "usage": usage}, {"parts": "42", "usage": {"input": 4, "output": 1, "total": 5}}]
    chat = ws.new_chat()
    chat.tools = [count]

    reply = chat.send("How many?")

    assert reply.tokens and (reply.tokens.input, reply.tokens.output, reply.tokens.total) == (4, 3, 10)
    assert gemnb.usage_df(ws, by="kind").loc[0, ["input", "output", "total"]].to_list() == [4, 3, 10]
    assert gemnb.usage_df(read_session(file()), by="kind")["unpriced"].to_list() == [2]


def test_a_kind_of_token_that_no_answer_told_is_unknown(ws: gemnb.Workspace, llm: ScriptedLlm) -> None:
    llm._replies = [{"parts": "42", "usage": {"input": "many"}}]

    reply = ws.new_chat().send("How many?")

    assert reply.tokens and reply.tokens.input is None


@pytest.mark.parametrize("text", [5, None, ["a"], b"a"], ids=str)
def test_a_prompt_that_is_no_text_is_an_error_before_anything_is_written(
    ws: gemnb.Workspace, llm: ScriptedLlm, home: Path, text: Any
) -> None:
    chat = ws.new_chat()
    before = chat.messages

    for send in (chat.send, chat.stream):
        with pytest.raises(PromptError, match="A prompt is a text"):
            send(text)

    assert chat.messages == before and not llm.asked and not (home / ".gemini").exists()


@pytest.mark.parametrize("raised", [SystemExit(3), GeneratorExit(), ValueError("no")], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("where", ["tool", "approve"])
def test_what_is_raised_through_a_call_costs_no_result(
    ws: gemnb.Workspace, llm: ScriptedLlm, file: Any, raised: BaseException, where: str
) -> None:
    llm._replies = [[CALL, {"functionCall": {"id": "c2", "name": "leave", "args": {}}}, CALL | {"id": "c3"}], "Aye."]
    chat = ws.new_chat()

    def leave() -> str:
        """Leave."""
        if where == "tool":
            raise raised
        return "here"

    def approve(call: Any) -> bool:
        if where == "approve" and call.name == "leave":
            raise raised
        return True

    chat.tools = [count, leave]
    chat.approve = approve

    if where == "tool" and isinstance(raised, Exception):  # the model is told
        assert chat.send("Go.").text == "Aye."
    else:
        with pytest.raises(type(raised)):
            chat.send("Go.")

    calls = next(m for m in read_session(file()).messages if m.tool_calls).tool_calls
    assert calls[0].status == "success" and "rivers: 42" in str(calls[0].result)
    assert calls[1].status == "error" and type(raised).__name__ in str(calls[1].result)
    assert len(calls) == 3
    llm._replies = ["Yes."]
    assert chat.send("And now?").text == "Yes."
    assert_paired(llm.asked[-1])
