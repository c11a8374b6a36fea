"""The composition root: one project's store, model and current chat."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from gemnb.cleanup import Cleanup
from gemnb.errors import (
    CheckpointError,
    GemnbWarning,
    NoChatError,
    NoKeyError,
    NoSessionsError,
    OtherProjectError,
    SearchError,
)
from gemnb.model.ledger import Ledger
from gemnb.model.progress import Progress
from gemnb.model.session import Session, SessionInfo
from gemnb.model.turns import ChatHistory
from gemnb.services.chat import Chat
from gemnb.services.listing import SessionList
from gemnb.services.llm import Llm
from gemnb.services.memory import Memory, load_memory
from gemnb.services.memory_files import names_of
from gemnb.services.memory_inbox import Inbox, Proposal
from gemnb.services.memory_suggest import look_through
from gemnb.services.projection import history
from gemnb.services.rescue import Rescue
from gemnb.services.retention_plan import RetentionPlan
from gemnb.services.search import Hit, search
from gemnb.store.checkpoints import Checkpoint, Checkpoints
from gemnb.store.index import Index
from gemnb.store.paths import (
    encode_tag,
    home_folder,
    index_file,
    own_folder,
)
from gemnb.store.projects import Project, Projects, repository_of
from gemnb.store.rows import rows_version
from gemnb.store.sessions import Deleted, SessionStore
from gemnb.store.settings import Settings, load_settings
from gemnb.store.trash import Restored
from gemnb.talks import Talks

Clock = Callable[[], datetime]


class Workspace:
    """One project: its sessions, the model that answers, and the chat that is current.

    Made by `open_workspace`. Looking at anything writes nothing.

    >>> ws = gemnb.open_workspace()
    >>> ws.resume("latest").send("Which rivers are left?").outcome
    <Outcome.COMPLETED: 'completed'>
    """

    def __init__(
        self,
        root: str,
        *,
        home: Path,
        llm: Llm | None,
        clock: Clock,
        environ: Mapping[str, str],
        folders: tuple[Path, ...] | None = None,
        index: Index | None = None,
    ) -> None:
        self.root = root
        self.home = home
        self.clock = clock
        self.chat: Chat | None = None
        self.model: str | None = None
        """Name of the model, where it is not the settings' one."""
        self.inject = True
        """Whether a talk begins with the injected context (date, platform, workspace)."""
        self.progress: Progress | None = None
        """Told how far a listing, a table or a search is: `ws.progress = print`."""
        self._shown_proposals: list[Proposal] = []
        self._llm = llm
        self._made: tuple[object, Llm] | None = None
        """The model that was made last, with the name that was wanted."""
        self._environ = environ
        self._projects = Projects(home)
        self.index = index or Index(index_file(), version=rows_version())
        """What listings read of files that did not change since; `index.on = False` reads them all."""
        self.store = self._store(lambda: folders or self._projects.folders(root))
        self._folders = folders
        self._talks = Talks(
            root,
            projects=self._projects,
            store=self.store,
            folder=lambda: self.folder,
            settings=lambda: self.settings,
            llm=lambda: self.llm,
            memory=lambda: self.memory().text or None,
            clock=clock,
            inject=lambda: self.inject,
        )
        self.cleanup = Cleanup(
            self.store,
            own=own_folder(home, environ),
            home=home,
            settings=lambda: self.settings,
            current=lambda: self._current,
            clock=clock,
        )

    def __repr__(self) -> str:
        return f"<Workspace {self.root}: slug {self.slug}, home {self.home}>"

    @property
    def slug(self) -> str:
        """Name of the project's folder in the store: the one it has, else the one it would get.

        >>> ws.slug
        'rivers'
        """
        return self._folders[0].name if self._folders else self._projects.propose(self.root)

    @property
    def folder(self) -> Path:
        """The project's folder in the store; it may not be there yet.

        >>> ws.folder.name
        'rivers'
        """
        return self._projects.tmp / self.slug

    @property
    def settings(self) -> Settings:
        """The merged settings, read anew.

        >>> ws.settings.get("model.maxSessionTurns").source
        'default'
        """
        return load_settings(self.home, self.root, environ=self._environ)

    @property
    def llm(self) -> Llm:
        """The model that answers.

        Raises:
            NoKeyError: there is no key to ask one with.

        >>> ws.llm.name
        'scripted'
        >>> ws.llm = gemnb.testing.ScriptedLlm("Forty-two.")
        >>> ws.new_chat().send("How many rivers?").text
        'Forty-two.'
        """
        if self._llm is not None:
            return self._llm
        name = self.model or self.settings.get("model.name").value
        if self._made is None or self._made[0] != name:
            from gemnb.services.genai import make_llm

            self._made = name, make_llm(name, environ=self._environ)
        return self._made[1]

    @llm.setter
    def llm(self, llm: Llm | None) -> None:
        self._llm = llm

    def sessions(self, *, hidden: bool = False) -> list[SessionInfo]:
        """This project's sessions, numbered as the client numbers them; with `hidden`, the rest after them.

        >>> ws.sessions()[18].title
        'The yearly report, step by step'
        """
        return self.store.list(hidden=hidden, current=self._current)

    def ledgers(self, *, calls: bool = False) -> Sequence[tuple[SessionInfo, Ledger]]:
        """This project's sessions, hidden ones after the others, with what tables need of each; see `SessionStore`.

        >>> len(ws.ledgers())
        25
        """
        return self.store.ledgers(calls=calls, current=self._current)

    def listing(self, *, everywhere: bool = False, worktrees: bool = False, hidden: bool = False) -> SessionList:
        """The sessions as a list that shows itself.

        Args:
            everywhere: of every project of the store.
            worktrees: also of the other worktrees of this project's repository.
            hidden: also those that a list does not show, each with the reason.

        >>> len(ws.listing(worktrees=True))
        28
        """
        rows: list[SessionInfo] = []
        if everywhere or worktrees:
            repository = repository_of(self.root)
            for project in self.projects():
                related = project.root == self.root or (repository and repository == repository_of(project.root or ""))
                if not everywhere and not related:
                    continue
                store = self._store(partial(_only, project.folder))
                named = project.root or f"({project.slug})"
                rows += [replace(row, project_root=named) for row in store.list(hidden=hidden, current=self._current)]
        else:
            rows = self.sessions(hidden=hidden)
            self.cleanup.shown = {row.index: row.id for row in rows if row.index}
        where = "in any project" if everywhere else "in this repository" if worktrees else "in this project"
        return SessionList(rows, now=self.clock(), where=where)

    def find(self, identifier: str | int | SessionInfo) -> SessionInfo:
        """The session that is meant: `latest`, `last-used`, a number, an id or a unique prefix of one, or a row itself.

        Raises:
            NoSessionsError: the project has none.
            UnknownSessionError: it names none.
            AmbiguousSessionError: more than one id begins so.

        >>> ws.find("latest").index
        24
        """
        if isinstance(identifier, SessionInfo):
            return identifier
        return self.store.find(identifier, current=self._current)

    def _own(self, info: SessionInfo) -> SessionInfo:
        """The same row, if it is of this project.

        Raises:
            OtherProjectError: it is of another one.
        """
        if any(info.path.is_relative_to(folder) for folder in self.store.folders):
            return info
        raise OtherProjectError(info.project_root)

    def load(self, identifier: str | int) -> Session:
        """The whole session; see `find`.

        Raises:
            UnreadableSessionError: its file cannot be read.

        >>> ws.load(19).messages[1].text[:28]
        'We write the yearly report o'
        """
        return self.store.load(self.find(identifier))

    def history(self, identifier: str | int) -> ChatHistory:
        """What the model would be sent of a session, and what was mended for it.

        >>> [turn.role for turn in ws.history(19).turns][:3]
        ['user', 'model', 'user']
        """
        return history(self.load(identifier).messages)

    def new_chat(self) -> Chat:
        """Start a new session, which becomes the current one; its file is made with its first prompt.

        >>> chat = ws.new_chat()
        >>> chat.send("How many rivers?").outcome
        <Outcome.COMPLETED: 'completed'>
        """
        return self._attach(self._talks.new())

    def resume(self, identifier: str | int | SessionInfo = "latest", *, fork: bool = False) -> Chat:
        """Go on with a session, which becomes the current one; with `fork`, with a copy of it.

        Nothing is written until something is sent. `latest` in a project without sessions warns and starts anew.

        Args:
            identifier: see `find`; a row may be of another project when it is forked.
            fork: leave the session as it is, and go on in a copy in this project.

        Raises:
            NoSessionsError: the project has none.
            UnknownSessionError: the identifier names none.
            OtherProjectError: the row is of another project, and not to be forked.

        >>> chat = ws.resume(19)
        >>> chat.last_prompt
        'Add a footnote about the old surveys, then stop for today.'
        """
        try:
            info = self.find(identifier)
        except NoSessionsError:
            if str(identifier).strip() != "latest":
                raise
            warnings.warn("No previous session in this project: a new one was started.", GemnbWarning, stacklevel=2)
            return self.new_chat()
        if info.id == self._current and not fork:
            assert self.chat is not None  # it has an id
            return self.chat
        if fork:
            return self._attach(self._talks.fork(self.store.load(info)))
        return self._attach(self._talks.resume(self._own(info)))

    def delete(self, identifier: str | int | SessionInfo, *, purge: bool = False) -> Deleted:
        """Move a session with all that belongs to it to the trash; the answer tells what went and what stayed.

        Args:
            identifier: see `find`.
            purge: delete it for good instead.

        Raises:
            CurrentSessionError: it is the current one.
            OtherProjectError: the row is of another project.
            SessionError: a number that was another session's in the last `listing`; nothing was deleted.

        >>> ws.delete(2).title
        'Docs: install section'
        """
        info = self._own(self.find(identifier))
        if str(identifier).strip() == str(info.index):
            self.cleanup.check_shown(info)
        return self.cleanup.delete(info, purge=purge)

    def undo_deletion(self, how: str | None = None) -> Restored:
        """Bring back what was deleted last, exactly as it was: one session, or all that one cleaning took.

        Args:
            how: only the last deletion of this kind: `delete`, or `retention`.

        Raises:
            TrashError: the trash holds none, or something stands in the way; nothing was moved.

        >>> _ = ws.delete(2)
        >>> print(ws.undo_deletion())
        1 session is back, as it was.
          Docs: install section [48f0c40d-6b48-4f55-a922-fa3410c0c78c]
        """
        return self.cleanup.undo(how)

    def search(
        self, query: str, *, projects: str = "current", hidden: bool = False, limit: int | None = None
    ) -> Iterator[Hit]:
        """Where `query` stands in titles, prompts, answers, tool names and the files of calls.

        Args:
            query: any part of it, in any case and script.
            projects: `current`, or `all` for every project of the store.
            hidden: also in sessions that a listing does not show.
            limit: the most hits.

        Raises:
            SearchError: `projects` is another word.

        >>> [hit.after for hit in ws.search("old surveys")]
        [', then stop for today.']
        """
        if projects not in ("current", "all"):
            raise SearchError(f'There are no projects {projects!r} to search: give "current" or "all".')
        every = projects == "all"
        stores = [self._store(partial(_only, p.folder)) for p in self.projects()] if every else [self.store]
        rows = [row for store in stores for row in store.list(hidden=hidden) if row.state != "unreadable"]
        return search(query, rows, self.store.load, limit=limit, progress=self.progress)

    def memory(self) -> Memory:
        """The memory files that a new talk is given, read now.

        >>> path = ws.memory().add("Run the tests with pytest -q")
        >>> path.name
        'GEMINI.md'
        """
        settings = self.settings
        return load_memory(
            Path(self.root),
            self.home,
            self.folder,
            names=names_of(settings.get("context.fileName").value),
            flat=settings.get("context.importFormat").value == "flat",
            shown=self._shown_proposals,
        )

    def reload_memory(self) -> Memory:
        """The memory files, read now; the current talk is given them from its next prompt on.

        >>> path = ws.memory().add("Run the tests with pytest -q")
        >>> "pytest -q" in ws.reload_memory().text
        True
        """
        memory = self.memory()
        self._talks.give(memory.text or None)
        return memory

    def suggest_memory(self) -> Inbox:
        """Look through this project's past sessions for facts worth keeping; they wait in the inbox, and go no further.

        A session is looked at once, when it has been over for three hours and holds ten prompts or more. A model finds
        what counting does not: it is sent the prompts of these sessions, without secrets, in one request. The inbox's
        notes tell how it went.

        Raises:
            MemoryFileError: the inbox cannot be written.

        >>> print(*ws.suggest_memory().notes)
        Looked through 1 session with scripted; new proposals: 3.
        """
        memory = self.memory()
        try:
            llm: Llm | None = self.llm
        except NoKeyError:
            llm = None
        looked = look_through(self.sessions(), self.store.load, memory, now=self.clock(), llm=llm)
        return memory.inbox(*looked.notes)

    def retention(self) -> RetentionPlan:
        """What the settings' retention would delete, and why; nothing is deleted before `.apply()`.

        >>> ws.retention().candidates[0].reason
        'cleaning is off'
        """
        return self.cleanup.plan()

    def rescue(self, identifier: str | int | None = None) -> Rescue:
        """Keep conversations that the terminal client would delete at its next start.

        An empty start-up file that is the cause goes to the trash; where that is not it, a copy goes to gemnb's
        archive, and `restore_rescued` brings it back when the client took the session.

        Args:
            identifier: one session; by default all that the settings' retention keeps.

        >>> print(ws.rescue())
        No conversation is at risk from the terminal client.
        """
        return self.cleanup.rescue(None if identifier is None else self.find(identifier))

    def restore_rescued(self) -> Restored:
        """Bring back into the store what the archive holds and the store has lost.

        Raises:
            TrashError: something stands in the way; nothing was moved.

        >>> ws.restore_rescued().entries
        ()
        """
        return self.cleanup.restore_rescued()

    def projects(self) -> list[Project]:
        """Every project of the store, orphans too.

        >>> [(p.slug, p.sessions) for p in ws.projects()][0]
        ('calibration', 9)
        """
        return self._projects.all()

    def save_checkpoint(self, tag: str, *, overwrite: bool = False) -> Checkpoint:
        """Save the current talk under `tag`, as the client does.

        Raises:
            NoChatError: nothing is attached.
            CheckpointError: the tag cannot be, or is there already.

        >>> _ = ws.resume(19)
        >>> ws.save_checkpoint("before-the-report").tag
        'before-the-report'
        """
        contents = history(self.attached().messages).contents()
        encode_tag(tag)  # a tag that cannot be leaves no folder behind
        return self._checkpoints(claim=True).save(tag, contents, overwrite=overwrite)

    def checkpoints(self) -> list[Checkpoint]:
        """The project's checkpoints, by tag.

        >>> _ = ws.resume(19)
        >>> _ = ws.save_checkpoint("before")
        >>> [c.tag for c in ws.checkpoints()]
        ['before']
        """
        return list(self._checkpoints())

    def load_checkpoint(self, tag: str) -> Chat:
        """Go on from a checkpoint in a session of its own; the one it was saved in stays as it is.

        Raises:
            CheckpointError: there is none, or it cannot be read.

        >>> _ = ws.resume(19)
        >>> _ = ws.save_checkpoint("before")
        >>> ws.load_checkpoint("before").last_prompt
        'Add a footnote about the old surveys, then stop for today.'
        """
        return self._attach(self._talks.of_contents(self._checkpoints().load(tag)))

    def delete_checkpoint(self, tag: str) -> None:
        """Delete a checkpoint.

        Raises:
            CheckpointError: there is none.

        >>> _ = ws.resume(19)
        >>> _ = ws.save_checkpoint("before")
        >>> ws.delete_checkpoint("before")
        >>> ws.checkpoints()
        []
        """
        if not self._checkpoints().delete(tag):
            raise CheckpointError(
                f"There is no checkpoint {tag!r} to delete: `%resume list` shows those that are there."
            )

    def _store(self, folders: Callable[[], Sequence[Path]]) -> SessionStore:
        return SessionStore(folders, clock=self.clock, index=self.index, progress=lambda: self.progress)

    def _checkpoints(self, *, claim: bool = False) -> Checkpoints:
        try:
            return Checkpoints(self._projects.tmp / self._projects.claim(self.root) if claim else self.folder)
        except OSError as error:
            raise CheckpointError(
                f"The project's folder could not be made: {error.strerror or error}; nothing was saved."
                " Make it writable, then try again."
            ) from None

    def attached(self) -> Chat:
        """The current chat.

        Raises:
            NoChatError: nothing is attached.

        >>> ws.resume(19) is ws.attached()
        True
        """
        if self.chat is None:
            raise NoChatError
        return self.chat

    def _attach(self, chat: Chat) -> Chat:
        self.chat = chat
        return chat

    @property
    def _current(self) -> str | None:
        return self.chat.session_id if self.chat else None


