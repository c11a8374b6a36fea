"""The sample store: sessions that look like real work, for the tour, the notebooks and tests. Nobody in it is real."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gemnb.model.records import JsonObject
from gemnb.store.journal import to_line
from gemnb.store.paths import project_hash, session_file_name
from gemnb.store.projects import Projects

SEED = 20260520
MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite")
DAYS = 120
"""How far back the oldest session lies."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a session is about: prompts and answers in turn, the tool that is used, and its file."""

    title: str | None
    talk: Sequence[tuple[str, str]]
    tool: str = "read_file"
    file: str = "README.md"


TOPICS = (
    Topic("Rivers table has duplicate rows", (("Why does rivers.csv have 44 rows and not 42?", "Two rows stand twice: the Elbe and the Oder. Their ids differ only in white space."), ("Drop them, but keep the first.", "Done: `clean.py` now strips ids before it compares them. 42 rows remain.")), file="data/rivers.csv"),
    Topic(None, (("The second test fails on Python 3.13, not on 3.12. Look into it.", "`test_parse_date` relies on the order of a set. It is sorted now."), ("Never sort in the hot path: we must keep it under 5 ms.", "Understood. The sort moved to the test itself."), ("Run the suite again.", "128 passed in 9.4 s.")), tool="run_shell_command", file="pytest -q"),
    Topic("折れ線グラフの軸", (("折れ線グラフの縦軸を対数にしてください。", "`plot.py` の軸を `log` に変更しました。"), ("凡例は日本語のままにしてください。", "はい、凡例はそのままです。")), file="plot.py"),
    Topic("数据清洗脚本", (("把缺失值改成中位数，不要用平均数。", "已经改好：`fill.py` 现在使用中位数。"), ("端口必须是 5433。", "好的，配置中的端口是 5433。")), file="fill.py"),
    Topic(None, (("Welche Städte liegen an der Donau?", "Zehn Städte der Tabelle liegen an der Donau, von Ulm bis Belgrad."),), file="data/cities.csv"),
    Topic("Flaky download in the nightly job", (("The nightly job failed with a timeout. Why?", "The mirror answers slowly between 02:00 and 02:20 UTC. The client waits 10 s and gives up."), ("Retry three times with a longer wait.", "It retries after 5, 20 and 60 s now; the job log says each attempt.")), tool="run_shell_command", file="journalctl -u nightly"),
    Topic(None, (("Explain what `merge_asof` does with our tolerances.", "It joins each reading to the last calibration before it, at most 30 minutes old. Older ones give NaN."),), file="calibrate.py"),
    Topic("Docs: install section", (("Write the install section; assume nothing but Python.", "It is three lines: make an environment, install, run the check."), ("Shorter.", "Two lines now.")), tool="write_file", file="docs/install.md"),
)  # fmt: skip


