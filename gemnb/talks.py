"""How one project's talks begin: new ones, resumed ones, forks, and those that go on from a checkpoint."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from gemnb.errors import GemnbWarning
from gemnb.model.records import Header, JsonObject, Message
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import is_injected
from gemnb.services.chat import Chat, Limit
from gemnb.services.live_talk import iso
from gemnb.services.llm import Llm
from gemnb.services.session_context import session_context
from gemnb.store import live, outputs
from gemnb.store.live import LiveJournal
from gemnb.store.paths import project_hash, session_file_name, store_folder
from gemnb.store.projects import Projects
from gemnb.store.recorder import Recorder, Seen, look
from gemnb.store.sessions import SHORT_ID, SessionStore
from gemnb.store.settings import Settings


@dataclass
class Talks:
    """Joins a session's file, its recorder and the model that answers to one `Chat`.

    Args:
        root: the project's folder.
        projects: the registry that the project is claimed in with its first prompt.
        store: the project's sessions.
        folder: gives the project's folder in the store, which may not be there yet.
        settings: reads the merged settings.
        llm: gives the model, when it is first asked.
        memory: reads the memory that a new talk is given.
        clock: aware time.
        inject: whether a talk begins with the injected context (date, platform, workspace).
    """

    root: str
    projects: Projects
    store: SessionStore
    folder: Callable[[], Path]
    settings: Callable[[], Settings]
    llm: Callable[[], Llm]
    memory: Callable[[], str | None]
    clock: Callable[[], datetime]
    inject: Callable[[], bool]
    _given: list[str | None] = field(default_factory=lambda: [None])

    def new(self) -> Chat:
        """A new session; its file is made with its first prompt."""
        now = iso(self.clock())
        header = self._header(now)
        context = self._context()
        if not context:
            return self._begin(header, [])
        opening = Message(id=uuid.uuid4().hex, type="user", timestamp=now, content=[{"text": context}])
        return self._begin(header, [opening])

    def of_contents(self, contents: Iterable[JsonObject]) -> Chat:
        """A new session that goes on from a checkpoint's Contents."""
        now = iso(self.clock())
        return self._begin(self._header(now), list(_messages_of(contents, now)))

    def fork(self, session: Session) -> Chat:
        """A new session of this project that begins as a copy of `session`, which stays as it is."""
        told = session.header
        header = replace(self._header(iso(self.clock())), summary=told.summary, directories=told.directories)
        return self._begin(header, list(session.messages))

    def resume(self, info: SessionInfo) -> Chat:
        """Go on in the session's own file; one of the older form is carried over by the first record."""
        attached = look(info.path) if info.path.suffix == ".jsonl" else None  # first: what is written meanwhile is new
        session = self.store.load(info)
        path = info.path if attached else info.path.with_suffix(".jsonl")
        return self._chat(session.header, list(session.messages), path, attached=attached, info=info, session=session)

    def give(self, memory: str | None) -> None:
        """The current talk is given this memory from its next prompt on."""
        self._given[:] = [memory]

    def _header(self, now: str) -> Header:
        return Header(
            session_id=self._new_session_id(),
            project_hash=project_hash(self.root),
            start_time=now,
            last_updated=now,
        )

    def _new_session_id(self) -> str:
        """A fresh id; never one whose 8 characters are in use, since the client deletes by these."""
        taken = self.store.short_ids()
        while (id := str(uuid.uuid4()))[:SHORT_ID] in taken:
            continue
        return id

    def _begin(self, header: Header, messages: list[Message]) -> Chat:
        started = datetime.fromisoformat(header.start_time or iso(self.clock()))
        path = self.folder() / "chats" / session_file_name(started, header.session_id)
        return self._chat(header, messages, path, attached=None)

    def _chat(
        self,
        header: Header,
        messages: list[Message],
        path: Path,
        *,
        attached: Seen | None,
        info: SessionInfo | None = None,
        session: Session | None = None,
    ) -> Chat:
        opening = [] if attached else messages  # of a file that is there nothing is held
        recorder = Recorder(
            path,
            begin=lambda: live.begin_records(header, opening),
            whole=lambda: live.begin_records(chat.header, chat.messages),
            prepare=self._prepare,
            clock=self.clock,
            attached=attached,
        )
        first = live.healing_records(session, info) if session and info and attached else ()
        settings = self.settings()
        limit = settings.get("model.maxSessionTurns")
        chat = Chat(
            header=header,
            messages=messages,
            journal=LiveJournal(recorder, first=first),
            llm=self.llm,
            clock=self.clock,
            new_id=lambda: str(uuid.uuid4()),
            limit=Limit(limit.value, limit.source) if isinstance(limit.value, int) else Limit(),
            past=session.history if session else (),
            threshold=_fraction(settings.get("model.compressionThreshold").value),
            save_output=partial(outputs.save, self.folder, header.session_id),
            system=self._system(),
            context=self._context if self.inject() else lambda: None,
        )
        return chat

    def _prepare(self, path: Path) -> Path:
        """Make the project's folders; a new file's place may have moved if another project took its slug meanwhile."""
        if path.parent.parent == self.folder():
            path = self.projects.tmp / self.projects.claim(self.root) / "chats" / path.name
        store_folder(path.parent, below=self.projects.gemini)
        free = live.free_path(path, self.clock())
        if free != path:
            warnings.warn(
                f"{path} is another file, which stays as it is; this talk is recorded in {free.name}, beside it.",
                GemnbWarning,
                stacklevel=2,
            )
        return free

    def _system(self) -> Callable[[], str | None]:
        """Gives the memory as it was when the talk was attached, or the current one's was read anew."""
        given = self._given = [self.memory()]
        return lambda: given[0]

    def _context(self) -> str | None:
        if not self.inject():
            return None
        return session_context(Path(self.root), temp=self.folder(), now=self.clock().astimezone())


def _fraction(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.5


def _messages_of(contents: Iterable[JsonObject], now: str) -> Iterator[Message]:
    """The messages that a checkpoint's Contents make; the injected context is made anew."""
    for content in contents:
        parts = content.get("parts")
        kind = "gemini" if content.get("role") == "model" else "user"
        held = parts if isinstance(parts, list) else []
        message = Message(id=str(uuid.uuid4()), type=kind, timestamp=now, content=held)
        if not is_injected(message):
            yield message