def open_workspace(
    root: str | os.PathLike[str] = ".",
    *,
    home: str | os.PathLike[str] | None = None,
    llm: Llm | None = None,
    clock: Clock | None = None,
    environ: Mapping[str, str] | None = None,
) -> Workspace:
    """Open the project in the folder `root`.

    Args:
        root: the folder that the client was started in; links in its path stay as they are.
        home: the folder that holds `.gemini`; `$GEMINI_CLI_HOME`, else the person's home.
        llm: the model that answers; by default Gemini, with the key of the environment.
        clock: gives the time, aware; by default the machine's.
        environ: the environment; by default the process's, read now.

    >>> ws = gemnb.open_workspace()
    >>> ws.sessions()[18].title
    'The yearly report, step by step'
    """
    environ = os.environ if environ is None else environ
    return Workspace(
        os.path.abspath(root),  # noqa: PTH100 - `Path.resolve` would follow links
        home=Path(home) if home is not None else home_folder(environ),
        llm=llm,
        clock=clock or (lambda: datetime.now(UTC)),
        environ=environ,
    )


def projects(home: str | os.PathLike[str] | None = None) -> list[Project]:
    """Every project of the store below `home` (by default as in `open_workspace`), orphans too.

    >>> [project.slug for project in gemnb.projects()]
    ['calibration', 'fix-dates', 'plots', 'rivers', 'site']
    """
    return Projects(Path(home) if home is not None else home_folder(os.environ)).all()


def _only(folder: Path) -> tuple[Path, ...]:
    return (folder,)