def make_sample_store(folder: Path, *, now: datetime | None = None, seed: int = SEED) -> tuple[Path, Path]:
    """Make the sample store and its projects below `folder`.

    Args:
        folder: gets `home/` (with `.gemini`) and `work/` (with the projects).
        now: the time that the newest session ended at; by default the machine's.
        seed: the same seed and time make the same store.

    Returns:
        The home, and the folder of the main project.
    """
    made = random.Random(seed)
    now = (now or datetime.now(UTC)).astimezone(UTC)
    home, work = folder / "home", folder / "work"
    (home / ".gemini").mkdir(parents=True)
    settings = {"general": {"sessionRetention": {"enabled": False}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    for name, count in (
        ("rivers", 22),
        ("calibration", 9),
        ("site", 6),
        ("rivers-wt/fix-dates", 2),
        ("rivers-wt/plots", 2),
    ):
        root = work / name
        root.mkdir(parents=True)
        (root / "README.md").write_text(f"# {name}\n\nSample data, made by gemnb.\n", encoding="utf-8")
        _make_project(home, root, count, made, now)
    return home, work / "rivers"


def _make_project(home: Path, root: Path, count: int, made: random.Random, now: datetime) -> None:
    slug = Projects(home).claim(str(root))
    chats = home / ".gemini" / "tmp" / slug / "chats"
    chats.mkdir(mode=0o700)
    for number in range(count):
        age = timedelta(days=DAYS * (1 - (number + 1) / count) ** 1.5, minutes=made.randint(10, 600))
        started = now - age
        topic = TOPICS[(number + len(root.name)) % len(TOPICS)]
        _write(chats, root, topic, started, made, special=number if root.name == "rivers" else -1)


def _write(chats: Path, root: Path, topic: Topic, started: datetime, made: random.Random, *, special: int) -> None:
    id = str(uuid.UUID(int=made.getrandbits(128), version=4))
    path = chats / session_file_name(started, id)
    records = list(_records(id, str(root), topic, started, made))
    if special == 4:
        records += _rewound(records)
    if special == 7:
        records += _compressed(records, made)
    data = b"".join(map(to_line, records))
    if special == 10:
        data += b'{"id":"cut off in the mid'
    path.write_bytes(data)
    path.chmod(0o600)
    ended = max(datetime.fromisoformat(record["timestamp"]) for record in records if "timestamp" in record)
    os.utime(path, (ended.timestamp(), ended.timestamp()))  # else retention takes it for one in use
    if special == 13:
        agent = str(uuid.UUID(int=made.getrandbits(128), version=4))
        (chats / id).mkdir(mode=0o700)
        told = list(_records(agent, str(root), TOPICS[6], started, made, kind="subagent"))
        (chats / id / f"{agent}.jsonl").write_bytes(b"".join(map(to_line, told)))


def _records(
    id: str, root: str, topic: Topic, started: datetime, made: random.Random, *, kind: str = "main"
) -> Iterator[JsonObject]:
    """A session's records, in the order that the client writes them."""
    at = started
    model = made.choice(MODELS)
    yield {
        "sessionId": id,
        "projectHash": project_hash(root),
        "startTime": _iso(at),
        "lastUpdated": _iso(at),
        "kind": kind,
    }
    context = f"<session_context>\nToday's date is {at:%A, %B} {at.day}, {at.year}.\n  - {root}\n</session_context>"
    opening = {"id": _id(made), "timestamp": _iso(at), "type": "user", "content": [{"text": context}]}
    yield {"$set": {"messages": [opening], "lastUpdated": _iso(at)}}
    prompt_tokens = 1_800 + made.randint(0, 900)
    for number, (prompt, answer) in enumerate(topic.talk):
        at += timedelta(seconds=made.randint(5, 900))
        yield {"id": _id(made), "timestamp": _iso(at), "type": "user", "content": [{"text": prompt}]}
        yield {"$set": {"lastUpdated": _iso(at)}}
        if number == 0:
            at += timedelta(seconds=made.randint(2, 20))
            yield from _tool_turn(topic, at, model, prompt_tokens, made)
            prompt_tokens += made.randint(300, 4_000)
        at += timedelta(seconds=made.randint(2, 40))
        yield _answer(answer, at, model, prompt_tokens, made)
        yield {"$set": {"lastUpdated": _iso(at)}}
        prompt_tokens += made.randint(100, 1_500)
    if topic.title:
        yield {"$set": {"summary": topic.title}}


def _answer(text: str, at: datetime, model: str, prompt: int, made: random.Random) -> JsonObject:
    thoughts = made.choice((0, 0, 120, 480))
    cached = int(prompt * made.choice((0, 0, 0.6, 0.8)))
    output = max(4, len(text) // 4)
    thought = {"subject": "Weighing it up", "description": "I compare what the file says.", "timestamp": _iso(at)}
    return {
        "id": _id(made),
        "timestamp": _iso(at),
        "type": "gemini",
        "content": text,
        "thoughts": [thought] if thoughts else [],
        "tokens": {"input": prompt, "output": output, "cached": cached, "thoughts": thoughts, "tool": 0, "total": prompt + output + thoughts},
        "model": model,
    }  # fmt: skip


def _tool_turn(topic: Topic, at: datetime, model: str, prompt: int, made: random.Random) -> Iterator[JsonObject]:
    """A call and its result: the same message again, then the response as a message of its own."""
    said = _answer("", at, model, prompt, made)
    yield said
    yield {"$set": {"lastUpdated": _iso(at)}}
    fails = made.random() < 0.15
    call = f"{topic.tool}-{made.getrandbits(32):08x}"
    told = (
        {"error": f"File not found: {topic.file}"}
        if fails
        else {"output": f"{topic.file}: {made.randint(20, 400)} lines read"}
    )
    response = {"functionResponse": {"id": call, "name": topic.tool, "response": told}}
    key = {"run_shell_command": "command"}.get(topic.tool, "file_path")
    yield said | {
        "toolCalls": [
            {
                "id": call,
                "name": topic.tool,
                "args": {key: topic.file},
                "result": [response],
                "status": "error" if fails else "success",
                "timestamp": _iso(at + timedelta(seconds=made.randint(1, 9))),
                "resultDisplay": "",
                "description": topic.file,
                "displayName": topic.tool,
                "renderOutputAsMarkdown": True,
            }
        ]
    }
    yield {"id": _id(made), "timestamp": _iso(at), "type": "user", "content": [response]}
    yield {"$set": {"lastUpdated": _iso(at)}}


def _rewound(records: Sequence[JsonObject]) -> list[JsonObject]:
    last = [r["id"] for r in records if r.get("type") == "user" and "text" in r["content"][0]][-1]
    return [{"$rewindTo": last}]


def _compressed(records: Sequence[JsonObject], made: random.Random) -> list[JsonObject]:
    """A summary in the place of the first turns; what was paid stays."""
    held = {r["id"]: r for r in records if "id" in r}
    prompts = [id for id, r in held.items() if r["type"] == "user" and "text" in r["content"][0]]
    kept = list(held.values())[list(held).index(prompts[-1]) :]
    at = str(kept[-1]["timestamp"])
    snapshot = "<state_snapshot>\nThe job timed out at 02:10 UTC: the mirror is slow then.\n</state_snapshot>"
    summary = {"id": _id(made), "timestamp": at, "type": "user", "content": [{"text": snapshot}]}
    heard = {"id": _id(made), "timestamp": at, "type": "gemini", "content": [{"text": "Got it."}]}
    return [{"$set": {"messages": [summary, heard, *kept], "lastUpdated": at}}]


def _id(made: random.Random) -> str:
    return str(uuid.UUID(int=made.getrandbits(128), version=4))


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
