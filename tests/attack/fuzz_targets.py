"""What must hold for any bytes: one function for each reader of files that strangers wrote.

Each takes the bytes, and a folder of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from gemnb.errors import MemoryFileError
from gemnb.model.ledger import ledger_of
from gemnb.model.records import Damage
from gemnb.model.talk import prompts
from gemnb.services.memory_imports import Resolver
from gemnb.services.memory_inbox import apply_proposal, read_inbox
from gemnb.services.projection import history
from gemnb.services.retention_policy import policy_of
from gemnb.store.brief import brief_records
from gemnb.store.journal import parse_json, parse_lines, to_line
from gemnb.store.ledgers import ledger_in
from gemnb.store.paths import is_slug
from gemnb.store.projects import Projects, read_marker
from gemnb.store.replay import Fold, read_fold, read_session
from gemnb.store.settings import load_settings
from gemnb.store.tabled import tabled_records

Target = Callable[[bytes, Path], None]

NAME = "session-2026-05-01T10-00-aa11bb22.jsonl"


def lines_of(data: bytes) -> list[bytes]:
    """Lines as a file yields them."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def journal(data: bytes, _folder: Path) -> None:
    """Each line is an object or damage; what was read is written and read back the same."""
    lines = lines_of(data)
    for salvage in (True, False):
        for value in parse_lines(lines, salvage=salvage):
            if isinstance(value, Damage):
                assert 1 <= value.line <= len(lines) and 0 <= value.offset < len(data)
            else:
                line = to_line(value)
                assert line.count(b"\n") == 1 and line.isascii()
                assert to_line(parse_json(line)) == line  # type: ignore[arg-type]


def written(data: bytes, path: Path) -> Path:
    path.write_bytes(data)
    return path


def ids(found: Fold) -> list[str]:
    return list(found.live)


def fold(data: bytes, folder: Path) -> None:
    """Every reader of a file comes to the same talk, and none of them raises or writes."""
    path = written(data, folder / NAME)

    whole = read_fold(path)
    brief = read_fold(path, records=brief_records)
    tabled = {c: read_fold(path, records=partial(tabled_records, calls=c)) for c in (False, True)}
    read_fold(path, as_client=True)
    session = read_session(path)

    assert ids(whole) == ids(brief) == [m.id for m in session.messages]
    assert whole.meta == brief.meta
    for calls, found in tabled.items():
        assert whole.meta == found.meta
        ledger = ledger_in(found, {line.id for line in prompts(found.live.values())}, calls=calls)
        assert ledger == ledger_of(session, calls=calls)
    assert len(whole.damage) == len(session.damage)
    assert isinstance(session.id, str) and set(session.usage) <= set(whole.known)
    assert path.read_bytes() == data


def projection(data: bytes, folder: Path) -> None:
    """What would be sent is JSON, alternates, and answers each call exactly once, after it."""
    found = history(read_session(written(data, folder / NAME)).messages)
    contents = found.contents()

    json.dumps(contents, allow_nan=False)
    assert all(one["role"] != two["role"] for one, two in pairwise(contents))
    assert all(c["role"] in ("user", "model") and c["parts"] for c in contents)
    asked: Counter[Any] = Counter()
    for turn in found.turns:
        for part in turn.parts:
            if isinstance(call := part.get("functionCall"), dict):
                asked[repr(call.get("id"))] += 1
            if isinstance(answer := part.get("functionResponse"), dict):
                asked[repr(answer.get("id"))] -= 1
                assert asked[repr(answer.get("id"))] >= 0
    assert not +asked


def settings(data: bytes, folder: Path) -> None:
    """Any settings give settings and a policy, or a reason why not."""
    path = folder / ".gemini" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    written(data, path)

    found = load_settings(folder, str(folder / "none"), environ={"GEMINI_CLI_SYSTEM_SETTINGS_PATH": os.devnull + "/x"})
    policy, problem = policy_of(found)

    assert len(found.explain()) and (policy is not None or problem)
    assert [str(s) for s in found.explain()]


