"""The steps of a talk that an undo can take back: the newest in memory, the older ones on disk until asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from gemnb.errors import NothingToUndoError
from gemnb.model.records import Message
from gemnb.model.session import HistoryStep
from gemnb.model.talk import is_injected

KEPT = 8
"""Steps that stay in memory, each with the talk before it: a talk that goes on for months takes no more of it."""
NAMES = {"rewind": "rewind", "replace": "compression"}
"""What a person calls the steps."""


class Past:
    """The rewinds and replacements of one talk that stand.

    Args:
        history: all of them so far, in order.
        recall: reads them again from the disk.
    """

    def __init__(self, history: Iterable[HistoryStep], *, recall: Callable[[], Iterable[HistoryStep]]) -> None:
        self._recall = recall
        self.renew(history)

    def renew(self, history: Iterable[HistoryStep]) -> None:
        """Take `history`, as the disk has it, for what was."""
        self._steps = standing_steps(history)
        self._older = False
        self._forget()

    def add(self, kind: str, before: Iterable[Message], after: Iterable[str], *, saved: bool) -> None:
        """Note a step, which is on disk where it is `saved`; what is only in memory stays there."""
        messages = tuple(before)
        self._steps.append(HistoryStep(kind, ids_of(messages), tuple(after), messages=messages))
        if saved:
            self._forget()

    def made(self, message_id: str) -> HistoryStep | None:
        """The last replacement that brought in the message."""
        found = (step for step in reversed(self._steps) if step.kind == "replace" and message_id in step.after)
        return next(found, None)

    def take(self, kind: str, talk: Collection[str]) -> HistoryStep:
        """Take back the last step; only the last, for what it left is what the ones before it do not know.

        Args:
            kind: what it must be.
            talk: ids of the messages as they stand.

        Raises:
            NothingToUndoError: there is none of that kind, or another one came after it.
        """
        if self._older and not any(step.kind == kind for step in self._that_took(talk)):
            recalled = standing_steps(self._recall())
            if len(recalled) > len(self._steps):
                self._steps, self._older = recalled, False
        taken = self._that_took(talk)
        if not any(step.kind == kind for step in taken):
            raise NothingToUndoError(
                f"There is no {NAMES[kind]} to undo in this session; `%rewind` shows the talk as it is."
            )
        step = taken[-1]
        if step.kind != kind:
            other = NAMES[step.kind]
            raise NothingToUndoError(f"A {other} came after the {NAMES[kind]}: undo the {other} first.")
        del self._steps[self._steps.index(step) :]
        self._forget()
        return step

    def _that_took(self, talk: Collection[str]) -> list[HistoryStep]:
        """The steps that dropped something which is not in the talk now; a mere writing back did not."""
        return [s for s in self._steps if any(m.id not in talk for m in s.messages if not is_injected(m))]

    def _forget(self) -> None:
        self._older = self._older or len(self._steps) > KEPT
        del self._steps[:-KEPT]


def standing_steps(history: Iterable[HistoryStep]) -> list[HistoryStep]:
    """The steps that took something away and were not taken back since, in order."""
    standing: list[HistoryStep] = []
    for step in history:
        undone = [n for n, earlier in enumerate(standing) if step.after[: len(earlier.before)] == earlier.before]
        if undone:
            del standing[undone[-1] :]
        elif not set(step.before) <= set(step.after):
            standing.append(step)
    return standing


def ids_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """The ids of `messages`, in order."""
    return tuple(message.id for message in messages)
