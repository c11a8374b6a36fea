"""What a ledger tells is what was spent: as the client counted it, as our recorder wrote it, however it is summed."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import NOW, TOKENS, gemini

import gemnb
from gemnb.errors import GemnbError
from gemnb.frames.usage import KEYS
from gemnb.model.records import Header, text_of
from gemnb.model.session import Session
from gemnb.store.codec import decode_message, decode_tokens
from gemnb.store.replay import read_fold
from gemnb.testing import ScriptedLlm
from gemnb.workspace import Workspace

CLIENTS = {"prompt": "input", "candidates": "output"} | {k: k for k in ("cached", "thoughts", "tool", "total")}
"""What the client's statistics call each count."""
SESSION_ID = re.compile(r'"session_id": "([^"]+)"')


NOT_KEPT = {
    ("api-errors", 2): "an answer withheld for safety, asked for four times",
    ("api-errors", 4): "a prompt that was blocked, four times",
    ("api-errors", 7): "four answers of thoughts alone",
    ("api-errors", 8): "four answers without a finish reason",
}
"""Commands of a case of which the client kept no answer: it counted them, and no line of any file tells of them."""
COMMANDS = 82
"""Commands of the corpus that printed statistics."""


def told_by_client(case: Path) -> Iterator[tuple[int, str | None, str, dict[str, Counter[str]]]]:
    """Each command that printed statistics: its number, session (where it is told), prompt, and tokens by role."""
    for line in (case / "steps.jsonl").read_text("utf-8").strip("\n").split("\n"):
        step = json.loads(line)
        printed = step.get("stdout") or ""
        at = printed.find('"stats": {')
        if at < 0:
            continue
        models = json.JSONDecoder().raw_decode(printed, at + len('"stats": '))[0]["models"]
        roles: dict[str, Counter[str]] = defaultdict(Counter)
        for model in models.values():
            for role, one in model["roles"].items():
                roles[role].update({name: one["tokens"][told] for told, name in CLIENTS.items()})
                roles[role]["answers"] += one["totalRequests"] - one["totalErrors"]
        named = SESSION_ID.search(printed)
        yield step["step"], named and named[1], step["argv"][step["argv"].index("-p") + 1], roles


def spent_by_prompt(paths: Iterable[Path]) -> dict[str, list[Counter[str]]]:
    """What the ledger of one session, in all its files, has after each prompt, in order."""
    known: dict[str, Any] = {}
    for path in paths:
        for id, line in read_fold(path).known.items():
            if id not in known or (line.tokens and not known[id].tokens):
                known[id] = line
    found: dict[str, list[Counter[str]]] = defaultdict(list)
    spent: Counter[str] = Counter()
    for line in known.values():
        if line.type == "user" and text_of(line.content):
            spent = Counter()
            found[text_of(line.content)].append(spent)
        elif tokens := decode_tokens(line.tokens):
            spent.update({name: getattr(tokens, name) or 0 for name in CLIENTS.values()})
            spent["answers"] += 1
    return found


def files_by_session(case: Path) -> dict[str, list[Path]]:
    """The files of each session of a case: those of the store at the end, then those of the store before a command."""
    found: dict[str, list[Path]] = defaultdict(list)
    for top in ("home", "snapshots"):
        for path in sorted((case / top).glob("**/chats/**/*.json*")):
            id = read_fold(path).meta.get("session_id")
            if id:
                found[id].append(path)
    return found


def test_a_ledger_has_what_the_client_counted_at_each_command(shared: Path) -> None:
    """Counts and number of answers after each prompt: most have one answer, those with tools one for each round.

    Where it cannot be: see `NOT_KEPT`; summaries and titles (`utility_*`) are no messages, so they are in no ledger;
    commands at the terminal's screen, and those that were killed, printed no statistics.
    """
    compared = 0
    for case in sorted(path.parent for path in (shared / "corpus").glob("*/steps.jsonl")):
        ledgers = {id: spent_by_prompt(paths) for id, paths in files_by_session(case).items()}
        for step, id, prompt, roles in told_by_client(case):
            held = ledgers[id] if id else next(ledger for ledger in ledgers.values() if prompt in ledger)
            spent = +held[prompt].pop(0)
            if (case.name, step) in NOT_KEPT:
                assert roles["main"]["answers"] == 4 and not spent
            else:
                assert spent == +roles["main"], (case.name, step)
            if roles["subagent"]:
                assert id and spent_by_agents(case, id) == roles["subagent"]
            compared += 1
    assert compared == COMMANDS


def spent_by_agents(case: Path, parent: str) -> Counter[str]:
    """What the sub-agents of a session spent, from their own files."""
    told = spent_by_prompt(path for path in (case / "home").glob(f"**/chats/{parent}/*.jsonl"))
    return sum((spent for turns in told.values() for spent in turns), Counter())


def test_the_tables_have_each_message_of_the_ledgers(shared: Path) -> None:
    messages = 0
    for home in sorted((shared / "corpus").glob("*/home")):
        for project in gemnb.projects(home):
            ws = Workspace("", home=home, llm=None, clock=lambda: NOW, environ={}, folders=(project.folder,))
            told = {
                (id, line.timestamp): line.tokens
                for path in project.folder.glob("chats/**/*.json*")
                for id, line in read_fold(path).known.items()
                if line.tokens
            }
            frame = gemnb.messages_df(ws, hidden=True).dropna(subset="total").drop_duplicates(["message_id", "at"])
            assert spent_rows(frame) == sorted(map(counted, told.values()))
            usage = gemnb.usage_df(ws, by=["session", "kind"])
            assert usage["total"].sum() == sum(tokens["total"] for tokens in told.values())
            assert usage["answers"].sum() == len(told)
            messages += len(told)
    assert messages > 100