def imports(data: bytes, folder: Path) -> None:
    """No import reads outside the root, and none makes a text without end."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    (folder / "secret.md").write_text("OUTSIDE")
    (root / "a.md").write_text("@./b.md and @../secret.md")
    memory = root / "b.md"
    memory.write_bytes(data)

    text, _ = Resolver(root).resolve(data.decode("utf-8", "replace"), memory)

    assert "OUTSIDE" not in text or b"OUTSIDE" in data
    assert len(text) < 60_000_000


def registry(data: bytes, folder: Path) -> None:
    """Whatever registry and marker say, a slug is a plain name, and one project's folder is never another's."""
    gemini = folder / ".gemini"
    place = gemini / "tmp" / "app"
    place.mkdir(parents=True, exist_ok=True)
    first, _, rest = data.partition(b"\n---\n")
    written(first, gemini / "projects.json")
    written(rest or first, place / ".project_root")
    projects = Projects(folder)

    found = projects.registry()
    slug = projects.propose("/work/app")

    assert all(map(is_slug, found.entries.values())) and is_slug(slug)
    assert slug != "app" or read_marker(place) == "/work/app"
    assert all(p.folder.parent == projects.tmp for p in projects.all())
    assert (gemini / "projects.json").read_bytes() == first


def patches(data: bytes, folder: Path) -> None:
    """A patch changes the one file that it may change, whole, or it is refused with a reason."""
    memory = folder / "memory"
    memory.mkdir(exist_ok=True)
    other = written(b"one\ntwo\n", folder / "other.md")
    target = written(b"one\ntwo\nthree\n", memory / "MEMORY.md")
    place = memory / ".inbox" / "private"
    place.mkdir(parents=True, exist_ok=True)
    written(data.replace(b"MEMORY_PATH", os.fsencode(target)), place / "p.patch")
    (proposal,) = read_inbox(memory)
    str(proposal)

    try:
        changed = apply_proposal(proposal, {"private": [target, memory], "global": []}, memory)
    except MemoryFileError:
        changed = []
        assert target.read_bytes() == b"one\ntwo\nthree\n"

    assert other.read_bytes() == b"one\ntwo\n"
    assert all(path.parent == memory and path.suffix == ".md" for path in changed)
    for path in changed:
        path.unlink()
    assert {p.name for p in folder.iterdir()} <= {"memory", "other.md"}
    assert bool(changed) != (place / "p.patch").exists()


TARGETS: dict[str, Target] = {
    function.__name__: function for function in (journal, fold, projection, settings, imports, registry, patches)
}

HEADER = b'{"sessionId":"aa11bb22-0000-4000-8000-00000000000a","projectHash":"x","startTime":"2026-05-01T10:00:00Z"}\n'
USER = b'{"id":"u1","timestamp":"2026-05-01T10:00:05.000Z","type":"user","content":[{"text":"Why?"}]}\n'
CALL = (
    b'{"id":"g1","type":"gemini","content":[{"functionCall":{"id":"c1","name":"look","args":{}}}],"toolCalls":'
    b'[{"id":"c1","name":"look","args":{},"result":"x","status":"success"}],"thoughts":[{"subject":"s"}],'
    b'"tokens":{"input":1,"output":2,"cached":0,"thoughts":0,"tool":0,"total":3}}\n'
)
TALK = HEADER + USER + CALL + b'{"$set":{"messages":[' + USER.strip() + b']}}\n{"$rewindTo":"u1"}\n'

SEEDS: dict[str, list[bytes]] = {
    "journal": [TALK, b"\xef\xbb\xbf" + TALK, b"\x00\x00" + TALK, TALK[:-9] + TALK],
    "fold": [TALK, TALK + HEADER + TALK, USER, b'{"sessionId":"a","messages":[\n' + USER + b"]}"],
    "projection": [TALK, HEADER + USER + CALL, HEADER + USER + CALL.replace(b'"result":"x"', b'"result":[{"a":1}]')],
    "settings": [
        b'{"general":{"sessionRetention":{"enabled":true,"maxAge":"7d","maxCount":3,"minRetention":"1h"}},}',
        b'// x\n{/* y */"model":{"maxSessionTurns":3,"compressionThreshold":0.2},"context":{"fileName":["A.md"]}}',
    ],
    "imports": [b"@./a.md\n```\n@../secret.md\n```\n`@b.md` @/etc/hosts", b"@b.md @./b.md\n    @a.md\n~~~\n@a.md"],
    "registry": [
        b'{"projects":{"/work/app":"app","/x":"../y"}}\n---\n/work/app',
        b'{"projects":{"/work/app":"app-1"}}\n---\n/other\n',
        b'{"projects":[]}\n---\n../..\x00',
    ],
    "patches": [
        b"--- MEMORY_PATH\n+++ MEMORY_PATH\n@@ -1,3 +1,4 @@\n one\n two\n+more\n three\n",
        b"--- /dev/null\n+++ MEMORY_PATH\n@@ -0,0 +1 @@\n+a\n",
        b"--- ../x\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n",
    ],
}
