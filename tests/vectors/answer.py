"""Answers requests of the vectors' protocol, one JSON line each: a thin shell over gemnb's functions."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from compression_command import curated

from gemnb.errors import GemnbError, NoSessionsError
from gemnb.model.records import parse_time, text_of
from gemnb.model.shown import clean_line
from gemnb.model.talk import EMPTY_TITLE, is_resumable, prompts
from gemnb.services import projection, retention
from gemnb.services.memory import load_memory
from gemnb.services.memory_files import git_root
from gemnb.services.memory_imports import Imported, Resolver
from gemnb.services.retention_plan import CleanupResult
from gemnb.services.retention_policy import policy_of
from gemnb.services.split import split_point
from gemnb.services.tokens import estimate_tokens
from gemnb.services.tool_outputs import plan_outputs
from gemnb.store import codec
from gemnb.store.checkpoints import Checkpoints
from gemnb.store.moving import dispose, remove
from gemnb.store.outputs import tool_outputs
from gemnb.store.paths import decode_tag
from gemnb.store.projects import MARKER, Projects
from gemnb.store.replay import Fold, read_fold
from gemnb.store.sessions import SessionStore
from gemnb.store.settings import Settings
from gemnb.store.titles import age_of, short_age

Request = dict[str, Any]


def expand(value: Any) -> Any:
    """Texts that stand for long ones, written out."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            return value["$repeat"][0] * value["$repeat"][1]
        if set(value) == {"$runs"}:
            return "".join(r if isinstance(r, str) else r[0] * r[1] for r in value["$runs"])
        return {key: expand(item) for key, item in value.items()}
    return [expand(item) for item in value] if isinstance(value, list) else value


def to_bytes(spec: Any) -> bytes:
    """The bytes of a session input."""
    if isinstance(spec, str):
        return spec.encode("utf-8", "surrogatepass")
    if isinstance(spec, list):
        spec = {"lines": spec}
    if "base64" in spec:
        return base64.b64decode(spec["base64"])
    if "text" in spec:
        return to_bytes(spec["text"])
    lines = [line if isinstance(line, str) else json.dumps(line) for line in spec["lines"]]
    return to_bytes("\n".join(lines) + spec.get("eof", "\n"))


def load(request: Request, folder: Path) -> Any:
    path = Path(request["file"]) if "file" in request else folder / "session-2026-01-10T08-00-abcdef12.jsonl"
    if "file" not in request:
        path.write_bytes(to_bytes({k: v for k, v in request.items() if k in ("lines", "text", "base64", "eof")}))
    try:
        found = read_fold(path, as_client=True)
    except OSError:
        return None
    if not found.headers:
        return None
    return conversation(found, metadata_only=bool(request.get("metadataOnly")))


METADATA = (
    "sessionId",
    "projectHash",
    "startTime",
    "lastUpdated",
    "summary",
    "memoryScratchpad",
    "directories",
    "kind",
)


def conversation(found: Fold, *, metadata_only: bool) -> Any:
    """The fold in the form that the client gives it."""
    live = list(found.live.values())
    users = [line for line in live if line.type == "user"]
    result = {key: value for key, value in found.raw_meta.items() if found.whole_file or key in METADATA}
    result["messages"] = [] if metadata_only else [line.raw for line in live]
    result["userMessageCount"] = len(users)
    result["hasResumableContent"] = any(map(is_resumable, live))
    if metadata_only or not found.whole_file:
        result["messageCount"] = len(live)
        if first := next((text_of(line.content) for line in prompts(found.known.values())), None):
            result["firstUserMessage"] = first
    if result.get("memoryScratchpad") is not None and found.sketched is not None:
        result["memoryScratchpadIsStale"] = not found.sketched
    return result


def client_history(request: Request, folder: Path) -> Any:
    raw = request["messages"] if "messages" in request else load(request, folder)["messages"]
    turns = projection.client_turns(codec.decode_message(message) for message in raw)
    return [{"id": turn.id, "content": turn.content} for turn in turns]


def store_of(request: Request, folder: Path) -> SessionStore:
    """The store that a request's files make."""
    now = parse_time(request["now"])
    assert now
    chats = folder / "chats"
    chats.mkdir()
    for name, spec in request.get("files", {}).items():
        path = chats / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_bytes(spec))
        told = parse_time(spec.get("mtime")) if isinstance(spec, dict) else None
        # a request that tells no time means a file that nobody is writing
        at = (told or now - timedelta(days=2)).timestamp()
        os.utime(path, (at, at))
    return SessionStore(lambda: (folder,), clock=lambda: now)


