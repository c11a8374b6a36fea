"""Every error that gemnb raises on purpose.

GemnbError
├── SessionError
│   ├── NoSessionsError          NO_SESSIONS_FOUND
│   ├── UnknownSessionError      INVALID_SESSION_IDENTIFIER
│   ├── AmbiguousSessionError    AMBIGUOUS_SESSION_IDENTIFIER
│   ├── UnreadableSessionError   UNREADABLE_SESSION
│   ├── CurrentSessionError      CURRENT_SESSION
│   ├── OtherProjectError        OTHER_PROJECT
│   ├── NoChatError              NO_CHAT
│   ├── UnknownMessageError      UNKNOWN_MESSAGE
│   ├── NothingToUndoError       NOTHING_TO_UNDO
│   └── TalkChangedError         TALK_CHANGED
├── UnsafePathError              UNSAFE_PATH
├── CheckpointError              INVALID_CHECKPOINT
├── TrashError                   TRASH
├── TurnLimitError               TURN_LIMIT
├── PromptError                  INVALID_PROMPT
├── LlmError                     LLM_ERROR
│   └── NoKeyError               NO_API_KEY
├── MemoryFileError              MEMORY_FILE
│   └── MomentaryFactError       MOMENTARY_FACT
├── FrameError                   INVALID_FRAME_ARGUMENT
├── SearchError                  INVALID_SEARCH_ARGUMENT
├── ExportError                  EXPORT_FAILED
├── OutputError                  TOOL_OUTPUT
└── ToolError                    INVALID_TOOL
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar


class GemnbWarning(UserWarning):
    """Something a person should know, which stops nothing.

    >>> warnings.simplefilter("ignore", gemnb.GemnbWarning)
    """


class GemnbError(Exception):
    """Base of every error that gemnb raises on purpose; its message says what to do next.

    >>> try:
    ...     ws.load(99)
    ... except gemnb.GemnbError as error:
    ...     print(error.code)
    INVALID_SESSION_IDENTIFIER
    """

    code: ClassVar[str] = "GEMNB_ERROR"
    """Stable name for programs, the Gemini CLI's where it has one; messages may change."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython, without what a terminal obeys: the message says what to do, the frames do not."""
        told = "".join(char for char in str(self) if char.isprintable() or char in "\n\u200c\u200d")
        return [f"{type(self).__name__}: {told} [{self.code}]"]


class SessionError(GemnbError):
    """Something about a session."""

    code = "SESSION_ERROR"


class NoSessionsError(SessionError):
    """The project has no session that could be meant."""

    code = "NO_SESSIONS_FOUND"

    def __init__(self) -> None:
        super().__init__("No previous sessions found for this project: start one with `%%gemini` or `ws.new_chat()`.")


class UnknownSessionError(SessionError):
    """What was asked for is neither a keyword, nor a number of the list, nor an id in it."""

    code = "INVALID_SESSION_IDENTIFIER"

    def __init__(self, wanted: str, *, known: int) -> None:
        super().__init__(
            f"No session {wanted!r}: give `latest`, `last-used`, 1 to {known}, an id or a unique prefix of one"
            " (4 characters or more); `%sessions` lists them."
        )
        self.wanted = wanted
        self.known = known


class AmbiguousSessionError(SessionError):
    """A prefix that more than one session id begins with."""

    code = "AMBIGUOUS_SESSION_IDENTIFIER"

    def __init__(self, wanted: str, *, matches: Sequence[str]) -> None:
        super().__init__(f"{wanted!r} is the start of {len(matches)} ids: {', '.join(matches)}; give more of one.")
        self.wanted = wanted
        self.matches = tuple(matches)


class UnreadableSessionError(SessionError):
    """A session file that holds nothing that could be read."""

    code = "UNREADABLE_SESSION"


class CurrentSessionError(SessionError):
    """The current session cannot be deleted or resumed onto itself."""

    code = "CURRENT_SESSION"


class OtherProjectError(SessionError):
    """A session of another project can be looked at and forked, not gone on with or deleted from here."""

    code = "OTHER_PROJECT"

    def __init__(self, root: str | None) -> None:
        there = f", or move there: `%config Gemnb.root = {root!r}`" if root and Path(root).is_absolute() else ""
        super().__init__(f"It belongs to {root or 'another project'}: fork it to go on in a copy here{there}.")
        self.root = root


class NoChatError(SessionError):
    """No session is attached."""

    code = "NO_CHAT"

    def __init__(self) -> None:
        super().__init__(
            "No session is attached: `%resume latest` goes on with one, `%%gemini` or `ws.new_chat()` starts one."
        )


class UnknownMessageError(SessionError):
    """A message id or prompt number that the talk does not hold."""

    code = "UNKNOWN_MESSAGE"


class NothingToUndoError(SessionError):
    """There is no rewind or compression to undo."""

    code = "NOTHING_TO_UNDO"


class TalkChangedError(SessionError):
    """Another program took messages out of the talk while it was being compressed."""

    code = "TALK_CHANGED"

    def __init__(self) -> None:
        super().__init__(
            "Another program took messages out of this session while it was summed up: it was not compressed."
            " Look at it, then compress again."
        )


class UnsafePathError(GemnbError):
    """A name from a file would lead out of its folder, or is a link; nothing was touched."""

    code = "UNSAFE_PATH"


class CheckpointError(GemnbError):
    """A checkpoint tag that cannot be, is not there, or is there already."""

    code = "INVALID_CHECKPOINT"


class TrashError(GemnbError):
    """A deletion that cannot be undone as asked; nothing was moved."""

    code = "TRASH"


class TurnLimitError(GemnbError):
    """`model.maxSessionTurns` is reached: the prompt was neither recorded nor sent."""

    code = "TURN_LIMIT"

    def __init__(self, limit: int, *, source: str) -> None:
        super().__init__(
            f"This session has reached the limit of {limit} turns that {source} sets (model.maxSessionTurns);"
            " the prompt was not sent. Start a new session with `%resume --new` or `ws.new_chat()`,"
            " or raise the limit there."
        )
        self.limit = limit
        self.source = source


class PromptError(GemnbError):
    """A prompt that is no text; nothing was recorded or sent."""

    code = "INVALID_PROMPT"


class LlmError(GemnbError):
    """The model's service failed; the message is what it said, never the key."""

    code = "LLM_ERROR"


class NoKeyError(LlmError):
    """No API key and no other way to authenticate."""

    code = "NO_API_KEY"


class MemoryFileError(GemnbError):
    """A memory file that cannot be read, written or patched; nothing was changed."""

    code = "MEMORY_FILE"


class MomentaryFactError(MemoryFileError):
    """A fact that looks momentary; `force=True` (or `--force`) keeps it all the same."""

    code = "MOMENTARY_FACT"


class FrameError(GemnbError):
    """A frame was asked for something that it cannot give (an unknown zone, column or source)."""

    code = "INVALID_FRAME_ARGUMENT"


class SearchError(GemnbError):
    """A search was asked to look where nothing can be looked for."""

    code = "INVALID_SEARCH_ARGUMENT"


class ExportError(GemnbError):
    """A talk could not be exported to where it was asked to go."""

    code = "EXPORT_FAILED"


class OutputError(GemnbError):
    """A tool output that a compression trims could not be kept whole; the talk was not compressed."""

    code = "TOOL_OUTPUT"


class ToolError(GemnbError):
    """A function that cannot be offered to the model as a tool."""

    code = "INVALID_TOOL"
