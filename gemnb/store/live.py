"""The journal of a live session: a talk's changes as records in the client's form, over a `Recorder`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from gemnb.model.records import Header, JsonObject, Message
from gemnb.model.session import Session, SessionInfo
from gemnb.store import codec
from gemnb.store.paths import kind_of, session_file_name
from gemnb.store.recorder import Recorder, RecordingHealth
from gemnb.store.replay import id_from_name, read_fold, read_session

Clock = Callable[[], datetime]
Prepare = Callable[[Path], Path]


class LiveJournal:
    """Turns what happens in a talk into records; one for each chat.

    Args:
        recorder: appends them.
        first: records that go before the first one of ours, where the client would not see the talk without them.
    """

    def __init__(self, recorder: Recorder, *, first: Iterable[JsonObject] = ()) -> None:
        self._recorder = recorder
        self._first = list(first)

    @property
    def health(self) -> RecordingHealth:
        """How recording stands."""
        return self._recorder.health

    def append(self, message: Message, *, last_updated: str) -> None:
        """Record `message`, then the time of the change."""
        self._record([codec.encode_message(message), codec.update_record(last_updated=last_updated)])

    def replace(self, messages: Sequence[Message], *, last_updated: str) -> None:
        """Record that the talk is now `messages`."""
        self._record([codec.update_record(messages=messages, last_updated=last_updated)])

    def rewind(self, message_id: str) -> None:
        """Record that the message and all after it are dropped."""
        self._record([codec.rewind_record(message_id)])

    def foreign(self) -> Session | None:
        """The session on disk, where another program changed its file since we last looked."""
        seen = self._recorder.changed()
        session = self.session() if seen else None
        if seen and session:
            self._recorder.accept(seen)
        return session

    def session(self) -> Session | None:
        """The session as the disk has it; None where the file cannot be read."""
        try:
            return read_session(self._recorder.path)
        except OSError:
            return None

    def restore(self, header: Header, messages: Sequence[Message]) -> None:
        """Record the talk whole, below what became of the file."""
        self._record(begin_records(header, messages))

    def forsake(self) -> None:
        """Never write to the file again: it is another session's. The next record makes a new one, whole."""
        self._recorder.forsake()

    def _record(self, records: list[JsonObject]) -> None:
        first, self._first = self._first, []
        self._recorder.record(first + records)


def begin_records(header: Header, messages: Sequence[Message]) -> list[JsonObject]:
    """How a file begins: the header, then one list of the messages that are there already."""
    start = [codec.encode_header(header)]
    if messages:
        start.append(codec.update_record(messages=messages, last_updated=header.last_updated))
    return start


def free_path(path: Path, now: datetime) -> Path:
    """`path`, or, where something stands there, a name of the same session that is free."""
    free, at = path, now
    while kind_of(free) is not None:
        free = path.with_name(session_file_name(at, id_from_name(path)))
        at += timedelta(minutes=1)
    return free


def healing_records(session: Session, info: SessionInfo) -> list[JsonObject]:
    """What the client needs to see the talk as we do: a header where it is lost, the talk where it was emptied."""
    if not info.damage_count and info.state == "ok" and info.risk is None:
        return []
    seen = read_fold(info.path, as_client=True)
    healing: list[JsonObject] = []
    if not seen.headers:
        healing.append(codec.encode_header(session.header))
    if list(seen.live) != [message.id for message in session.messages]:
        healing.append(codec.update_record(messages=session.messages, last_updated=session.header.last_updated))
    return healing
