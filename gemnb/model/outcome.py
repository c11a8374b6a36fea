"""How a prompt ended, and the words that the record has for it."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a prompt ended."""

    COMPLETED = "completed"
    SAFETY = "safety"
    RECITATION = "recitation"
    MAX_TOKENS = "max_tokens"
    BLOCKED = "blocked"
    """The prompt itself was not let through."""
    REFUSED = "refused"
    """The person did not let a tool run."""
    CANCELLED = "cancelled"
    TURN_LIMIT = "turn_limit"
    """The tools went on for more rounds than `Chat.max_rounds`."""
    ERROR = "error"


WORDS = {
    Outcome.SAFETY: "The answer was withheld by a safety filter. Ask in other words.",
    Outcome.RECITATION: "The answer was withheld because it repeats protected material. Ask in other words.",
    Outcome.MAX_TOKENS: "The answer was cut off at the model's output limit. Ask it to go on.",
    Outcome.BLOCKED: "The prompt was blocked before the model saw it. Ask in other words.",
    Outcome.REFUSED: "A tool call was not allowed, so the answer ends here.",
    Outcome.CANCELLED: "The answer was stopped before it was complete.",
    Outcome.TURN_LIMIT: "The model called tools for too many rounds. Ask it to go on, or raise `chat.max_rounds`.",
}
"""What a person reads, and the record says, after an answer that is not complete."""

NOTED = {words: outcome for outcome, words in WORDS.items()}
"""The outcome that a note of ours tells."""
