"""The public table functions: where the rows come from, and what they are priced with."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gemnb.errors import FrameError
from gemnb.frames import tables as frames
from gemnb.frames import usage
from gemnb.frames.collecting import uncollected
from gemnb.frames.retention import PlanRow, retention_frame
from gemnb.frames.rows import Bill, Messages, SessionRow, answers, bills_of
from gemnb.model.cost import Price
from gemnb.model.ledger import ledger_of
from gemnb.model.session import Session, SessionInfo
from gemnb.model.talk import prompts, typed_text
from gemnb.services.prices import name_of, price_of
from gemnb.store.titles import title_of
from gemnb.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    import pandas as pd

Source = Workspace | Session | Iterable[Workspace] | Iterable[Session] | str | None


Prices = str | Collection[str] | Price
"""What answers cost: `"list"`, `"free"`, names of models on a free tier, or a function; see `services.prices`."""


@uncollected
def sessions_df(source: Source = None, *, hidden: bool = False, prices: Prices = "list") -> pd.DataFrame:
    """One row a session. Its tokens and its cost are those of its own file; `agents_*` are its sub-agents'.

    Args:
        source: None for the project of the current folder, `"all"` for every project of the store, a workspace or
            several, a session or several.
        hidden: also those that a listing does not show.
        prices: what an answer costs. `"list"` is Google's list price of its day, `"free"` a tier on which nothing
            costs anything, names of models are those that you have for nothing; or your own function of model, tokens
            and time.

    Returns:
        Columns as the README has them. `attrs["gemnb"]` tells source, zone, prices and the odd values of each column.

    Raises:
        FrameError: `source` or `prices` is none of these.

    >>> df = gemnb.sessions_df()
    >>> df.nlargest(1, "cost_usd")["title"].item()
    'The yearly report, step by step'
    """
    price = price_of(prices)
    return frames.sessions_frame(_rows(source, hidden=hidden, price=price), _facts(source, price))


@uncollected
def messages_df(source: Source = None, *, hidden: bool = False, prices: Prices = "list") -> pd.DataFrame:
    """One row a message: those of the talk, and those that a rewind or a compression took away but that were paid for.

    Sub-agents' talks are among them (`kind`, `parent_id`). Arguments as for `sessions_df`.

    >>> df = gemnb.messages_df(ws.load(19))
    >>> int((df["type"] == "gemini").sum())
    13
    """
    price = price_of(prices)
    rows = _rows(source, hidden=hidden, agents=True)
    return frames.messages_frame(Messages(rows, price), _facts(source, price))


@uncollected
def tool_calls_df(source: Source = None, *, hidden: bool = False) -> pd.DataFrame:
    """One row a tool call, however often it was recorded. Arguments as for `sessions_df`.

    >>> df = gemnb.tool_calls_df("all")
    >>> df.loc[df["status"] == "error", "name"].value_counts().index[0]
    'read_file'
    """
    return frames.tool_calls_frame(_rows(source, hidden=hidden, agents=True, calls=True), _facts(source))


@uncollected
def usage_df(
    source: Source = None,
    *,
    by: str | Sequence[str] = ("day", "model"),
    tz: str | None = None,
    dedupe: bool = True,
    prices: Prices = "list",
) -> pd.DataFrame:
    """Tokens and money by `by`: some of hour, day, week, month, model, project, session, kind.

    Columns: one for each of `by`; `answers`; the tokens spent by kind; `visible` (total tokens still in a talk);
    `cost_usd` of the priced answers; `unpriced` (answers without a price) and `unpriced_total` (their tokens).
    What a sub-agent spent is with the session that it worked for; `by=["session", "kind"]` has it apart.

    Args:
        source: as for `sessions_df`; everything that was paid for counts, hidden sessions too.
        by: the groups, in this order.
        tz: the IANA zone that days are cut in; by default the machine's. `attrs["gemnb"]["tz"]` tells which.
        dedupe: bill a message once that was copied to another file (a migration, a fork).
        prices: as for `sessions_df`.

    Raises:
        FrameError: an unknown group, zone, source or price.

    >>> df = gemnb.usage_df(by=["model"])
    >>> list(df["model"])
    ['gemini-2.5-flash', 'gemini-2.5-flash-lite', 'gemini-2.5-pro']
    """
    price = price_of(prices)
    told = answers(_rows(source, hidden=True, agents=True), price)
    return usage.usage_frame(told, by=by, zone=_zone(tz), dedupe=dedupe, facts=_facts(source, price))


def retention_df(source: Source = None, *, prices: Prices = "list") -> pd.DataFrame:
    """One row a session that is listed: what the settings' retention would do with it, why and when.

    Nothing is deleted. Columns as the README has them; arguments as for `sessions_df`, but no sessions.

    >>> df = gemnb.retention_df()
    >>> df["decision"].unique().tolist()
    ['keep']
    """
    price = price_of(prices)
    return retention_frame(_planned(source, price), _facts(source, price))


def _planned(source: Source, price: Price) -> Iterator[PlanRow]:
    for one in _sources(source):
        if isinstance(one, Session):
            raise FrameError('A retention plan is a project\'s: give a workspace, "all", or nothing.')
        slug = one.slug
        for candidate in one.retention().candidates:
            (bill,) = bills_of([ledger_of(one.store.load(candidate.session))], price)
            yield PlanRow(slug, candidate, bill.cost_usd)


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


def _facts(source: Source, price: Price | None = None) -> dict[str, object]:
    told: dict[str, object] = {"source": source if isinstance(source, str) else repr(source)[:200], "tz": "UTC"}
    return told | ({"prices": name_of(price)} if price is not None else {})


def _rows(
    source: Source, *, hidden: bool, agents: bool = False, calls: bool = False, price: Price | None = None
) -> Iterator[SessionRow]:
    """The sessions of `source`; with `agents` sub-agents' talks too, with `price` the bill of each."""
    for one in _sources(source):
        if isinstance(one, Session):
            folder = one.path.parent if one.path else Path()
            parent = folder.name if folder.parent.name == "chats" else None
            project = (folder.parent if parent else folder).parent.name
            ledger = ledger_of(one, calls=calls)
            (bill,) = bills_of([ledger], price) if price else (Bill(),)
            yield SessionRow(_info(one), ledger, project, None, parent, bill)
        else:
            yield from _project_rows(one, hidden=hidden, agents=agents, calls=calls, price=price)


