"""Retention of tool outputs by their own age and count; a session that goes takes its own along anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from gemnb.services.retention_policy import SETTLED, Policy
from gemnb.store.outputs import ToolOutput, look_at


@dataclass(frozen=True, slots=True)
class OutputCandidate:
    """One tool output, and what the policy says of it."""

    output: ToolOutput
    decision: str
    """`keep` or `delete`."""
    reason: str

    @property
    def change(self) -> str | None:
        """Why it is not as it was planned; None where it is."""
        now = look_at(self.output.path)
        return None if now == self.output else "it was changed since the plan was made" if now else "it is gone already"


def plan_outputs(
    found: Iterable[ToolOutput], policy: Policy, *, now: datetime, spared: Callable[[str], bool]
) -> tuple[OutputCandidate, ...]:
    """What `policy` says of each output: all follow `max_age`, single files `max_count` too, and `minimum` holds.

    `spared` tells of a session's id that its outputs stay, or go with the session.
    """
    outputs = sorted(found, key=lambda output: (output.changed_at, output.path.name), reverse=True)
    single = [output.path for output in outputs if output.session_id is None]
    beyond = set(single[policy.max_count :]) if policy.max_count is not None else set()
    told = []
    for output in outputs:
        age = now - output.changed_at
        if output.session_id is not None and spared(output.session_id):
            decision, reason = "keep", "it stays with its session, or goes with it"
        elif age < max(policy.minimum, SETTLED):
            decision, reason = "keep", "it is younger than minRetention"
        elif policy.max_age is not None and age > policy.max_age:
            decision, reason = "delete", f"last changed {age.days} days ago, older than maxAge"
        elif output.path in beyond:
            decision, reason = "delete", "beyond the newest maxCount"
        else:
            decision, reason = "keep", "it is within the policy"
        told.append(OutputCandidate(output, decision, reason))
    return tuple(told)