SESSION = st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=6, unique_by=lambda told: told[0])
"""Messages by number, each with whether it is still in the talk."""
GROUPS = st.lists(st.sampled_from(sorted(KEYS)), min_size=1, unique=True)
ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Kiritimati"])
SUMMED = ["answers", *TOKENS, "unpriced", "unpriced_total"]


def numbered(number: int) -> dict[str, Any]:
    """A message of which all is told by its number, so that a copy is the same wherever it is."""
    tokens = {kind: number * 10**place for place, kind in enumerate(TOKENS)}
    model = ["gemini-2.5-pro", "mystery-1", None][number % 3]
    at = None if number == 8 else f"2026-0{1 + number // 4}-0{1 + number}T2{number % 4}:30:00.000Z"
    return gemini(f"m{number}", "x", tokens=tokens | {"input": 1 + number}, model=model, timestamp=at)


def session_of(id: str, told: Sequence[tuple[int, bool]], *, kind: str = "main") -> Session:
    messages = {number: decode_message(numbered(number)) for number, _ in told}
    live = tuple(messages[number] for number, is_live in told if is_live)
    usage = {message.id: message for message in messages.values()}
    return Session(header=Header(session_id=id, kind=kind), messages=live, usage=usage)


@settings(deadline=None, max_examples=60)
@given(SESSION, SESSION, SESSION, GROUPS, ZONES)
def test_sums_are_the_same_by_any_group(
    one: list[tuple[int, bool]], two: list[tuple[int, bool]], agent: list[tuple[int, bool]], by: list[str], zone: str
) -> None:
    sessions = [session_of("one", one), session_of("two", two), session_of("agent", agent, kind="subagent")]
    every = [number for told in (one, two, agent) for number, _ in told]
    cost = gemnb.messages_df(sessions).drop_duplicates("message_id")["cost_usd"].sum()

    for dedupe, counted in ((True, sorted(set(every))), (False, every)):
        frame = gemnb.usage_df(sessions, by=by, tz=zone, dedupe=dedupe)
        tokens = [numbered(number)["tokens"] for number in counted]
        sums = {kind: sum(told[kind] for told in tokens) for kind in TOKENS}
        unpriced = [number for number in counted if number % 3 or number >= 8]  # 8 and 9 have no day
        assert {name: int(frame[name].sum()) for name in SUMMED} == sums | {
            "answers": len(counted),
            "unpriced": len(unpriced),
            "unpriced_total": sum(numbered(number)["tokens"]["total"] for number in unpriced),
        }
        assert not dedupe or frame["cost_usd"].sum() == pytest.approx(cost)
    live = {number for told in (one, two, agent) for number, is_live in told if is_live}
    visible = sum(numbered(number)["tokens"]["total"] for number in live)
    assert gemnb.usage_df(sessions, by=by, tz=zone)["visible"].sum() == visible


COUNTS = st.fixed_dictionaries({kind: st.integers(0, 10**6) for kind in TOKENS})
DONE = st.lists(
    st.tuples(st.just("send"), COUNTS) | st.tuples(st.sampled_from(["rewind", "compress", "copy"]), st.none()),
    max_size=8,
)


@pytest.mark.filterwarnings("ignore:Nothing is left to resume")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(DONE)
def test_the_bill_of_a_recorded_talk_is_what_the_model_reported(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("bill")
    (folder / "app").mkdir()
    llm = ScriptedLlm(default="<state_snapshot>short</state_snapshot>")
    ws = gemnb.open_workspace(folder / "app", home=folder / "home", llm=llm, clock=lambda: NOW)
    chat = ws.new_chat()
    reported: list[dict[str, int]] = []
    for what, counts in [("send", TOKENS), *told]:
        with suppress(GemnbError):
            if what == "send":
                llm._replies = [{"parts": [{"text": "Aye."}], "usage": counts}]
                chat.send("A question that is long enough to be worth a summary. " * 9)
                reported.append(counts)
            elif what == "copy":
                chat = ws.resume(chat.session_id, fork=True)
            else:
                chat.rewind(1) if what == "rewind" else chat.compress()

    assert spent_rows(gemnb.messages_df(ws, hidden=True).drop_duplicates("message_id")) == sorted(
        map(counted, reported)
    )
    usage = gemnb.usage_df(ws, by=["kind"])
    assert {kind: usage[kind].sum() for kind in TOKENS} == {kind: sum(r[kind] for r in reported) for kind in TOKENS}
    assert gemnb.usage_df(ws, dedupe=False)["answers"].sum() >= usage["answers"].sum() == len(reported)


def counted(tokens: dict[str, int]) -> list[int]:
    return [tokens[kind] for kind in sorted(TOKENS)]


def spent_rows(frame: pd.DataFrame) -> list[list[int]]:
    told = frame.dropna(subset="total")[sorted(TOKENS)].astype(int)
    return sorted(told.to_numpy().tolist())