def _project_rows(
    one: Workspace, *, hidden: bool, agents: bool, calls: bool, price: Price | None
) -> Iterator[SessionRow]:
    found = one.ledgers(calls=calls)
    parents = _parents(info for info, _ in found)
    bills = [*bills_of([ledger for _, ledger in found], price)] if price else [Bill()] * len(found)
    slug = one.slug
    spent: dict[str | None, Bill] = defaultdict(Bill)
    for (info, _), bill in zip(found, bills, strict=True):
        if info.state == "subagent":
            spent[parents.get(info.id)] += bill
    for (info, ledger), bill in zip(found, bills, strict=True):
        if hidden or info.hidden_because is None or (agents and info.state == "subagent"):
            yield SessionRow(info, ledger, slug, one.root, parents.get(info.id), bill, spent[info.id])


def _parents(listed: Iterable[SessionInfo]) -> Mapping[str, str]:
    """Each sub-agent's id to the id of the session that it worked for; the topmost, where one called another."""
    direct = {info.id: info.path.parent.name for info in listed if info.path.parent.parent.name == "chats"}
    found = {}
    for agent, parent in direct.items():
        top, seen = parent, {agent}
        while top in direct and top not in seen:
            seen.add(top)
            top = direct[top]
        found[agent] = top
    return found


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
                index=here.index,
            )
    else:
        for one in source:
            yield from _sources(one)


def _info(session: Session) -> SessionInfo:
    """The row of a session that a person holds."""
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
