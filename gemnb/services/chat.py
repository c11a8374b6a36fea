"""A live talk: prompts go out, answers and tool calls come in, everything is recorded as it happens."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any

from gemnb.errors import LlmError, PromptError, TurnLimitError
from gemnb.model.outcome import WORDS, Outcome
from gemnb.model.records import TOKEN_KINDS, Header, JsonObject, Message, Tokens, ToolCall, as_count
from gemnb.model.session import HistoryStep
from gemnb.model.talk import prompts
from gemnb.model.turns import Turn, merged_contents
from gemnb.services import tools as tool_service
from gemnb.services.answer import Answer
from gemnb.services.calls import Approve, run_calls
from gemnb.services.compressible import CompressibleTalk, Stopped
from gemnb.services.live_talk import Clock, iso
from gemnb.services.llm import Chunk, Llm, ToolDeclaration
from gemnb.store.live import LiveJournal

MAX_ROUNDS = 50
"""Requests that one prompt may cost because of tools."""


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


class Cancelled(Stopped):
    """An interrupt while the model answered; what had come is recorded, and is in `reply`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"{WORDS[Outcome.CANCELLED]} What had come is kept.")
        self.reply = reply


class Chat(CompressibleTalk):
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
        super().__init__(
            header=header,
            messages=messages,
            journal=journal,
            clock=clock,
            new_id=new_id,
            past=past,
            llm=llm,
            threshold=threshold,
            save_output=save_output,
        )
        self._limit = limit
        self._system = system
        self._context = context
        self._tools: tuple[ToolDeclaration, ...] = ()
        self.approve: Approve | None = None
        """Asked before each call; a call that it does not allow is recorded as refused. None allows all."""
        self.max_rounds = MAX_ROUNDS
        self.last_reply: Reply | None = None
        """Of the last prompt; None until its answer has ended."""
        self._answering: Generator[Chunk] | None = None

    def __repr__(self) -> str:
        return f"<Chat {self.session_id[:8]}: {self.size}, {self.recording}; last: {self.last_prompt[:60]!r}>"

    @property
    def size(self) -> str:
        """How much there is, in words.

        >>> chat.size
        '27 messages'
        """
        count = len(self.messages)
        return f"{count} message{'' if count == 1 else 's'}" if self.last_prompt else "no prompt yet"

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
        done = run_calls(answer.calls, self._tools, approve=self.approve, now=self._now)
        self._record(replace(message, tool_calls=done.calls))
        ran += done.calls
        if done.raised is not None:
            raise done.raised
        return done.outcome


def summed(spent: Sequence[Tokens]) -> Tokens | None:
    """The sum of each kind of token; None for no request that told any, and for a kind that none told."""
    if not spent:
        return None
    return Tokens(**{kind: _sum(getattr(told, kind) for told in spent) for kind in TOKEN_KINDS})


def _sum(told: Iterable[object]) -> int | None:
    known = [count for count in map(as_count, told) if count is not None]
    return sum(known) if known else None
