"""A live talk: prompts go out, answers and tool calls come in, everything is recorded as it happens."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any

from gemnb.errors import GemnbWarning, LlmError, OutputError, PromptError, TalkChangedError, TurnLimitError
from gemnb.model.outcome import WORDS, Outcome
from gemnb.model.records import Header, JsonObject, Message, Tokens, ToolCall, as_count
from gemnb.model.session import HistoryStep
from gemnb.model.talk import SNAPSHOT, is_injected, prompts
from gemnb.model.turns import Turn, merged_contents
from gemnb.services import compression
from gemnb.services import tools as tool_service
from gemnb.services.answer import Answer
from gemnb.services.audit import FLOOR, NO_FACTS
from gemnb.services.compression import Compression, Status
from gemnb.services.live_talk import Clock, LiveTalk, iso
from gemnb.services.llm import Chunk, Llm, ToolDeclaration
from gemnb.services.tools import ToolResult
from gemnb.store.live import LiveJournal

MAX_ROUNDS = 50
"""Requests that one prompt may cost because of tools."""
REFUSED = "The person did not allow this call."

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


class Stopped(KeyboardInterrupt):
    """An interrupt that was dealt with; the words say how things stand."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython; the cells that wait behind do not run."""
        return [f"Cancelled: {self}"]


