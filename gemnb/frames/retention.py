"""The table of a retention plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemnb.frames.columns import Column, to_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One session of a plan, with where it is from and what it cost."""

    project: str
    candidate: Any
    """A `services.retention_plan.Candidate`."""
    cost_usd: float | None


RETENTION: tuple[Column[PlanRow], ...] = (
    Column("session_id", "str", "Full id.", lambda r: r.candidate.session.id),
    Column("project", "str", "Name of the project's folder in the store.", lambda r: r.project),
    Column("title", "str", "Summary, else first prompt.", lambda r: r.candidate.session.title),
    Column("last_updated", "datetime64[us, UTC]", "Last change.", lambda r: r.candidate.session.last_updated),
    Column("age_days", "Float64", "Days since then.", lambda r: r.candidate.age_days),
    Column("size_bytes", "Int64", "Size of the session's file, bytes.", lambda r: r.candidate.size_bytes),
    Column("artifacts_bytes", "Int64", "Of what would go with it, bytes.", lambda r: r.candidate.artifacts_bytes),
    Column("state", "category", "As in `sessions_df`.", lambda r: r.candidate.session.state),
    Column("decision", "category", "`keep` or `delete`.", lambda r: r.candidate.decision),
    Column("reason", "str", "Why.", lambda r: r.candidate.reason),
    Column(
        "due_at",
        "datetime64[us, UTC]",
        "When it falls due; NA where nothing makes it so.",
        lambda r: r.candidate.due_at,
    ),
    Column(
        "client_reason",
        "str",
        "Why the terminal client would delete it; NA if not.",
        lambda r: r.candidate.client_reason,
    ),
    Column("cost_usd", "Float64", "US dollars it cost, of the priced answers.", lambda r: r.cost_usd),
)


def retention_frame(rows: Iterable[PlanRow], facts: Mapping[str, object]) -> pd.DataFrame:
    """One row a session; columns as in `RETENTION`."""
    return to_frame(rows, RETENTION, facts)
