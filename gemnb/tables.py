"""The public table functions: where the rows come from, and what they are priced with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gemnb.errors import FrameError, UnreadableSessionError
from gemnb.frames import tables as frames
from gemnb.frames.retention import PlanRow, retention_frame
from gemnb.frames.tables import MessageRow, SessionRow
from gemnb.model.session import Session, SessionInfo
from gemnb.services.prices import Price, list_price, table_version
from gemnb.store.replay import parse_time
from gemnb.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    import pandas as pd

Source = Workspace | Session | Iterable[Workspace] | Iterable[Session] | str | None


def sessions_df(source: Source = None, *, hidden: bool = False, prices: Price = list_price) -> pd.DataFrame:
    """One row a session.

    Args:
        source: None for the project of the current folder, `"all"` for every project of the store, a workspace or
            several, a session or several.
        hidden: also those that a listing does not show.
        prices: what an answer costs; by default Google's list price of its day.

    Raises:
        FrameError: `source` is none of these.
    """
    return frames.sessions_frame(_rows(source, hidden=hidden), prices, _facts(source))


def messages_df(source: Source = None, *, hidden: bool = False, prices: Price = list_price) -> pd.DataFrame:
    """One row a message: those of the talk, and those that a rewind or a compression took away but that were paid for.

    Sub-agents' talks are among them (`kind`). Arguments as for `sessions_df`.
    """
    return frames.messages_frame(_messages(source, hidden=hidden, prices=prices), _facts(source))


def tool_calls_df(source: Source = None, *, hidden: bool = False) -> pd.DataFrame:
    """One row a tool call, however often it was recorded. Arguments as for `sessions_df`."""
    return frames.tool_calls_frame(_messages(source, hidden=hidden, prices=lambda *_: None), _facts(source))


def usage_df(
    source: Source = None,
    *,
    by: Sequence[str] = ("day", "model"),
    tz: str | None = None,
    dedupe: bool = True,
    prices: Price = list_price,
) -> pd.DataFrame:
    """Tokens and money by `by`: some of hour, day, week, month, model, project, session, kind.

    Columns: one for each of `by`; the tokens spent by kind; `visible` (total tokens still in a talk); `cost_usd` of
    the priced answers; `answers`; `unpriced` (answers without a price).

    Args:
        source: as for `sessions_df`; everything that was paid for counts, hidden sessions too.
        by: the groups, in this order.
        tz: the IANA zone that days are cut in; by default the machine's.
        dedupe: bill a message once that was copied to another file (a migration, a fork).
        prices: as for `sessions_df`.

    Raises:
        FrameError: an unknown group, zone or source.
    """
    rows = _messages(source, hidden=True, prices=prices)
    return frames.usage_frame(rows, by=by, zone=_zone(tz), dedupe=dedupe, facts=_facts(source))


def retention_df(source: Source = None, *, prices: Price = list_price) -> pd.DataFrame:
    """One row a session that is listed: what the settings' retention would do with it, why and when.

    Nothing is deleted. Columns as the README has them; arguments as for `sessions_df`, but no sessions.
    """
    return retention_frame(_planned(source, prices), _facts(source))


def _planned(source: Source, prices: Price) -> Iterator[PlanRow]:
    for one in _sources(source):
        if isinstance(one, Session):
            raise FrameError('A retention plan is a project\'s: give a workspace, "all", or nothing.')
        for candidate in one.retention().candidates:
            session = one.store.load(candidate.session)
            billed = [(m, parse_time(m.timestamp)) for m in session.usage.values() if m.tokens]
            costs = [prices(m.model, m.tokens, at) for m, at in billed if m.tokens]
            yield PlanRow(one.slug, candidate, sum(cost.total for cost in costs if cost))


def _zone(tz: str | None) -> str:
    name = tz if tz is not None else os.environ.get("TZ") or _machine_zone()
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError, TypeError):
        raise FrameError(
            f"There is no time zone {name!r}: give an IANA name such as 'Europe/Berlin' or 'UTC'."
        ) from None
    return name


def _machine_zone() -> str:
    target = os.path.realpath("/etc/localtime")
    return target.partition("zoneinfo/")[2] or "UTC"


def _facts(source: Source) -> dict[str, object]:
    return {"source": source if isinstance(source, str) else repr(source)[:200], "prices": table_version()}


def _messages(source: Source, *, hidden: bool, prices: Price) -> Iterator[MessageRow]:
    held = _rows(source, hidden=True)
    kept = (r for r in held if hidden or r.info.hidden_because is None or r.info.state == "subagent")
    return frames.message_rows(kept, prices)


def _rows(source: Source, *, hidden: bool) -> Iterator[SessionRow]:
    for one in _sources(source):
        if isinstance(one, Session):
            yield SessionRow(_info(one), one, one.path.parent.parent.name if one.path else "", None)
            continue
        for info in one.sessions(hidden=hidden):
            if info.state == "unreadable":
                continue
            try:
                yield SessionRow(info, one.store.load(info), one.slug, one.root)
            except UnreadableSessionError:
                continue


def _sources(source: Source) -> Iterator[Workspace | Session]:
    if source is None:
        yield open_workspace()
    elif isinstance(source, Workspace | Session):
        yield source
    elif isinstance(source, str):
        if source != "all":
            raise FrameError(f'There is no source {source!r}: give "all", a workspace, sessions, or nothing.')
        here = open_workspace()
        for project in here.projects():
            yield Workspace(
                project.root or f"({project.slug})",
                home=here.home,
                llm=None,
                clock=here.clock,
                environ={},
                folders=(project.folder,),
            )
    else:
        for one in source:
            yield from _sources(one)


def _info(session: Session) -> SessionInfo:
    """The row of a session that a person holds."""
    from gemnb.model.talk import prompts, typed_text
    from gemnb.store.titles import title_of

    asked = [typed_text(message) for message in prompts(session.messages)]
    return SessionInfo(
        id=session.id,
        title=title_of(session.header.summary, asked[0] if asked else None, session.first_prompt),
        summary=session.header.summary,
        started_at=session.started_at,
        last_updated=session.last_updated,
        message_count=len(session.messages),
        user_turns=len(asked),
        path=session.path or Path(),
        size_bytes=session.path.stat().st_size if session.path and session.path.exists() else 0,
        kind=session.header.kind,
        damage_count=len(session.damage),
    )
