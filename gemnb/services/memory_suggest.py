"""Facts worth keeping, looked for in past sessions by counting; they go to the inbox, never further by themselves."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gemnb.errors import LlmError, MemoryFileError
from gemnb.model.records import ToolCall
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import clean_line, prompts, typed_text
from gemnb.model.turns import Turn
from gemnb.services.audit_facts import normal, sentences
from gemnb.services.llm import Llm
from gemnb.services.memory import Memory
from gemnb.services.memory_edit import momentary
from gemnb.services.redaction import Redactor
from gemnb.store.files import create, write_whole
from gemnb.store.journal import open_regular
from gemnb.store.paths import kind_of, private_folder

IDLE = timedelta(hours=3)
LEAST_PROMPTS = 10
SEVERAL = 2
"""Sessions that a command must have worked in, and times that a correction must have been made."""
SEEN = "looked-at.txt"
"""In the inbox: the ids of the sessions that were looked at."""
LONGEST = 200
"""Characters of a fact; what is longer is a task, not a rule."""
_KINDS = ("preference", "correction", "command")
_PREFERENCE = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|i (?:\w+ )?prefer|we (?:\w+ )?prefer|by default|as a rule)\b"
    r"|总是|始终|永远|从现在起|从今以后|以后(?:都|请|不)|我(?:更)?喜欢|我们(?:更)?喜欢|偏好|一律"
    r"|常に|いつも|必ず|今後は|これからは|決して|方が好き|ほうが好き",
    re.I,
)
_CORRECTION = re.compile(
    r"^(?:no|nope|wrong|not (?:like )?that|i (?:already )?(?:said|told you)|again|as i said)\b[\s,.:;!–—-]*"
    r"|^(?:不对|不是这样|错了|我说过|不要这样)[\s,。,:;!]*|^(?:違います|違う|いいえ|そうじゃなく|そうではなく)[てく]?[\s、。:;!]*",
    re.I,
)
_QUESTION = re.compile(r"[?？]\s*$|吗。?$|ですか。?$|ますか。?$")
_SHELL = frozenset({"run_shell_command", "shell", "bash"})
_TRIVIAL = re.compile(r"(?:ls|cd|cat|pwd|echo|head|tail|which|clear|date|whoami|true|find|grep|sed|kill|rm)\b")
_FAILED = re.compile(r"Exit Code:\s*(?!0\b)-?\d|\b(?:Error|Signal):\s*(?!\(none\))\S")


@dataclass(frozen=True, slots=True)
class Source:
    """A message that a suggestion comes from."""

    session_id: str
    message_id: str

    def __str__(self) -> str:
        return f"session {clean_line(self.session_id)}, message {clean_line(self.message_id)}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A fact that may be worth keeping."""

    fact: str
    kind: str
    """`command`, `preference` or `correction`."""
    sources: tuple[Source, ...]

    def __str__(self) -> str:
        return f"{self.fact}\n" + "\n".join(f"  from {source}" for source in self.sources)


def worth_looking_at(sessions: Sequence[Session], *, now: datetime, seen: Collection[str]) -> list[Session]:
    """The sessions that are over, long enough, and were not looked at before."""
    return [
        session
        for session in sessions
        if session.id not in seen
        and session.header.kind != "subagent"
        and session.last_updated is not None
        and now - session.last_updated >= IDLE
        and sum(1 for _ in prompts(session.messages)) >= LEAST_PROMPTS
    ]


def suggest(
    sessions: Sequence[Session], *, now: datetime, seen: Collection[str] = (), llm: Llm | None = None
) -> list[Suggestion]:
    """Facts worth keeping from `sessions`, each with the messages it comes from; nothing is written.

    Args:
        sessions: of one project.
        now: aware.
        seen: ids of sessions that were looked at before.
        llm: chooses among the facts found and words them; where it fails, they stay as they were counted.
    """
    places: dict[tuple[str, str], list[Source]] = {}
    words: dict[tuple[str, str], str] = {}
    for session in worth_looking_at(sessions, now=now, seen=seen):
        for kind, fact, message_id in _facts(session):
            key = (kind, fact if kind == "command" else re.sub(r"[.!。!\s]+\Z", "", normal(fact)))
            words.setdefault(key, fact)
            source = Source(session.id, message_id)
            if source not in places.setdefault(key, []):
                places[key].append(source)
    found = [
        Suggestion(f"`{words[key]}` works here" if key[0] == "command" else words[key], key[0], tuple(sources))
        for key, sources in places.items()
        if _is_enough(key[0], sources)
    ]
    found.sort(key=lambda s: (_KINDS.index(s.kind), -len(s.sources)))
    return _chosen(found, llm) if llm and found else found


def _is_enough(kind: str, sources: Sequence[Source]) -> bool:
    if kind == "command":
        return len({source.session_id for source in sources}) >= SEVERAL
    return kind == "preference" or len(sources) >= SEVERAL


def _facts(session: Session) -> Iterator[tuple[str, str, str]]:
    """Kind, words and message id of what may be worth keeping."""
    for message in prompts(session.messages):
        for sentence in sentences(typed_text(message)):
            fact = clean_line(sentence)
            kind = "correction" if (begin := _CORRECTION.match(fact)) else "preference"
            if begin:
                fact = fact[begin.end() :].strip()
            elif not _PREFERENCE.search(fact):
                continue
            if not _QUESTION.search(fact) and _may_be_kept(fact):
                yield kind, fact, message.id
    for message in session.messages:
        for call in message.tool_calls:
            command = _command(call)
            if command and _worked(call) and _may_be_kept(command):
                yield "command", command, message.id