class Cancelled(Stopped):
    """An interrupt while the model answered; what had come is recorded, and is in `reply`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{WORDS[Outcome.CANCELLED]} What had come is kept.")
        self.reply = reply


class Chat(LiveTalk):
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

    >>> chat = ws.resume(19)
    >>> chat.send("What is still open?").outcome
    <Outcome.COMPLETED: 'completed'>
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
        super().__init__(header=header, messages=messages, journal=journal, clock=clock, new_id=new_id, past=past)
        self._llm = llm
        self._limit = limit
        self._threshold = threshold
        self._save_output = save_output
        self._system = system
        self._context = context
        self._tools: tuple[ToolDeclaration, ...] = ()
        self._compression_failed = False
        self.approve: Approve | None = None
        """Asked before each call; a call that it does not allow is recorded as refused. None allows all."""
        self.max_rounds = MAX_ROUNDS
        self.last_reply: Reply | None = None
        """Of the last prompt; None until its answer has ended."""
        self._answering: Generator[Chunk] | None = None

    def __repr__(self) -> str:
        return (
            f"<Chat {self.session_id[:8]}: {len(self.messages)} messages, {self.recording};"
            f" last: {self.last_prompt[:60]!r}>"
        )

    @property
    def last_prompt(self) -> str:
        """The last prompt of the person in the talk; empty where there is none.

        >>> chat.last_prompt
        'Add a footnote about the old surveys, then stop for today.'
        """
        return next((m.text for m in reversed(list(prompts(self.messages)))), "")

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """The functions that the model may call.

        >>> def count_rows(table: str) -> int:
        ...     return 42
        >>> chat.tools = [count_rows]
        >>> chat.send("Use count_rows on 'rivers'.").tool_calls[0].name
        'count_rows'
        """
        return [declaration.function for declaration in self._tools]

    @tools.setter
    def tools(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._tools = tool_service.declare_all(functions)

    def contents(self) -> list[JsonObject]:
        """The Contents that would be sent now, injected context first; thoughts are here, and stay home on the wire.

        >>> chat.contents()[0]["parts"][-1]["text"][:28]
        'We write the yearly report o'
        """
        return merged_contents(self._request())

    def send(self, text: str) -> Reply:
        """Send `text` and wait for the whole answer; see `stream`.

        Raises:
            Cancelled: an interrupt; what had come is recorded.

        >>> chat.send("What is still open?").outcome
        <Outcome.COMPLETED: 'completed'>
        """
        for _ in self.stream(text):
            pass
        assert self.last_reply is not None  # the stream ran to its end
        return self.last_reply

    def stream(self, text: str) -> Generator[Chunk]:
        """Record `text` at once, send it, and yield the answer piece by piece; `last_reply` tells how it ended.

        Leaving the pieces before their end, or sending the next prompt, cancels the answer; what had come is recorded.

        Raises:
            PromptError: `text` is no text; nothing was recorded or sent.
            TurnLimitError: the session has as many prompts as the settings allow; nothing was recorded or sent.
            NoKeyError: there is no model to ask; nothing was recorded.

        >>> for chunk in chat.stream("What is still open?"):
        ...     print(chunk.text, end="")  # doctest: +ELLIPSIS
        *I am a scripted model...
        >>> chat.last_reply.outcome
        <Outcome.COMPLETED: 'completed'>
        """
        if not isinstance(text, str):
            raise PromptError(f"A prompt is a text, not {type(text).__name__}: `chat.send(str(…))` sends it as one.")
        self._stop_answering()
        self.sync()
        self._check_limit()
        llm = self._llm()
        self._compress_if_large()
        self._record(Message(id=self._new_id(), type="user", timestamp=self._now(), content=[{"text": text}]))
        self.last_reply = None
        self._answering = self._answers(llm)
        return self._answering

    def _stop_answering(self) -> None:
        """Close an answer that nobody reads on, so that what had come of it stands before what follows."""
        answering, self._answering = self._answering, None
        if answering is not None and getgeneratorstate(answering) != GEN_RUNNING:  # running: a tool sends a prompt
            answering.close()

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

    def _check_limit(self) -> None:
        limit = self._limit.turns
        if limit >= 0 and sum(1 for _ in prompts(self._messages.values())) >= limit:
            raise TurnLimitError(limit, source=self._limit.source)

    def _request(self) -> list[Turn]:
        context = self._context()
        return ([Turn.prompt(context, id="context")] if context else []) + self.turns

    def _answers(self, llm: Llm) -> Generator[Chunk]:
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
            try:
                outcome = self._run_calls(message, answer, ran)
            except BaseException as error:
                self._end(answer, Outcome.ERROR, spent, ran, error=f"{type(error).__name__}: {error}")
                raise
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

    def _run_calls(self, message: Message, answer: Answer, ran: list[ToolCall]) -> Outcome:
        """Run the calls of `message`, record each with its result, and say whether the talk goes on.

        What is raised through a tool is raised on, after the results so far were recorded.

        Args:
            message: the answer that asks for them.
            answer: the same, as it came.
            ran: gets the calls.
        """
        outcome = Outcome.COMPLETED
        calls: list[ToolCall] = []
        raised: BaseException | None = None
        for part in answer.calls:
            asked = part["functionCall"]
            call = ToolCall(id=asked.get("id"), name=str(asked.get("name")), args=asked.get("args") or {})
            try:
                result = _cancelled() if raised or outcome is Outcome.CANCELLED else self._run(call)
            except KeyboardInterrupt:
                result, outcome = _cancelled(), Outcome.CANCELLED
            except BaseException as error:  # noqa: BLE001 - raised on below
                raised = error
                result = ToolResult({"error": f"{type(error).__name__}: {error}".rstrip(": ")}, "error")
            if result.status == "cancelled" and outcome is Outcome.COMPLETED:
                outcome = Outcome.REFUSED
            calls.append(_answered(call, result, self._now()))
        self._record(replace(message, tool_calls=tuple(calls)))
        ran += calls
        if raised is not None:
            raise raised
        return outcome

    def _run(self, call: ToolCall) -> ToolResult:
        declaration = next((tool for tool in self._tools if tool.name == call.name), None)
        if declaration is None:
            return ToolResult({"error": f"There is no tool {call.name!r}."}, "error")
        if self.approve is not None and not self.approve(call):
            return ToolResult({"error": REFUSED}, "cancelled")
        return tool_service.run(declaration, call.args)


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
    """The sum of each kind of token; None for no request that told any, and for a kind that none told."""
    if not spent:
        return None
    return Tokens(**{kind.name: _sum(getattr(told, kind.name) for told in spent) for kind in fields(Tokens)})


def _sum(told: Iterable[object]) -> int | None:
    known = [count for count in map(as_count, told) if count is not None]
    return sum(known) if known else None
