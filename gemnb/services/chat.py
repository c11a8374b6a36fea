"""A live talk: prompts go out, answers and tool calls come in, everything is recorded as it happens."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gemnb.errors import GemnbWarning, LlmError, NothingToUndoError, TurnLimitError, UnknownMessageError
from gemnb.model.records import Header, JsonObject, Message, Tokens, ToolCall
from gemnb.model.session import HistoryStep
from gemnb.model.talk import SNAPSHOT, is_injected, prompts, typed_text
from gemnb.model.turns import Turn, merged_contents
from gemnb.services import compression
from gemnb.services import tools as tool_service
from gemnb.services.answer import WORDS, Answer
from gemnb.services.audit import FLOOR, NO_FACTS
from gemnb.services.compression import Compression, Status
from gemnb.services.export import Exported, export
from gemnb.services.llm import Chunk, Llm, Outcome, ToolDeclaration
from gemnb.services.projection import history
from gemnb.services.tools import ToolResult
from gemnb.store.live import LiveJournal
from gemnb.store.recorder import RecordingHealth
from gemnb.store.titles import title_of

MAX_ROUNDS = 50
"""Requests that one prompt may cost because of tools."""
REFUSED = "The person did not allow this call."

Clock = Callable[[], datetime]
Approve = Callable[[ToolCall], bool]


@dataclass(frozen=True, slots=True)
class Limit:
    """The most prompts a session may have, and who says so."""

    turns: int = -1
    """-1 is no limit."""
    source: str = "default"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a prompt. Whether it was recorded is `Chat.recording`'s matter."""

    text: str
    """The text of the last answer, as far as it came."""
    outcome: Outcome
    tokens: Tokens | None = None
    """Of all requests that the prompt took, summed."""
    tool_calls: tuple[ToolCall, ...] = ()
    error: str | None = None
    """What went wrong and what to do, where the outcome is not `completed`."""

    def __str__(self) -> str:
        return self.text if self.error is None else f"{self.text}\n[{self.outcome}: {self.error}]".lstrip()


class Cancelled(KeyboardInterrupt):
    """An interrupt while the model answered; what had come is recorded, and is in `reply`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(WORDS[Outcome.CANCELLED])
        self.reply = reply

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython; the cells that wait behind do not run."""
        return [f"Cancelled: {self} What had come is kept."]


