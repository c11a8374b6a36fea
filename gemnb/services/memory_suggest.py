"""Facts worth keeping, looked for in past sessions; they go to the inbox, never further by themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from gemnb.errors import LlmError, UnreadableSessionError
from gemnb.model.records import ToolCall
from gemnb.model.session import Session, SessionInfo
from gemnb.model.shown import clean_line
from gemnb.model.talk import prompts, typed_text
from gemnb.services import memory_model
from gemnb.services.audit_facts import normal, sentences
from gemnb.services.llm import Llm
from gemnb.services.memory import Memory
from gemnb.services.memory_edit import changing, momentary
from gemnb.services.memory_propose import Source, Suggestion, propose, text_of
from gemnb.services.redaction import PLACEHOLDER, Redactor
from gemnb.store.files import write_whole
from gemnb.store.paths import kind_of

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


class Suggestions(list[Suggestion]):
    """Facts that may be worth keeping."""

    failure: str | None = None
    """Why the model that was asked is of no use; the facts are those that were counted then."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look through past sessions came to."""

    sessions: int
    written: tuple[Path, ...]
    """The patches that were put into the inbox."""
    notes: tuple[str, ...]
    """How it was done and what was not, in sentences."""


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
) -> Suggestions:
    """Facts worth keeping from `sessions`, each with the messages it comes from; nothing is written.

    Args:
        sessions: of one project.
        now: aware.
        seen: ids of sessions that were looked at before.
        llm: finds what counting does not, and words it; where it fails, the facts stay as they were counted.
    """
    places: dict[tuple[str, str], list[Source]] = {}
    words: dict[tuple[str, str], str] = {}
    looked_at = worth_looking_at(sessions, now=now, seen=seen)
    redactor = _secrets_of(looked_at)
    for session in looked_at:
        for kind, fact, message_id in _facts(session, redactor):
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
    if llm is None or not looked_at:
        return Suggestions(found)
    try:
        return Suggestions(memory_model.ask(found, looked_at, llm, redactor=redactor, may_be_kept=_may_be_kept))
    except LlmError as error:
        told = Suggestions(found)
        told.failure = str(error)
        return told


def _is_enough(kind: str, sources: Sequence[Source]) -> bool:
    if kind == "command":
        return len({source.session_id for source in sources}) >= SEVERAL
    return kind == "preference" or len(sources) >= SEVERAL


def _secrets_of(sessions: Sequence[Session]) -> Redactor:
    """A redactor that has met what is said and called in `sessions`: a secret told in one place is known in all."""
    redactor = Redactor()
    for session in sessions:
        for message in session.messages:
            redactor.value([typed_text(message), *(call.args for call in message.tool_calls)])
    return redactor


def _facts(session: Session, redactor: Redactor) -> Iterator[tuple[str, str, str]]:
    """Kind, words and message id of what may be worth keeping."""
    for message in prompts(session.messages):
        for sentence in sentences(redactor.known(redactor.text(typed_text(message)))):
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
            command = redactor.known(_command(call) or "")
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
    plain = "@" not in fact and not PLACEHOLDER.search(fact) and Redactor().text(fact) == fact
    return 2 < len(fact) <= LONGEST and plain and momentary(fact) is None


def look_through(
    rows: Sequence[SessionInfo],
    load: Callable[[SessionInfo], Session],
    memory: Memory,
    *,
    now: datetime,
    llm: Llm | None = None,
) -> Looked:
    """Look through the sessions that were not looked at before; what is worth keeping goes to the inbox.

    A session counts as looked at when what it told is in the inbox: where the model that was asked is of no use, the
    counted facts are proposed, and it is asked again the next time.

    Args:
        rows: a listing of one project; only those that are over and long enough are loaded.
        load: gives a session whole.
        memory: of that project.
        now: aware.
        llm: see `suggest`.

    Raises:
        MemoryFileError: the inbox cannot be written; the sessions count as not looked at.
    """
    looked = memory.folder / ".inbox" / SEEN
    seen = set(text_of(looked).split()) if kind_of(looked.parent) == "folder" else set()
    over = [row for row in rows if not row.is_current and row.last_updated and now - row.last_updated >= IDLE]
    ready = [row for row in over if row.user_turns >= LEAST_PROMPTS and row.id not in seen and not row.hidden_because]
    loaded: list[Session] = []
    notes: list[str] = []
    for row in ready:
        try:
            loaded.append(load(row))
        except UnreadableSessionError as error:
            notes.append(f"Session {clean_line(row.id)} was left out: {error}")
    sessions = worth_looking_at(loaded, now=now, seen=seen)
    found = suggest(sessions, now=now, llm=llm)
    known = [file.text for file in memory.files]
    written = propose(found, memory.folder, memory.targets["private"], known=known)
    if sessions and found.failure is None:
        _keep(looked, "".join(f"{id}\n" for id in sorted(seen | {session.id for session in sessions})))
    return Looked(len(sessions), tuple(written), (_told(len(sessions), len(written), found.failure, llm), *notes))


def _told(sessions: int, written: int, failure: str | None, llm: Llm | None) -> str:
    """How the look went, in a sentence."""
    if not sessions:
        return (
            f"No session to look through: one is looked at once, when it has been over for {IDLE.seconds // 3600} hours"
            f" and holds {LEAST_PROMPTS} prompts."
        )
    if failure is not None:
        how = f"by counting, since the model was of no use ({failure.rstrip('.')}); it is asked again the next time"
    else:
        how = f"with {clean_line(llm.name)}" if llm else "by counting, without a model"
    return f"Looked through {sessions} session{'s' * (sessions > 1)} {how}; new proposals: {written}."


def _keep(path: Path, text: str) -> None:
    with changing([path.parent], path):
        write_whole(path, text.encode("utf-8", "replace"))
