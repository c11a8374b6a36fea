"""A live talk that can be summed up: when, with which model, and what becomes of the messages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from gemnb.errors import GemnbWarning, LlmError, OutputError, TalkChangedError
from gemnb.model.records import Header, Message, ToolCall
from gemnb.model.session import HistoryStep
from gemnb.model.talk import SNAPSHOT, is_injected
from gemnb.services import compression
from gemnb.services.audit import FLOOR, NO_FACTS
from gemnb.services.compression import Compression, Status
from gemnb.services.live_talk import Clock, LiveTalk
from gemnb.services.llm import Llm
from gemnb.store.live import LiveJournal


class Stopped(KeyboardInterrupt):
    """An interrupt that was dealt with; the words say how things stand."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython; the cells that wait behind do not run."""
        return [f"Cancelled: {self}"]


class CompressibleTalk(LiveTalk):
    """What `Chat` knows of compression, apart from the answers it waits for.

    Args:
        header, messages, journal, clock, new_id, past: see `LiveTalk`.
        llm: gives the model when it is first needed.
        threshold: of `model.compressionThreshold`.
        save_output: names the file of a tool output that a compression trims, and writes it where told.
    """

    def __init__(
        self,
        *,
        header: Header,
        messages: Iterable[Message],
        journal: LiveJournal,
        clock: Clock,
        new_id: Callable[[], str],
        past: Iterable[HistoryStep],
        llm: Callable[[], Llm],
        threshold: float,
        save_output: Callable[[ToolCall, str, bool], str],
    ) -> None:
        super().__init__(header=header, messages=messages, journal=journal, clock=clock, new_id=new_id, past=past)
        self._llm = llm
        self._threshold = threshold
        self._save_output = save_output
        self._compression_failed = False

    def compress(
        self,
        *,
        force: bool = True,
        dry_run: bool = False,
        pins: Sequence[str] = (),
        floor: Mapping[str, float] = FLOOR,
    ) -> Compression:
        """Sum up the older part of the talk, as one record that takes nothing away above it.

        Anything but success leaves file and talk as they were.

        Args:
            force: whatever the size of the talk; else only from the threshold of the settings on.
            dry_run: ask the model and tell what would come, but change nothing.
            pins: words that the summary has in any case.
            floor: recall by kind of fact below which nothing is changed; `{}` takes any loss.

        Raises:
            LlmError: the service failed.
            TalkChangedError: another program took something out of the talk meanwhile; nothing was changed.
            OutputError: a tool output that would be trimmed could not be kept; nothing was changed.
            Stopped: an interrupt; nothing was changed.

        >>> result = chat.compress(pins=["port 5433"])
        >>> result.status
        <Status.COMPRESSED: 'COMPRESSED'>
        """
        self.sync()
        talk = self.messages
        kept: list[tuple[ToolCall, str]] = []

        def name_of(call: ToolCall, text: str) -> str:
            kept.append((call, text))
            return self._save_output(call, text, False)

        try:
            result = compression.compress(
                talk,
                self._llm,
                force=force,
                threshold=self._threshold,
                failed_before=self._compression_failed,
                nothing_new=self._nothing_new(),
                save=name_of,
                opening=self._opening,
                pins=pins,
                floor=floor,
            )
        except KeyboardInterrupt:
            raise Stopped("The talk was not compressed; it is as it was.") from None
        result = compression.priced(result, self._llm, self._clock())
        if dry_run:
            return replace(result, dry_run=True)
        if result.changed:
            self._keep_outputs(kept)  # only now: what fails or is tried leaves no file behind
            self._take_summed(talk, result.messages)
        if result.status is Status.COMPRESSED:
            self._compression_failed = False
        elif result.status in compression.FAILURES:
            self._compression_failed = True
        return result

    def _take_summed(self, talk: Sequence[Message], summed_up: Sequence[Message]) -> None:
        """Let `summed_up` take the place of `talk`; what another program said while the model wrote it stays."""
        self.sync()
        known = {message.id for message in talk}
        if not known <= self._messages.keys():
            raise TalkChangedError
        before = self.messages
        self._replace([*summed_up, *(message for message in before if message.id not in known)])
        self._note_step("replace", before)

    def _keep_outputs(self, outputs: Iterable[tuple[ToolCall, str]]) -> None:
        try:
            for call, text in outputs:
                self._save_output(call, text, True)
        except OSError as error:
            raise OutputError(
                f"A tool output that would be trimmed could not be kept ({error.strerror or error}):"
                " the talk was not compressed. Make room, then compress again."
            ) from None

    def _compress_if_large(self) -> None:
        """Before a prompt: compress a talk that passes its threshold, and say so in a line. No failure stops it."""
        try:
            result = self.compress(force=False)
        except (LlmError, OutputError, TalkChangedError, OSError) as error:
            self._compression_failed = True
            words = f"The talk is long, and compressing it failed ({error}); it goes on as it is."
        else:
            if result.status is Status.NOOP:
                return
            words = str(replace(result, audit=NO_FACTS))
        warnings.warn(words, GemnbWarning, stacklevel=3)

    def _opening(self, summary: str, acknowledged: str) -> tuple[Message, Message]:
        now = self._now()
        return (
            Message(id=self._new_id(), type="user", timestamp=now, content=[{"text": summary}]),
            Message(id=self._new_id(), type="gemini", timestamp=now, content=[{"text": acknowledged}]),
        )

    def _nothing_new(self) -> bool:
        """Whether nothing was said since the talk was last summed up."""
        first = next((m for m in self.messages if not is_injected(m)), None)
        if first is None or not first.text.lstrip().startswith(SNAPSHOT):
            return False
        made = self._past.made(first.id)
        return made is not None and self._messages.keys() <= set(made.after)
