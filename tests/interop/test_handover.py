"""A session goes from the client to gemnb and back, and again: nothing lost, nothing doubled, the same on the wire."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client import Client, plain
from talker import Talker

import gemnb
from gemnb.model.turns import wire_contents
from gemnb.services.chat import Cancelled
from gemnb.services.genai import GenaiLlm
from gemnb.store.replay import read_session

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]

ROUTER = '{"reasoning": "x", "next_speaker": "user", "model_choice": "pro", "complexity_score": 50}'
RULES = {
    "rules": [
        {"when": {"json": True}, "reply": [{"text": ROUTER}]},
        {
            "when": {"has_tools": True, "last_user": "Read the rivers", "tool_response": False},
            "reply": [
                {"thought": "**Look** I read it."},
                {"text": "Let me look."},
                {
                    "functionCall": {"name": "read_file", "args": {"file_path": "rivers.csv"}, "id": "r1"},
                    "signature": "c2lnbg==",
                },
            ],
        },
        {"when": {"tool_response": "read_file"}, "reply": [{"text": "The file holds 長江 and the Rhine."}]},
        {
            "when": {"has_tools": True, "last_user": "数えて", "tool_response": False},
            "reply": [
                {"functionCall": {"name": "count_rows", "args": {"table": "川"}, "id": "c1"}, "signature": "c2lnMg=="},
            ],
        },
        {"when": {"tool_response": "count_rows"}, "reply": [{"text": "二行です。"}]},
        {
            "when": {"has_tools": True, "last_user": "very slowly"},
            "reply": [{"text": "It begins"}, {"text": " and goes on", "delay_ms": 20_000}],
        },
        {"when": {"has_tools": True, "last_user": "third"}, "reply": [{"text": "Third answer 🌊."}]},
        {"when": {"has_tools": True, "last_user": "last"}, "reply": [{"text": "Last answer."}]},
    ],
    "default": [{"text": "Rivers"}],
}


def count_rows(table: str) -> str:
    """Count the rows of a table."""
    return f"{table}: 2"


def ours(ws: gemnb.Workspace) -> list[dict[str, Any]]:
    """What we would send of the one session, as the client's requests are compared."""
    return plain(wire_contents(ws.history("1").turns))


def test_five_handovers(real_client: Callable[..., Client], root: Path, home: Path) -> None:
    client = real_client(RULES)
    (root / "rivers.csv").write_text("長江\nRhine\n")
    ws = gemnb.open_workspace(
        root, home=home, llm=GenaiLlm("gemini-2.5-pro", api_key="x", base_url=client.server.base_url)
    )

    def same_list() -> str:
        """Both list the one session under the same number; its id."""
        (row,) = ws.sessions()
        assert [(n, id) for n, _, id in client.sessions()] == [(1, row.id)]
        assert row.state in ("ok", "at_risk")
        return row.id

    client.prompt("Read the rivers")  # 1: begun in the terminal, with a tool of its own
    id = same_list()

    chat = ws.resume("latest")  # 2: on in the notebook, with a tool of ours
    chat.tools = [count_rows]
    assert chat.send("数えて").text == "二行です。"
    assert same_list() == id
    before = ours(ws)

    client.prompt("third", resume="1")  # 3: back in the terminal
    assert plain(client.requests()[-1]) == [*before, {"role": "user", "parts": [{"text": "third"}]}]
    assert same_list() == id

    stream = chat.stream("Tell it very slowly")  # 4: in the notebook again, stopped in mid-answer
    assert next(stream).text == "It begins"
    with pytest.raises((Cancelled, KeyboardInterrupt)):
        stream.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert same_list() == id
    assert [m.text for m in ws.load("1").messages if m.type == "user" and m.text][-1] == "Tell it very slowly"
    before = ours(ws)

    client.prompt("the last one", resume=id)  # 5: and the terminal goes on from there
    assert plain(client.requests()[-1]) == [*before, {"role": "user", "parts": [{"text": "the last one"}]}]
    assert same_list() == id

    final = ws.resume("1")  # 6: everything is there, once
    final.sync()
    texts = [m.text for m in final.messages if m.type in ("user", "gemini") and m.text.strip()]
    said = [
        "Read the rivers",
        "Let me look.",
        "The file holds 長江 and the Rhine.",
        "数えて",
        "二行です。",
        "third",
        "Third answer 🌊.",
        "Tell it very slowly",
        "It begins",
        "the last one",
        "Last answer.",
    ]
    assert [t for t in texts if not t.startswith("<session_context>")] == said
    assert len(ws.load("1").usage) >= 6


def test_two_kernels_and_the_terminal_on_one_session_hide_no_turn(
    real_client: Callable[..., Client], root: Path, home: Path
) -> None:
    client = real_client(RULES)
    client.prompt("third")
    (row,) = gemnb.open_workspace(root, home=home).sessions()
    kernels = [Talker(root, home, row.id, name) for name in ("one", "two")]
    for kernel in kernels:
        kernel.wait()

    client.prompt("the last one", resume=row.id)
    told = [kernel.end() for kernel in kernels]
    client.prompt("third", resume=row.id)

    session = read_session(row.path)
    said = [prompt for kernel in told for prompt in kernel["said"]] + ["third", "the last one", "third"]
    asked = [m.text for m in session.messages if m.type == "user" and not m.text.startswith("<session_context>")]
    assert not session.damage and sorted(asked) == sorted(said)
    sent = [part.get("text") for content in plain(client.requests()[-1]) for part in content["parts"]]
    assert set(said) <= set(sent)
    assert all(any("--fork" in words for words in kernel["warned"]) for kernel in told)


def test_a_session_begun_here_goes_on_in_the_terminal(
    real_client: Callable[..., Client], root: Path, home: Path
) -> None:
    client = real_client(RULES)
    ws = gemnb.open_workspace(
        root, home=home, llm=GenaiLlm("gemini-2.5-pro", api_key="x", base_url=client.server.base_url)
    )
    chat = ws.new_chat()
    chat.tools = [count_rows]
    chat.send("数えて")
    before = ours(ws)

    client.prompt("third", resume="latest")

    assert plain(client.requests()[-1]) == [*before, {"role": "user", "parts": [{"text": "third"}]}]
    assert chat.session_id in {id for _, _, id in client.sessions()}