def zulu(at: datetime | None) -> str:
    assert at
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def list_(request: Request, folder: Path) -> Any:
    rows = store_of(request, folder).list(current=request.get("currentSessionId"))
    return [
        {
            "index": row.index,
            "id": row.id,
            "fileName": row.path.name,
            "displayName": row.title,
            "firstUserMessage": row.prompt or EMPTY_TITLE,
            "messageCount": row.message_count,
            "startTime": zulu(row.started_at),
            "lastUpdated": zulu(row.last_updated),
            "isCurrentSession": row.is_current,
        }
        | ({"summary": row.summary} if row.summary is not None else {})
        for row in rows
    ]


def find(request: Request, folder: Path) -> Any:
    store = store_of(request, folder)
    now = parse_time(request["now"])
    assert now
    try:
        row = store.find(request["identifier"])
    except GemnbError as error:
        if isinstance(error, NoSessionsError):
            message = "No previous sessions found for this project."
        else:
            asked = request["identifier"].strip()
            message = (
                f'Invalid session identifier "{asked}".\n  Searched for sessions in <TMP>/chats.\n'
                "  Use --list-sessions to see available sessions, then use"
                " --resume {number}, --resume {uuid}, or --resume latest."
            )
        return {"found": False, "code": error.code, "message": message}
    assert row.last_updated
    told = f"Session {row.index}: {row.title} ({row.message_count} messages, {age_of(row.last_updated, now).lower()})"
    return {"found": True, "file": row.path.name, "id": row.id, "displayInfo": told}


def exists(request: Request, folder: Path) -> Any:
    rows = store_of(request, folder).list()
    return any(row.id == request["sessionId"] for row in rows)


def clean_message(request: Request, folder: Path) -> Any:
    return clean_line(request["text"])


def relative_time(request: Request, folder: Path) -> Any:
    at, now = parse_time(request["timestamp"]), parse_time(request["now"])
    assert now
    if at is None:
        raise ValueError("no time")
    return (age_of if request.get("style") == "long" else short_age)(at, now)


def slug(request: Request, folder: Path) -> Any:
    home = folder / "home"
    home.mkdir()
    for name, text in {**request.get("home", {}), **request.get("prepare", {})}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(to_bytes(text))
    projects = Projects(home)
    slugs = [{"root": root, "slug": projects.claim(root)} for root in request["roots"]]
    files = sorted(str(p.relative_to(home / ".gemini")) for p in (home / ".gemini").rglob("*") if p.is_file())
    return {
        "slugs": slugs,
        "registry": json.loads((home / ".gemini" / "projects.json").read_text("utf-8")),
        "files": files,
        "markers": {f: (home / ".gemini" / f).read_text("utf-8") for f in files if f.endswith(MARKER)},
    }


def tokens(request: Request, folder: Path) -> Any:
    return estimate_tokens(request["parts"])


def split(request: Request, folder: Path) -> Any:
    return split_point(request["contents"], request["fraction"])


def checkpoint(request: Request, folder: Path) -> Any:
    store = Checkpoints(folder)
    for name, spec in request.get("files", {}).items():
        (folder / name).write_bytes(to_bytes(spec))
    tag = request["tag"]
    result: dict[str, Any] = {}
    if "save" in request:
        store.save(tag, request["save"]["history"], auth_type=request["save"].get("authType"), overwrite=True)
        result["saved"] = True
    result["exists"] = store.exists(tag)
    if request.get("load"):
        result["loaded"] = store.read(tag) if result["exists"] else {"history": []}
    if request.get("delete"):
        result["deleted"] = store.delete(tag)
    result["files"] = sorted(p.name for p in folder.iterdir())
    return result


def decode(request: Request, folder: Path) -> Any:
    return decode_tag(request["value"])


def tree_of(request: Request, folder: Path) -> tuple[Path, Path]:
    """The project tree and the home that a request describes."""
    root, home = folder / "root", folder / "home"
    root.mkdir()
    home.mkdir()
    for base, told in ((root, request.get("tree", {})), (home, request.get("home", {}))):
        for name, spec in told.items():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(spec, dict) and "symlink" in spec:
                (base / name).symlink_to(spec["symlink"])
            else:
                (base / name).write_bytes(to_bytes(spec))
    return root, home


def told_by(value: Any, folder: Path) -> Any:
    """A result with the request's words for its folders."""
    text = json.dumps(value)
    for word, place in (("<ROOT>", folder / "root"), ("<HOME>", folder / "home"), ("<TMP>", folder / "temp")):
        text = text.replace(str(place), word)
    return json.loads(text)


def imports(request: Request, folder: Path) -> Any:
    root, _ = tree_of(request, folder)
    file = root / request.get("file", "GEMINI.md")
    flat = request.get("format") == "flat"
    text, found = Resolver(git_root(file.parent) or file.parent, flat=flat).resolve(file.read_bytes().decode(), file)

    def node(imported: Imported) -> Any:
        inner = [node(child) for child in imported.imports]
        return {"path": str(imported.path)} | ({"imports": inner} if inner else {})

    tree = {"path": str(file.parent) if flat else "unknown"} | ({"imports": [node(n) for n in found]} if found else {})
    return told_by({"content": text, "importTree": tree}, folder)