def _command(call: ToolCall) -> str | None:
    told = call.args.get("command") if isinstance(call.args, dict) else None
    if call.name not in _SHELL or not isinstance(told, str) or "\n" in told.strip() or "`" in told:
        return None
    return None if _TRIVIAL.match(told.strip()) else clean_line(told)


def _worked(call: ToolCall) -> bool:
    return call.status == "success" and not _FAILED.search(json.dumps(call.result, default=str, ensure_ascii=False))


def _may_be_kept(fact: str) -> bool:
    """Neither empty, a task, momentary, an import nor a secret."""
    return 2 < len(fact) <= LONGEST and "@" not in fact and momentary(fact) is None and Redactor().text(fact) == fact


def _chosen(found: Sequence[Suggestion], llm: Llm) -> list[Suggestion]:
    """Those that the model takes, in its words; each keeps its sources, and it cannot add one of its own."""
    listed = "\n".join(f"{number}. {s.fact}" for number, s in enumerate(found, 1))
    asked = (
        "Below are statements from past talks. For each that states a lasting command, convention or preference of"
        f" the project, write one line `number. statement`, short and general; leave out all others.\n\n{listed}"
    )
    try:
        told = "".join(chunk.text for chunk in llm.stream([Turn.prompt(asked)]))
    except LlmError:
        return list(found)
    taken: dict[int, Suggestion] = {}
    for number, wording in re.findall(r"^\s*([0-9]{1,6})\. +(.+)$", told, re.MULTILINE):
        fact = clean_line(wording)
        if 0 < int(number) <= len(found) and _may_be_kept(fact):
            one = found[int(number) - 1]
            taken.setdefault(int(number), Suggestion(fact, one.kind, one.sources))
    return list(taken.values())


def propose(suggestions: Sequence[Suggestion], folder: Path, target: Path) -> list[Path]:
    """Write each suggestion as a patch of `target` into the inbox of the memory folder; the paths of the patches.

    Each fits whether or not the others are applied before it. What `target` has already is left out.

    Raises:
        MemoryFileError: the inbox cannot be written.
    """
    held = _text_of(target)
    known = {normal(line.strip(" \t-*")) for line in held.splitlines()}
    known |= {normal(fact) for fact in _waiting(folder / ".inbox" / "private")}
    place = folder / ".inbox" / "private"
    written: list[Path] = []
    try:
        for part in (folder, folder / ".inbox", place):
            if kind_of(part) not in (None, "folder"):
                raise MemoryFileError(f"{part} is no folder; nothing was proposed.")
            private_folder(part)
        for suggestion in suggestions:
            if normal(suggestion.fact) in known:
                continue
            path = place / f"suggested-{uuid.uuid4().hex[:12]}.patch"
            create(path, patch_for(suggestion, held, target).encode("utf-8", "replace"))
            written.append(path)
    except OSError as error:
        raise MemoryFileError(f"{place} could not be written: {error.strerror}.") from None
    return written


def patch_for(suggestion: Suggestion, held: str, target: Path) -> str:
    """A unified diff that adds the fact after the last line of `held`, with its sources before the headers."""
    lines = held.split("\n")
    whole = lines[-1] == ""
    last = lines[-2 if whole else -1] if held else ""
    count = len(lines) - whole
    item = f"+- {suggestion.fact}\n"
    if not held:
        hunk = f"@@ -0,0 +1 @@\n{item}"
    elif whole:
        hunk = f"@@ -{count} +{count},2 @@\n {last}\n{item}"
    else:
        hunk = f"@@ -{count} +{count},2 @@\n-{last}\n\\ No newline at end of file\n+{last}\n{item}"
    sources = "".join(f"# from {source}\n" for source in suggestion.sources)
    return f"{sources}--- {target}\n+++ {target}\n{hunk}"


def look_through(
    rows: Sequence[SessionInfo],
    load: Callable[[SessionInfo], Session],
    memory: Memory,
    *,
    now: datetime,
    llm: Llm | None = None,
) -> list[Path]:
    """Look through the sessions that were not looked at before; what is worth keeping goes to the inbox.

    Args:
        rows: a listing of one project; only those that are over and long enough are loaded.
        load: gives a session whole.
        memory: of that project.
        now: aware.
        llm: see `suggest`.

    Raises:
        MemoryFileError: the inbox cannot be written; the sessions count as not looked at.
        UnreadableSessionError: a session cannot be read; nothing was proposed.
    """
    looked = memory.folder / ".inbox" / SEEN
    seen = set(_text_of(looked).split()) if kind_of(looked.parent) == "folder" else set()
    over = [row for row in rows if not row.is_current and row.last_updated and now - row.last_updated >= IDLE]
    ready = [row for row in over if row.user_turns >= LEAST_PROMPTS and row.id not in seen and not row.hidden_because]
    sessions = worth_looking_at([load(row) for row in ready], now=now, seen=seen)
    written = propose(suggest(sessions, now=now, llm=llm), memory.folder, memory.targets["private"])
    if sessions:
        _keep(looked, "".join(f"{id}\n" for id in sorted(seen | {session.id for session in sessions})))
    return written


def _keep(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise MemoryFileError(f"{path} could not be written: {error.strerror}.") from None


def _waiting(place: Path) -> Iterator[str]:
    """The facts that wait already."""
    if kind_of(place.parent) == "folder" and kind_of(place) == "folder":
        for path in place.glob("suggested-*.patch"):
            yield from (line[3:] for line in _text_of(path).splitlines() if line.startswith("+- "))


def _text_of(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