class Chat:
    """The messages so far, the model that answers them and the journal that keeps them.

    Args:
        header: the session's header; its id stays.
        messages: the talk so far.
        journal: where records go.
        llm: gives the model when it is first needed; may raise `NoKeyError`, before anything is recorded.
        clock: aware time.
        new_id: makes message ids.
        limit: of `model.maxSessionTurns`.
        past: the rewinds and replacements of the session so far, for an undo.
        threshold: of `model.compressionThreshold`.
        save_output: names the file of a tool output that a compression trims, and writes it where told.
        system: the system instruction of each request.
        context: the injected start of the talk, fresh for this chat.
    """

    def __init__(
        self,
        *,
        header: Header,
        messages: Iterable[Message],
        journal: LiveJournal,
        llm: Callable[[], Llm],
        clock: Clock,
        new_id: Callable[[], str],
        limit: Limit = Limit(),
        past: Iterable[HistoryStep] = (),
        threshold: float = 0.5,
        save_output: Callable[[ToolCall, str, bool], str] = lambda _call, _text, _write: "nowhere",
        system: Callable[[], str | None] = lambda: None,
        context: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.header = header
        self._messages = {message.id: message for message in messages}
        self._journal = journal
        self._llm = llm
        self._clock = clock
        self._new_id = new_id
        self._limit = limit
        self._threshold = threshold
        self._save_output = save_output
        self._system = system
        self._context = context
        self._tools: tuple[ToolDeclaration, ...] = ()
        self._past = list(past)
        self._compression_failed = False
        self._unsaved: set[str] = set()
        self.approve: Approve | None = None
        """Asked before each call; a call that it does not allow is recorded as refused. None allows all."""
        self.max_rounds = MAX_ROUNDS
        self.last_reply: Reply | None = None

    def __repr__(self) -> str:
        last = next((m.text for m in reversed(self.messages) if m.type == "user"), "")
        return f"<Chat {self.session_id[:8]}: {len(self.messages)} messages, {self.recording}; last: {last[:60]!r}>"

    @property
    def session_id(self) -> str:
        """The full id of the session."""
        return self.header.session_id

    @property
    def messages(self) -> list[Message]:
        """The talk as it stands; what another program added is folded in before the next prompt."""
        return list(self._messages.values())

    @property
    def turns(self) -> list[Turn]:
        """What the model is sent next, injected context left out; worked out from `messages`, never kept."""
        return list(history(self._messages.values()).turns)

    @property
    def recording(self) -> RecordingHealth:
        """Whether the talk is being saved; apart from whether it succeeds."""
        return self._journal.health

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """The functions that the model may call."""
        return [declaration.function for declaration in self._tools]

    @tools.setter
    def tools(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._tools = tool_service.declare_all(functions)

    def contents(self) -> list[JsonObject]:
        """The Contents that would be sent now, injected context first; thoughts are here, and stay home on the wire."""
        return merged_contents(self._request())

    def send(self, text: str) -> Reply:
        """Send `text` and wait for the whole answer; see `stream`.

        Raises:
            Cancelled: an interrupt; what had come is recorded.
        """
        for _ in self.stream(text):
            pass
        assert self.last_reply is not None  # the stream ran to its end
        return self.last_reply

    def stream(self, text: str) -> Iterator[Chunk]:
        """Record `text` at once, send it, and yield the answer piece by piece; `last_reply` tells how it ended.

        Raises:
            TurnLimitError: the session has as many prompts as the settings allow; nothing was recorded or sent.
            NoKeyError: there is no model to ask; nothing was recorded.
        """
        self.sync()
        self._check_limit()
        llm = self._llm()
        self._compress_if_large()
        self._record(Message(id=self._new_id(), type="user", timestamp=self._now(), content=[{"text": text}]))
        return self._answers(llm)

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
        """
        self.sync()
        kept: list[tuple[ToolCall, str]] = []

        def name_of(call: ToolCall, text: str) -> str:
            kept.append((call, text))
            return self._save_output(call, text, False)

        result = compression.compress(
            self.messages,
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
        if dry_run:
            return replace(result, dry_run=True)
        if result.changed:
            for call, text in kept:  # only now: what fails or is tried leaves no file behind
                self._save_output(call, text, True)
            before = tuple(self.messages)
            self._replace(result.messages)
            self._past.append(HistoryStep("replace", _ids(before), tuple(self._messages), messages=before))
        if result.status is Status.COMPRESSED:
            self._compression_failed = False
        elif result.status in compression.FAILURES:
            self._compression_failed = True
        return result

    def _compress_if_large(self) -> None:
        """Before a prompt: compress a talk that passes its threshold, and say so in a line. No failure stops it."""
        try:
            result = self.compress(force=False)
        except (LlmError, OSError) as error:
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
        made = next((step for step in self._past if step.kind == "replace" and first.id in step.after), None)
        return made is not None and self._messages.keys() <= set(made.after)

    def undo_compression(self) -> None:
        """Bring back the talk as it was before its last compression, with what was said since.

        Raises:
            NothingToUndoError: it was not compressed.
        """
        self._undo("replace", "compression")

    def rewind(self, to: int | str) -> None:
        """Drop a prompt and all after it.

        Args:
            to: a message's id, or the number of a prompt as `%rewind` shows it, from 1.

        Raises:
            UnknownMessageError: the talk has no such message.
        """
        self.sync()
        target = self._rewind_target(str(to).strip())
        before = tuple(self.messages)
        self._rewind(target)
        self._past.append(HistoryStep("rewind", _ids(before), tuple(self._messages), target, before))

    def _rewind_target(self, wanted: str) -> str:
        if wanted in self._messages:
            return wanted
        asked = [message.id for message in prompts(self.messages)]
        if wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= len(asked):
            return asked[int(wanted) - 1]
        raise UnknownMessageError(
            f"No message {wanted!r} in the talk: give an id, or a number from 1 to {len(asked)}; `%rewind` lists them."
        )

    def undo_rewind(self) -> None:
        """Bring back what the last rewind dropped, with what was said since.

        Raises:
            NothingToUndoError: nothing was dropped.
        """
        self._undo("rewind", "rewind")

    def _undo(self, kind: str, name: str) -> None:
        self.sync()
        step = next((s for s in reversed(self._past) if s.kind == kind and self._took_away(s)), None)
        if step is None:
            raise NothingToUndoError(f"There is no {name} to undo in this session.")
        self._past.remove(step)
        since = [m for m in self.messages if m.id not in step.after and m.id not in step.before]
        self._replace([*step.messages, *since])

    def _took_away(self, step: HistoryStep) -> bool:
        """Whether `step` dropped something that is not in the talk now; a mere writing back did not."""
        return any(message.id not in self._messages for message in step.messages if not is_injected(message))

    def export(self, path: str | os.PathLike[str], *, redact: bool = False) -> Exported:
        """Write the talk to a file; the ending chooses the form: `.json`, `.md`, `.html` or `.ipynb`.

        Args:
            path: where to; a file that is there is replaced.
            redact: replace keys, tokens, passwords and home paths by placeholders; the answer lists them.

        Raises:
            ExportError: no form has that ending, or the file cannot be written.
        """
        asked = next(map(typed_text, prompts(self.messages)), None)
        return export(
            self.messages,
            Path(path),
            session_id=self.session_id,
            title=title_of(self.header.summary, asked, None),
            redact=redact,
            homes=[str(Path.home())] if redact else (),
        )

    def sync(self) -> None:
        """Fold in what another program wrote to the session since we last looked, and say so."""
        session = self._journal.foreign()
        if session is None:
            return
        own = [m for id, m in self._messages.items() if id in self._unsaved]
        added = [m for m in session.messages if m.id not in self._messages]
        self._messages = {m.id: m for m in (*session.messages, *own)}
        self.header = replace(session.header, session_id=self.session_id)
        if added:
            warnings.warn(
                f"Another program is writing to this session: its {len(added)} new messages were folded in at"
                f" {self._clock():%H:%M:%S}. To go apart from here, resume it with `--fork`.",
                GemnbWarning,
                stacklevel=3,
            )

    def _check_limit(self) -> None:
        limit = self._limit.turns
        if limit >= 0 and sum(1 for _ in prompts(self._messages.values())) >= limit:
            raise TurnLimitError(limit, source=self._limit.source)

    def _request(self) -> list[Turn]:
        context = self._context()
        return ([Turn.prompt(context, id="context")] if context else []) + self.turns

    def _answers(self, llm: Llm) -> Iterator[Chunk]:
        """Answer after answer, until the model calls no more tools."""
        spent: list[Tokens] = []
        ran: list[ToolCall] = []
        for _ in range(self.max_rounds):
            answer = Answer()
            try:
                for chunk in llm.stream(self._request(), system=self._system(), tools=self._tools):
                    answer.add(chunk)
                    yield chunk
            except (LlmError, OSError) as error:
                self._keep(answer, llm, spent)
                self._end(answer, Outcome.ERROR, spent, ran, error=str(error))
                return
            except (KeyboardInterrupt, GeneratorExit) as stop:
                self._keep(answer, llm, spent)
                reply = self._end(answer, Outcome.CANCELLED, spent, ran)
                if isinstance(stop, GeneratorExit):
                    raise
                raise Cancelled(reply) from None
            except BaseException as error:
                self._keep(answer, llm, spent)
                self._end(answer, Outcome.ERROR, spent, ran, error=f"{type(error).__name__}: {error}")
                raise
            message = self._keep(answer, llm, spent)
            if message is None or not answer.calls or answer.outcome is not Outcome.COMPLETED:
                self._end(answer, answer.outcome, spent, ran)
                return
            calls, outcome = self._run_calls(message, answer)
            ran += calls
            if outcome is not Outcome.COMPLETED:
                reply = self._end(answer, outcome, spent, ran)
                if outcome is Outcome.CANCELLED:
                    raise Cancelled(reply)
                return
        self._end(answer, Outcome.TURN_LIMIT, spent, ran)

    def _keep(self, answer: Answer, llm: Llm, spent: list[Tokens]) -> Message | None:
        """Record what came, if it holds anything or cost anything."""
        if answer.tokens:
            spent.append(answer.tokens)
        if not (answer.parts or answer.thoughts or answer.tokens):
            return None
        at = self._clock()
        answer.with_call_ids(str(int(at.timestamp() * 1000)))
        message = answer.message(id=self._new_id(), timestamp=iso(at), model=llm.name)
        self._record(message)
        return message

    def _end(
        self,
        answer: Answer,
        outcome: Outcome,
        spent: Sequence[Tokens],
        ran: Sequence[ToolCall],
        *,
        error: str | None = None,
    ) -> Reply:
        """Note how the prompt ended, after it and in the record."""
        words = error or (answer.problem if outcome is Outcome.ERROR else WORDS.get(outcome))
        if words is not None:
            kind = "error" if outcome is Outcome.ERROR else "info"
            self._record(Message(id=self._new_id(), type=kind, timestamp=self._now(), content=words))
        self.last_reply = Reply(answer.text, outcome, summed(spent), tuple(ran), words)
        return self.last_reply

    def _run_calls(self, message: Message, answer: Answer) -> tuple[list[ToolCall], Outcome]:
        """Run the calls of `message`, record each with its result, and say whether the talk goes on."""
        outcome = Outcome.COMPLETED
        calls: list[ToolCall] = []
        for part in answer.calls:
            asked = part["functionCall"]
            call = ToolCall(id=asked.get("id"), name=str(asked.get("name")), args=asked.get("args") or {})
            try:
                result = self._run(call) if outcome is not Outcome.CANCELLED else _cancelled()
            except KeyboardInterrupt:
                result, outcome = _cancelled(), Outcome.CANCELLED
            if result.status == "cancelled" and outcome is Outcome.COMPLETED:
                outcome = Outcome.REFUSED
            calls.append(_answered(call, result, self._now()))
        self._record(replace(message, tool_calls=tuple(calls)))
        return calls, outcome

    def _run(self, call: ToolCall) -> ToolResult:
        declaration = next((tool for tool in self._tools if tool.name == call.name), None)
        if declaration is None:
            return ToolResult({"error": f"There is no tool {call.name!r}."}, "error")
        if self.approve is not None and not self.approve(call):
            return ToolResult({"error": REFUSED}, "cancelled")
        return tool_service.run(declaration, call.args)

    def _record(self, message: Message) -> None:
        """Keep `message` in the talk and on disk; another record of the same id takes its place."""
        self.sync()
        updated = self._now()
        self._messages[message.id] = message
        self.header = replace(self.header, last_updated=updated)
        self._journal.append(message, last_updated=updated)
        self._note_unsaved([message.id])

    def _replace(self, messages: Sequence[Message]) -> None:
        """Make `messages` the talk, by one record that takes nothing away above it."""
        self._messages = {message.id: message for message in messages}
        self._journal.replace(messages, last_updated=self._now())
        self._note_unsaved(self._messages)

    def _rewind(self, message_id: str) -> None:
        """Drop the message and all after it."""
        ids = list(self._messages)
        for id in ids[ids.index(message_id) :]:
            del self._messages[id]
        self._journal.rewind(message_id)

    def _note_unsaved(self, ids: Iterable[str]) -> None:
        if self._journal.health.unsaved:
            self._unsaved.update(ids)
        else:
            self._unsaved.clear()

    def _now(self) -> str:
        return iso(self._clock())


def _ids(messages: Iterable[Message]) -> tuple[str, ...]:
    return tuple(message.id for message in messages)


def _cancelled() -> ToolResult:
    return ToolResult({"error": "The call was stopped before it was answered."}, "cancelled")


def _answered(call: ToolCall, result: ToolResult, timestamp: str) -> ToolCall:
    """The call with its result, in the client's form."""
    response = {"functionResponse": {"id": call.id, "name": call.name, "response": result.response}}
    return replace(
        call,
        result=[response],
        status=result.status,
        timestamp=timestamp,
        display_name=call.name,
        description="",
        result_display=result.display,
    )


def summed(spent: Sequence[Tokens]) -> Tokens | None:
    """The sum of each kind of token; None for no request that told any."""
    if not spent:
        return None
    return Tokens(
        input=sum(t.input or 0 for t in spent),
        output=sum(t.output or 0 for t in spent),
        cached=sum(t.cached or 0 for t in spent),
        thoughts=sum(t.thoughts or 0 for t in spent),
        tool=sum(t.tool or 0 for t in spent),
        total=sum(t.total or 0 for t in spent),
    )


def iso(at: datetime) -> str:
    """`at` as the client writes times: UTC, milliseconds, `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