def memory(request: Request, folder: Path) -> Any:
    if "touch" in request or "include" in request:
        return None
    root, home = tree_of(request, folder)
    temp = folder / "temp"
    for name, text in request.get("projectMemory", {}).items():
        (temp / "memory").mkdir(parents=True, exist_ok=True)
        (temp / "memory" / name).write_text(text)
    cwd = Path(os.path.normpath(root / request.get("cwd", ".")))
    read = load_memory(
        root, home, temp, cwd=cwd, names=request.get("names", ["GEMINI.md"]), flat=request.get("format") == "flat"
    )
    scopes = {"global": "global", "extension": "extension", "project": "project", "userProjectMemory": "private"}
    files = {word: [f for f in read.files if f.scope == scope] for word, scope in scopes.items()}
    return told_by(
        {
            "paths": {w: [str(f.path) for f in fs] for w, fs in files.items() if fs or w != "userProjectMemory"},
            "text": {w: "\n\n".join(f.section for f in fs) for w, fs in files.items()},
        },
        folder,
    )


def entries(folder: Path) -> set[str]:
    """Every file and folder below `folder`, folders with a slash."""
    return {f"{p.relative_to(folder)}{'/' if p.is_dir() else ''}" for p in folder.rglob("*")}


def grow(tree: dict[str, Any], folder: Path) -> None:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(to_bytes(text))


def clean(request: Request, folder: Path) -> Any:
    store = store_of(request, folder)
    grow(request.get("tree", {}), folder)
    current = request.get("currentSessionId")
    layer = {"general": {"sessionRetention": {"maxAge": None, "maxCount": None} | request["settings"]}}
    policy, problem = policy_of(Settings((("user", layer),)))
    now = parse_time(request["now"])
    assert now
    before = entries(folder)
    plan = retention.plan(
        store.list(current=current),
        policy,
        problem,
        now=now,
        family=store.families(store.list(hidden=True)),
        delete=lambda candidate, _purge: dispose(candidate.paths, remove),
    )
    off = problem is not None or not policy.enabled
    done = CleanupResult() if off else plan.apply()
    counts = {name: getattr(done, name) for name in ("scanned", "deleted", "skipped", "failed")}
    left = entries(folder)
    return {"result": {"disabled": off, **counts}, "deleted": sorted(before - left), "kept": sorted(left)}


def clean_outputs(request: Request, folder: Path) -> Any:
    (folder / "tool-outputs").mkdir()
    for name, spec in request["entries"].items():
        (folder / "tool-outputs" / name).write_bytes(to_bytes(spec))
        told = parse_time(spec["mtime"])
        assert told
        os.utime(folder / "tool-outputs" / name, (told.timestamp(),) * 2)
    layer = {"general": {"sessionRetention": {"maxAge": None, "maxCount": None} | request["settings"]}}
    policy, problem = policy_of(Settings((("user", layer),)))
    now = parse_time(request["now"])
    assert now
    off = problem is not None or not policy.enabled
    found = [] if off else plan_outputs(tool_outputs(folder), policy, now=now, spared=lambda _: False)
    before = entries(folder)
    done = dispose([c.output.path for c in found if c.decision == "delete"], remove)
    counts = {"scanned": len(found), "deleted": len(done.gone), "failed": len(done.stayed)}
    return {"result": {"disabled": off, **counts}, "deleted": sorted(before - entries(folder))}


def delete(request: Request, folder: Path) -> Any:
    store = store_of(request, folder)
    grow(request.get("tree") or {}, folder)
    before = entries(folder)
    try:
        dispose(store.families()(store.find(request["target"])), remove)
    except GemnbError as error:
        return {"error": error.code, "deleted": sorted(before - entries(folder))}
    return {"error": None, "deleted": sorted(before - entries(folder))}


COMMANDS = {
    "retention": clean,
    "tool_outputs": clean_outputs,
    "delete_stored": delete,
    "imports": imports,
    "memory": memory,
    "tokens": tokens,
    "split_point": split,
    "curated": curated,
    "checkpoint": checkpoint,
    "decode_tag": decode,
    "load": load,
    "client_history": client_history,
    "list": list_,
    "find": find,
    "exists": exists,
    "clean_message": clean_message,
    "relative_time": relative_time,
    "slug": slug,
}


def answer(request: Request) -> dict[str, Any]:
    command = COMMANDS.get(request.get("cmd", ""))
    if command is None:
        return {"ok": False, "skip": True}
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = command(expand(request), Path(folder).resolve())
            return (
                {"ok": False, "skip": True}
                if result is None and command in (imports, memory)
                else {"ok": True, "result": result}
            )
        except (GemnbError, ValueError, KeyError, TypeError, OSError) as error:
            return {"ok": False, "error": {"message": f"{type(error).__name__}: {error}"}}


def main() -> None:
    for line in sys.stdin.buffer:
        if line.strip():
            sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
