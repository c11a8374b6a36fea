"""The sample store: sessions that look like real work, for the tour, the notebooks and tests. Nobody in it is real."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gemnb.model.records import JsonObject
from gemnb.sample_memory import write_memory
from gemnb.sample_talks import LAKES, REPORT, TOPICS, Topic
from gemnb.store.journal import to_line
from gemnb.store.paths import project_hash, session_file_name
from gemnb.store.projects import Projects

SEED = 20260520
MODELS = ("gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite")
TUNED = "gauges-tuned-2"
"""A model of the team's own, which no price list has."""
TUNED_SESSIONS = {("calibration", 4), ("calibration", 5)}
"""Where it answered: on any day one of the two lies in the month before."""
FAILED = {
    "read_file": "File not found",
    "write_file": "Permission denied",
    "replace": "Failed to edit, 0 occurrences found",
    "run_shell_command": "Command exited with code 1",
    "search_file_content": "No matches found",
}
DONE = {
    "read_file": "lines read",
    "write_file": "lines written",
    "replace": "occurrences replaced",
    "run_shell_command": "lines of output",
    "search_file_content": "matches",
}
DAYS = 120
"""How far back the oldest session lies."""
PROJECTS = {"rivers": 22, "calibration": 9, "site": 6, "rivers-wt/fix-dates": 2, "rivers-wt/plots": 2}
"""Each project, and how many short sessions it has."""


