"""The messages of a live session and the journal that keeps them: recorded, folded, rewound, exported."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from gemnb.errors import GemnbWarning, UnknownMessageError
from gemnb.model.progress import Progress
from gemnb.model.records import Header, Message
from gemnb.model.session import HistoryStep, Session
from gemnb.model.talk import is_resumable, prompts, standing, typed_text
from gemnb.model.turns import Turn
from gemnb.services.export import Exported, export
from gemnb.services.foreign import Left, Ours, merge
from gemnb.services.past import Past, ids_of
from gemnb.services.projection import history
from gemnb.store.live import LiveJournal
from gemnb.store.recorder import RecordingHealth
from gemnb.store.titles import title_of

Clock = Callable[[], datetime]


class LiveTalk:
    """A talk that goes on: what `Chat` keeps, apart from who answers.

    Args:
        header: the session's header; its id stays.
        messages: the talk so far.
        journal: where records go.
        clock: aware time.
        new_id: makes message ids.
        past: the rewinds and replacements of the session so far, for an undo.
    """

    def __init__(
        self,
        *,
        header: Header,
        messages: Iterable[Message],
        journal: LiveJournal,
        clock: Clock,
        new_id: Callable[[], str],
        past: Iterable[HistoryStep] = (),
    ) -> None:
        self.header = header
        self._messages = {message.id: message for message in messages}
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._past = Past(past, recall=self._recall)
        self._own: set[str] = set()
        """The messages of the talk that were recorded here."""
        self._left = Left()
        self._unsaved: set[str] = set()
        self._dropped: set[str] | None = None
        """What the steps of ours dropped that still wait to be written: on disk it stands. None where none waits."""

    @property
    def session_id(self) -> str:
        """The full id of the session.

        >>> chat.session_id == ws.find(19).id
        True
        """
        return self.header.session_id

    @property
    def messages(self) -> list[Message]:
        """The talk as it stands; what another program added is folded in before the next prompt.

        >>> chat.messages[-1].type
        'gemini'
        """
        return list(self._messages.values())

    @property
    def turns(self) -> list[Turn]:
        """What the model is sent next, injected context left out; worked out from `messages`, never kept.

        >>> chat.turns[-1].role
        'model'
        """
        return list(history(self._messages.values()).turns)

    @property
    def recording(self) -> RecordingHealth:
        """Whether the talk is being saved; apart from whether it succeeds.

        >>> chat.recording.active
        True
        """
        return self._journal.health

    def rewind(self, to: int | str) -> None:
        """Drop a prompt and all after it.

        Args:
            to: a message's id, or the number of a prompt as `%rewind` shows it, from 1.

        Raises:
            UnknownMessageError: the talk has no such message.

        >>> chat.rewind(12)
        >>> chat.last_prompt
        'Leave the font for now. What is still open?'
        """
        self.sync()
        target = self._rewind_target(str(to).strip())
        before = self.messages
        self._rewind(target)
        self._note_step("rewind", before)
        if not any(stands or is_resumable(message) for message, stands in standing(self.messages)):
            warnings.warn(
                "Nothing is left to resume: the terminal client would delete this session at its next start."
                " Send a prompt, or `%rewind --undo`.",
                GemnbWarning,
                stacklevel=3,
            )

    def _rewind_target(self, wanted: str) -> str:
        if wanted in self._messages:
            return wanted
        asked = [message.id for message in prompts(self.messages)]
        if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(asked):
            return asked[int(wanted) - 1]
        numbers = f"an id, or a number from 1 to {len(asked)}; `%rewind` lists them" if asked else "the id of one"
        raise UnknownMessageError(f"No message {wanted!r} in the talk: give {numbers}.")

    def undo_rewind(self) -> None:
        """Bring back what the last rewind dropped, with what was said since.

        Raises:
            NothingToUndoError: nothing was dropped, or the talk was compressed since.

        >>> chat.rewind(12)
        >>> chat.undo_rewind()
        >>> chat.last_prompt
        'Add a footnote about the old surveys, then stop for today.'
        """
        self._undo("rewind")

    def undo_compression(self) -> None:
        """Bring back the talk as it was before its last compression, with what was said since.

        Raises:
            NothingToUndoError: it was not compressed, or it was rewound since.

        >>> before = chat.contents()
        >>> _ = chat.compress()
        >>> chat.undo_compression()
        >>> chat.contents() == before
        True
        """
        self._undo("replace")

    def _undo(self, kind: str) -> None:
        self.sync()
        step = self._past.take(kind, self._messages)
        since = [m for m in self.messages if m.id not in step.after and m.id not in step.before]
        self._replace([*step.messages, *since])

    def _note_step(self, kind: str, before: Iterable[Message]) -> None:
        self._past.add(kind, before, self._messages, saved=not self._journal.health.unsaved)

    def _recall(self) -> Sequence[HistoryStep]:
        """The steps as the disk has them."""
        session = self._journal.session()
        return session.history if session and self.session_id.startswith(session.id) else ()

    def export(
        self, path: str | os.PathLike[str], *, redact: bool = False, progress: Progress | None = None
    ) -> Exported:
        """Write the talk to a file; the ending chooses the form: `.json`, `.md`, `.html` or `.ipynb`.

        Args:
            path: where to; a file that is there is replaced.
            redact: replace keys, tokens, passwords and home paths by placeholders; the answer lists them.
            progress: told how many turns are done.

        Raises:
            ExportError: no form has that ending, or the file cannot be written.

        >>> chat.export("report.md", redact=True).path.name
        'report.md'
        """
        asked = next(map(typed_text, prompts(self.messages)), None)
        return export(
            self.messages,
            Path(path),
            session_id=self.session_id,
            title=title_of(self.header.summary, asked, None),
            redact=redact,
            homes=[str(Path.home())] if redact else (),
            progress=progress,
        )

    def sync(self) -> None:
        """Fold in what another program wrote to the session since we last looked, and say so.

        >>> chat.sync()
        >>> len(chat.messages)
        27
        """
        session = self._journal.foreign()
        if session is None:
            return
        if lost := self._lost(session):
            self._restore(session, lost)
            return
        waits = self._dropped is not None
        merged = merge(session, Ours(self._messages, self._own, self._unsaved, self._dropped, self._left))
        self._messages = dict(merged.messages)
        self.header = replace(session.header, session_id=self.session_id)
        if not waits and not self._journal.health.unsaved:
            self._past.renew(session.history)
        if merged.rewrite:
            self._replace(self.messages)
        if told := str(merged):
            warnings.warn(
                f"Another program is writing to this session: {told} at {self._clock():%H:%M:%S}."
                " To go apart from here, resume it with `--fork`.",
                GemnbWarning,
                stacklevel=3,
            )

    def _lost(self, session: Session) -> str | None:
        """What became of the file, where that was no talk going on: in words; None where all is well."""
        if not self.session_id.startswith(session.id):
            return "holds another session now"
        known = {id for step in session.history for id in step.before} | set(ids_of(session.messages))
        gone = self._messages.keys() - self._unsaved - known
        return f"lost {len(gone)} messages that no rewind took" if gone else None

    def _restore(self, session: Session, lost: str) -> None:
        """Keep the talk that the file lost, and see to it that it is recorded whole; what stands there stays."""
        where = self._journal.health.path
        if self.session_id.startswith(session.id):
            self._messages.update({m.id: m for m in session.messages if m.id not in self._messages})
            self._journal.restore(self.header, self.messages)
            done = "the talk was written into it again, whole"
        else:
            self._journal.forsake()
            done = "it is left alone, and the talk goes into a file of its own"
        self._note_unsaved(self._messages)
        warnings.warn(f"The session's file {where} {lost}: {done}.", GemnbWarning, stacklevel=4)

    def _record(self, message: Message) -> None:
        """Keep `message` in the talk and on disk; another record of the same id takes its place."""
        self.sync()
        updated = self._now()
        self._messages[message.id] = message
        self._own.add(message.id)
        self.header = replace(self.header, last_updated=updated)
        self._journal.append(message, last_updated=updated)
        self._note_unsaved([message.id])

    def _replace(self, messages: Sequence[Message]) -> None:
        """Make `messages` the talk, by one record that takes nothing away above it."""
        before = self._messages
        self._messages = {message.id: message for message in messages}
        self._own &= self._messages.keys()
        self._journal.replace(messages, last_updated=self._now())
        self._note_unsaved(self._messages, dropped=before.keys() - self._messages.keys())
        self._look_again(before.keys() | self._messages.keys())

    def _rewind(self, message_id: str) -> None:
        """Drop the message and all after it."""
        knew = frozenset(self._messages)
        ids = list(self._messages)
        dropped = ids[ids.index(message_id) :]
        for id in dropped:
            del self._messages[id]
        self._own.difference_update(dropped)
        self._journal.rewind(message_id)
        self._note_unsaved((), dropped=dropped)
        self._look_again(knew)

    def _look_again(self, knew: Set[str]) -> None:
        """After a step of ours, which may have dropped what came between our look and it."""
        self._left = Left(knew, tuple(self._messages))
        self.sync()

    def _note_unsaved(self, ids: Iterable[str], *, dropped: Iterable[str] | None = None) -> None:
        if not self._journal.health.unsaved:
            self._unsaved.clear()
            self._dropped = None
            return
        self._unsaved.update(ids)
        if dropped is not None:
            self._dropped = (self._dropped or set()).union(dropped)

    def _now(self) -> str:
        return iso(self._clock())


def iso(at: datetime) -> str:
    """`at` as the client writes times: UTC, milliseconds, `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
