"""Tokens and money by hour, day, model, session, …: sums over what was billed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gemnb.errors import FrameError
from gemnb.frames.columns import Column, to_frame
from gemnb.frames.rows import Answer
from gemnb.model.ledger import ODD
from gemnb.model.records import TOKEN_KINDS

if TYPE_CHECKING:
    import pandas as pd

NO_MODEL = "(no model told)"


@dataclass(frozen=True, slots=True)
class Billed:
    """One answer as far as a bill needs it; the session that it is from need not stay in memory."""

    name: tuple[str, datetime | None]
    """Id and time: the same in every file that a message was copied to."""
    keys: tuple[object, ...]
    model: str | None
    tokens: Mapping[str, int]
    odd: tuple[str, ...]
    """What the file told and was no number of tokens, or no time."""
    live: bool
    cost_usd: float | None


@dataclass(slots=True)
class Group:
    """What the answers of one group come to."""

    keys: Mapping[str, object]
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOKEN_KINDS, 0))
    visible: int = 0
    cost_usd: float | None = None
    answers: int = 0
    unpriced: int = 0
    unpriced_total: int = 0

    def add(self, answer: Billed) -> None:
        """Count one answer."""
        for kind in TOKEN_KINDS:
            self.tokens[kind] += answer.tokens[kind]
        total = answer.tokens["total"]
        self.answers += 1
        self.visible += total if answer.live else 0
        if answer.cost_usd is None:
            self.unpriced += 1
            self.unpriced_total += total
        else:
            self.cost_usd = (self.cost_usd or 0.0) + answer.cost_usd


@dataclass(frozen=True, slots=True)
class Key:
    """Something that usage can be grouped by: its column, and the value that an answer has in it."""

    dtype: str
    meaning: str
    value: Callable[[Answer, ZoneInfo], object]


def _local(row: Answer, zone: ZoneInfo) -> datetime | None:
    try:
        return row.at.astimezone(zone) if row.at else None
    except OverflowError:
        return None


def _hour(row: Answer, zone: ZoneInfo) -> datetime | None:
    """The moment at which its hour began; an hour that comes twice is two."""
    local = _local(row, zone)
    if local is None:
        return None
    into = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    try:
        return local.astimezone(UTC) - into
    except OverflowError:  # where it began there is no year yet
        return None


def _day(row: Answer, zone: ZoneInfo) -> datetime | None:
    local = _local(row, zone)
    return datetime(local.year, local.month, local.day) if local else None


def _week(row: Answer, zone: ZoneInfo) -> datetime | None:
    day = _day(row, zone)
    return day - timedelta(days=day.weekday()) if day else None


def _month(row: Answer, zone: ZoneInfo) -> datetime | None:
    day = _day(row, zone)
    return day.replace(day=1) if day else None


KEYS: Mapping[str, Key] = {
    "hour": Key("datetime64[us, ZONE]", "Beginning of the hour, in the zone asked for.", _hour),
    "day": Key("datetime64[us]", "The day, in the zone asked for.", _day),
    "week": Key("datetime64[us]", "Monday of the week, in the zone asked for.", _week),
    "month": Key("datetime64[us]", "First day of the month, in the zone asked for.", _month),
    "model": Key("category", "Model that answered.", lambda row, _: row.model),
    "project": Key("str", "Name of the project's folder in the store.", lambda row, _: row.owner.project),
    "session": Key(
        "str",
        "Id of the session; what a sub-agent spent is with the session that it worked for.",
        lambda row, _: row.owner.parent or row.owner.info.id,
    ),
    "kind": Key("category", "`main`, or `subagent` for what sub-agents spent.", lambda row, _: row.owner.info.kind),
}


def _of(kind: str) -> Callable[[Group], int]:
    return lambda group: group.tokens[kind]


SUMS: tuple[Column[Group], ...] = (
    Column("answers", "Int64", "Answers, each once.", lambda g: g.answers),
    *(Column(n, "Int64", f"Tokens spent: {n}; rewound and compressed answers too.", _of(n)) for n in TOKEN_KINDS),
    Column("visible", "Int64", "Total tokens of the answers still in a talk.", lambda g: g.visible),
    Column("cost_usd", "Float64", "US dollars, of the priced answers; NA where none is.", lambda g: g.cost_usd),
    Column("unpriced", "Int64", "Answers whose price is unknown.", lambda g: g.unpriced),
    Column("unpriced_total", "Int64", "Total tokens of these.", lambda g: g.unpriced_total),
)


def usage_columns(by: Iterable[str], zone: str) -> tuple[Column[Group], ...]:
    """The columns of `usage_df`: one for each of `by`, then the sums."""
    return (*(_key_column(name, zone) for name in by), *SUMS)


def _key_column(name: str, zone: str) -> Column[Group]:
    key = KEYS[name]
    return Column(name, key.dtype.replace("ZONE", zone), key.meaning, lambda group: group.keys[name])


def usage_frame(
    rows: Iterable[Answer], *, by: Sequence[str], zone: str, dedupe: bool, facts: Mapping[str, object]
) -> pd.DataFrame:
    """One row for each group of `by`, in their order; columns as `usage_columns` has them.

    `attrs["gemnb"]` names in `unpriced_models` the models whose answers have no price, and counts in `odd` the messages
    without a time and the token counts that are none.

    Raises:
        FrameError: `by` names something that cannot be grouped by.
    """
    names = list(dict.fromkeys([by] if isinstance(by, str) else by))
    unknown = [name for name in names if name not in KEYS]
    if unknown or not names:
        raise FrameError(f"Usage by {unknown or names!r} is not to be had: give some of {', '.join(KEYS)}.")
    billed = _billed(rows, names, ZoneInfo(zone))
    groups: dict[tuple[object, ...], Group] = {}
    unpriced: set[str] = set()
    odd: Counter[str] = Counter()
    for answer in _once(billed) if dedupe else billed:
        groups.setdefault(answer.keys, Group(dict(zip(names, answer.keys, strict=True)))).add(answer)
        unpriced |= {answer.model or NO_MODEL} if answer.cost_usd is None else set()
        odd.update(answer.odd)
    frame = to_frame(groups.values(), usage_columns(names, zone)).sort_values(names, ignore_index=True)
    frame.attrs["gemnb"] = {**facts, "tz": zone, "unpriced_models": sorted(unpriced), "odd": dict(odd)}
    return frame


def _billed(rows: Iterable[Answer], names: Sequence[str], zone: ZoneInfo) -> Iterator[Billed]:
    for row in rows:
        odd = [kind for kind in TOKEN_KINDS if row.counts[kind] == ODD]
        yield Billed(
            name=(row.id, row.at),
            keys=tuple(KEYS[name].value(row, zone) for name in names),
            model=row.model,
            tokens={kind: max(count, 0) for kind, count in row.counts.items()},
            odd=(*odd, "at") if row.at is None else tuple(odd),
            live=row.live,
            cost_usd=row.cost_usd,
        )


def _once(answers: Iterable[Billed]) -> Iterable[Billed]:
    """Each message once, whatever files it was copied to; the one still in a talk rather than one that is not."""
    best: dict[tuple[str, datetime | None], Billed] = {}
    for answer in answers:
        held = best.get(answer.name)
        if held is None or (answer.live and not held.live):
            best[answer.name] = answer
    return best.values()
