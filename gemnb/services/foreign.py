"""What another program made of a talk that goes on here: what of theirs comes in, what of ours stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from gemnb.model.records import Message
from gemnb.model.session import HistoryStep, Session
from gemnb.model.talk import is_injected


@dataclass(frozen=True, slots=True)
class Left:
    """The last rewind or replacement of ours."""

    knew: Set[str] = frozenset()
    """The messages that we knew of."""
    after: tuple[str, ...] | None = None
    """The talk that it left; None before there was one."""


@dataclass(frozen=True, slots=True)
class Ours:
    """A talk as it stood here."""

    messages: Mapping[str, Message]
    own: Set[str]
    """What was recorded here."""
    unsaved: Set[str]
    """What still waits to be written."""
    dropped: Set[str] | None
    """What steps of ours dropped that still wait to be written; None where none waits."""
    left: Left


@dataclass(frozen=True, slots=True)
class Merged:
    """The talk as it goes on."""

    messages: Mapping[str, Message]
    rewrite: bool
    """Whether it must be written anew: what stands on disk is not it."""
    added: int
    put_back: int = 0
    taken: int = 0

    def __str__(self) -> str:
        told = [
            f"its {self.added} new messages were folded in" * bool(self.added),
            f"{self.put_back} messages that it wrote the talk anew without were put back" * bool(self.put_back),
            f"it took {self.taken} messages out" * bool(self.taken),
        ]
        return ", ".join(filter(None, told))


def merge(session: Session, ours: Ours) -> Merged:
    """The talk that `session`, as it is on disk now, and `ours` come to; neither hides a turn of the other's."""
    before = ours.messages
    theirs = {message.id: message for message in session.messages}
    if ours.dropped is not None:  # a step of ours waits, and would hide what is new
        new = {id: m for id, m in theirs.items() if id not in before and id not in ours.dropped}
        return Merged({**before, **new}, rewrite=True, added=len(new))
    gone = [id for id, m in before.items() if id not in theirs and id not in ours.unsaved and _is_spoken(m)]
    back = set(_overlooked(session.history, ours.own & set(gone)))
    slipped = [m for m in _slipped(session.history, ours.left) if m.id not in theirs]
    stays = [m for id, m in before.items() if id in ours.unsaved or id in back]
    messages = theirs | {m.id: m for m in (*stays, *slipped)}
    added = len(messages.keys() - before.keys())
    return Merged(messages, bool(back or slipped), added, len(back), len(gone) - len(back))


def _is_spoken(message: Message) -> bool:
    """Whether a message is part of what was said: the client leaves errors, notes and its context out as it likes."""
    return message.type in ("user", "gemini") and not is_injected(message)


def _slipped(history: Sequence[HistoryStep], left: Left) -> Iterable[Message]:
    """What another program wrote between our last look and the last step of ours, which dropped it unseen."""
    step = next((step for step in reversed(history) if step.after == left.after), None)
    return [message for message in step.messages if message.id not in left.knew] if step else []


def _overlooked(history: Sequence[HistoryStep], gone: Iterable[str]) -> Iterator[str]:
    """Which of the messages `gone` went only because who wrote the talk anew did not know of them.

    A rewind means what it drops. A replacement that brings in nothing new means to drop nothing; one that does is a
    compression, which sums up the older part: what it drops behind the first message that it keeps, it did not know.
    """
    for id in gone:
        step = next((step for step in reversed(history) if id in step.before and id not in step.after), None)
        if step and step.kind == "replace" and id in _unknown_to(step):
            yield id


def _unknown_to(step: HistoryStep) -> set[str]:
    after = set(step.after)
    if after <= set(step.before):
        return set(step.before) - after
    kept = [n for n, message in enumerate(step.messages) if message.id in after and not is_injected(message)]
    return set(step.before[kept[0] :]) - after if kept else set()