def make_sample_store(folder: Path, *, now: datetime | None = None, seed: int = SEED) -> tuple[Path, Path]:
    """Make the sample store and its projects below `folder`.

    Args:
        folder: gets `home/` (with `.gemini`) and `work/` (with the projects).
        now: the time that the newest session ended at; by default the machine's.
        seed: the same seed and time make the same store.

    Returns:
        The home, and the folder of the main project.

    >>> home, project = make_sample_store(Path("sample").absolute())
    >>> len(gemnb.open_workspace(project, home=home).sessions())
    24
    """
    made = random.Random(seed)
    now = (now or datetime.now(UTC)).astimezone(UTC)
    home, work = folder / "home", folder / "work"
    (home / ".gemini").mkdir(parents=True)
    settings = {"general": {"sessionRetention": {"enabled": False}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    for name, count in PROJECTS.items():
        root = work / name
        root.mkdir(parents=True)
        (root / "README.md").write_text(f"# {name}\n\nSample data, made by gemnb.\n", encoding="utf-8")
        _make_project(home, root, count, made, now)
    _make_repository(work / "rivers", [work / name for name in PROJECTS if name.startswith("rivers-wt/")])
    _write_report(home, work / "rivers", made, now)
    write_memory(home, work / "rivers", "rivers")
    return home, work / "rivers"


def _make_repository(root: Path, worktrees: Sequence[Path]) -> None:
    """The folders by which git knows a repository without a commit yet, and its worktrees."""
    git = root / ".git"
    for folder in ("objects", "refs/heads"):
        (git / folder).mkdir(parents=True)
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", encoding="utf-8")
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    for worktree in worktrees:
        link, kept = worktree / ".git", git / "worktrees" / worktree.name
        kept.mkdir(parents=True)
        link.write_text(f"gitdir: {kept}\n", encoding="utf-8")
        (kept / "gitdir").write_text(f"{link}\n", encoding="utf-8")
        (kept / "commondir").write_text("../..\n", encoding="utf-8")
        (kept / "HEAD").write_text(f"ref: refs/heads/{worktree.name}\n", encoding="utf-8")


def _make_project(home: Path, root: Path, count: int, made: random.Random, now: datetime) -> None:
    slug = Projects(home).claim(str(root))
    chats = home / ".gemini" / "tmp" / slug / "chats"
    chats.mkdir(mode=0o700)
    for number in range(count):
        age = timedelta(days=DAYS * (1 - (number + 1) / count) ** 1.5, minutes=made.randint(10, 600))
        started = now - age
        topic = TOPICS[(number + len(root.name)) % len(TOPICS)]
        model = TUNED if (root.name, number) in TUNED_SESSIONS else None
        _write(chats, root, topic, started, made, model=model, special=number if root.name == "rivers" else -1)


def _write_report(home: Path, root: Path, made: random.Random, now: datetime) -> None:
    """One long talk, and a fork that went another way after its fourth prompt."""
    chats = home / ".gemini" / "tmp" / root.name / "chats"
    started = now - timedelta(days=8, hours=3)
    talk = list(_records(_id(made), str(root), REPORT, started, made))
    _save(chats, talk)
    prompts = [n for n, record in enumerate(talk) if _is_prompt(record)]
    header, *said = talk[: prompts[4]]
    branched = started + timedelta(days=1)
    fork = _id(made)
    _, _, *more = _records(fork, str(root), LAKES, branched, made)
    _save(chats, [header | {"sessionId": fork, "startTime": _iso(branched)}, *said, *more])


def _save(chats: Path, records: Sequence[JsonObject], *, torn: bytes = b"") -> Path:
    """Write a session's file, as old as its talk."""
    started = datetime.fromisoformat(records[0]["startTime"])
    path = chats / session_file_name(started, records[0]["sessionId"])
    path.write_bytes(b"".join(map(to_line, records)) + torn)
    path.chmod(0o600)
    ended = max(datetime.fromisoformat(record["timestamp"]) for record in records if "timestamp" in record)
    os.utime(path, (ended.timestamp(), ended.timestamp()))  # else retention takes it for one in use
    return path


def _write(
    chats: Path, root: Path, topic: Topic, started: datetime, made: random.Random, *, model: str | None, special: int
) -> None:
    id = str(uuid.UUID(int=made.getrandbits(128), version=4))
    records = list(_records(id, str(root), topic, started, made, model=model))
    if special == 4:
        records += _rewound(records)
    if special == 7:
        records += _compressed(records, made)
    _save(chats, records, torn=b'{"id":"cut off in the mid' if special == 10 else b"")
    if special == 13:
        agent = str(uuid.UUID(int=made.getrandbits(128), version=4))
        (chats / id).mkdir(mode=0o700)
        told = list(_records(agent, str(root), TOPICS[6], started, made, kind="subagent"))
        (chats / id / f"{agent}.jsonl").write_bytes(b"".join(map(to_line, told)))


def _records(
    id: str,
    root: str,
    topic: Topic,
    started: datetime,
    made: random.Random,
    *,
    kind: str = "main",
    model: str | None = None,
) -> Iterator[JsonObject]:
    """A session's records, in the order that the client writes them."""
    at = started
    chosen = made.choice(MODELS)
    model = model or chosen
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
        "tokens": {
            "input": prompt,
            "output": output,
            "cached": cached,
            "thoughts": thoughts,
            "tool": 0,
            "total": prompt + output + thoughts,
        },
        "model": model,
    }


def _tool_turn(topic: Topic, at: datetime, model: str, prompt: int, made: random.Random) -> Iterator[JsonObject]:
    """A call and its result: the same message again, then the response as a message of its own."""
    said = _answer("", at, model, prompt, made)
    yield said
    yield {"$set": {"lastUpdated": _iso(at)}}
    fails = made.random() < 0.15
    call = f"{topic.tool}-{made.getrandbits(32):08x}"
    told = (
        {"error": f"{FAILED[topic.tool]}: {topic.file}"}
        if fails
        else {"output": f"{topic.file}: {made.randint(20, 400)} {DONE[topic.tool]}"}
    )
    response = {"functionResponse": {"id": call, "name": topic.tool, "response": told}}
    key = {"run_shell_command": "command", "search_file_content": "pattern"}.get(topic.tool, "file_path")
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


def _is_prompt(record: JsonObject) -> bool:
    return record.get("type") == "user" and "text" in record["content"][0]


def _rewound(records: Sequence[JsonObject]) -> list[JsonObject]:
    last = [r["id"] for r in records if _is_prompt(r)][-1]
    return [{"$rewindTo": last}]


def _compressed(records: Sequence[JsonObject], made: random.Random) -> list[JsonObject]:
    """A summary in the place of the first turns; what was paid stays."""
    held = {r["id"]: r for r in records if "id" in r}
    prompts = [id for id, r in held.items() if _is_prompt(r)]
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
