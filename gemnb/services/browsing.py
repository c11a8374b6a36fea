"""What a session browser shows: rows, their order, what matches, a preview. Rules over values, for any front end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape

from gemnb.model.cost import Price
from gemnb.model.records import JsonObject, Part, parse_time
from gemnb.model.session import Session, SessionInfo
from gemnb.model.shown import clean_line
from gemnb.model.talk import prompts, typed_text
from gemnb.services.export import Entry, entries_of, shown
from gemnb.services.export_html import label_of, part_html, picture_of
from gemnb.services.listing import notes_of
from gemnb.services.search import Hit
from gemnb.store.titles import age_of, shorten

LIVE = timedelta(minutes=1)
"""A session that changed within this time is being written by someone."""
PAGE = 20
"""Messages that a preview shows at first, and adds when asked for more."""
LONGEST = 20_000
"""Characters of one part that a preview renders."""
SORTS = ("date", "messages", "name", "tokens")
"""What rows can be ordered by; all but the name begin with the most."""
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found in one session: how many matches, and the first."""

    count: int
    first: Hit

    def plus(self) -> Found:
        """The same with one match more."""
        return replace(self, count=self.count + 1)


def keyed(infos: Iterable[SessionInfo]) -> dict[str, SessionInfo]:
    """The sessions by a key of their own: the id, or the path where another file has the same id."""
    found: dict[str, SessionInfo] = {}
    for info in infos:
        found[info.id if info.id not in found else str(info.path)] = info
    return found


def matching(infos: Mapping[str, SessionInfo], query: str, found: Mapping[str, Found]) -> dict[str, SessionInfo]:
    """Those whose title or id hold `query`, in any case, or in which `found` has something."""
    word = query.strip().casefold()
    if not word:
        return dict(infos)
    return {
        key: info
        for key, info in infos.items()
        if info.id in found or word in info.title.casefold() or word in info.id.casefold()
    }


def in_order(
    infos: Mapping[str, SessionInfo], sort: str, *, reverse: bool, tokens: Mapping[str, int]
) -> list[tuple[str, SessionInfo]]:
    """The sessions by `sort`, one of `SORTS`; those that a list hides stand last, whatever the order."""
    rows = sorted(
        infos.items(), key=lambda item: _weight(item[0], item[1], sort, tokens), reverse=(sort != "name") != reverse
    )
    return sorted(rows, key=lambda item: bool(item[1].hidden_because))


def _weight(key: str, info: SessionInfo, sort: str, tokens: Mapping[str, int]) -> tuple[datetime, int, str]:
    """What rows are compared by; the parts that `sort` does not ask for are the same for all."""
    match sort:
        case "messages":
            return _NEVER, info.message_count, ""
        case "name":
            return _NEVER, 0, info.title.casefold()
        case "tokens":
            return _NEVER, tokens.get(key, 0), ""
        case _:
            return info.last_updated or info.started_at or _NEVER, 0, ""


def browser_row(key: str, info: SessionInfo, now: datetime, *, found: Found | None, tokens: int | None) -> JsonObject:
    """One row as a front end draws it: all of it text, nothing of it HTML."""
    hit = found.first if found else None
    return {
        "id": key,
        "number": info.index,
        "title": info.title or "(no title)",
        "age": age_of(info.last_updated, now) if info.last_updated else "",
        "messages": info.message_count,
        "tokens": tokens,
        "project": clean_line(info.project_root) if info.project_root else "",
        "marks": notes_of(info),
        "current": info.is_current,
        "live": is_live(info, now),
        "hidden": bool(info.hidden_because),
        "matches": found.count if found else 0,
        "match": [_one_line(piece) for piece in (hit.before, hit.match, hit.after)] if hit else [],
    }


def _one_line(piece: str) -> str:
    """A piece of a sentence, clean, with the space that parts it from its neighbours."""
    return " " * piece[:1].isspace() + clean_line(piece) + " " * (piece[-1:].isspace() and len(piece) > 1)


def is_live(info: SessionInfo, now: datetime) -> bool:
    """Whether another program seems to write it: it changed within the last minute and is not our current one."""
    return not info.is_current and info.last_updated is not None and timedelta() <= now - info.last_updated < LIVE


def spent(session: Session) -> int:
    """Tokens that a session was billed, rewound and compressed answers too."""
    return sum(message.tokens.total or 0 for message in session.usage.values() if message.tokens)


def preview(
    session: Session, info: SessionInfo, *, price: Price, limit: int = PAGE, pictures: bool = False
) -> JsonObject:
    """A session to look at: facts, and its first `limit` messages as safe HTML.

    Args:
        session: the session.
        info: its row.
        price: what an answer cost.
        limit: messages to render; `more` tells how many are left.
        pictures: show them, instead of a word in their place.

    Returns:
        `title`, `facts` (name and value, text), `talk` (HTML of each message), `more`, `pictures`
        (how many are not shown).
    """
    entries = list(entries_of(session.messages))
    parts = [part for entry in entries[:limit] for part in entry.parts]
    return {
        "title": info.title or "(no title)",
        "facts": [[name, value] for name, value in _facts(session, info, price) if value],
        "talk": [entry_html(entry, pictures=pictures) for entry in entries[:limit]],
        "more": max(0, len(entries) - limit),
        "pictures": 0 if pictures else sum(picture_of(part) is not None for part in parts),
    }


def _facts(session: Session, info: SessionInfo, price: Price) -> list[tuple[str, str]]:
    billed = [message for message in session.usage.values() if message.tokens]
    costs = [price(m.model, m.tokens, parse_time(m.timestamp)) for m in billed if m.tokens]
    known = [cost.total for cost in costs if cost]
    unpriced = len(costs) - len(known)
    begun, ended = session.started_at, session.last_updated
    first = next((clean_line(typed_text(message)) for message in prompts(session.messages)), "")
    return [
        ("First prompt", shorten(first)),
        ("Begun", f"{begun:%Y-%m-%d %H:%M} UTC" if begun else ""),
        ("Duration", str(timedelta(seconds=int((ended - begun).total_seconds()))) if begun and ended else ""),
        ("Messages", f"{info.message_count}, {info.user_turns} of them prompts"),
        ("Tokens", f"{spent(session):,}" if billed else ""),
        (
            "Cost",
            f"${sum(known):.4f}" + (f" and {unpriced} answers without a price" if unpriced else "") if billed else "",
        ),
        ("Models", ", ".join(sorted({clean_line(message.model) for message in billed if message.model}))),
        ("Project", clean_line(info.project_root or "")),
        ("Damage", f"{len(session.damage)} places could not be read" if session.damage else ""),
        ("Hidden", clean_line(info.hidden_because or "")),
        ("Id", clean_line(info.id)),
    ]


def entry_html(entry: Entry, *, pictures: bool) -> str:
    """A message as HTML in which nothing runs and nothing is fetched; thoughts, calls and results are folded."""
    told = shown(entry)
    details = " · ".join(escape(word) for word in (told.at, told.model) if word)
    parts = "\n".join(_part(part, pictures=pictures) for part in told.parts)
    return f"<header><strong>{label_of(told)}</strong> <small>{details}</small></header>\n{parts}"


def _part(part: Part, *, pictures: bool) -> str:
    if not pictures and (picture := picture_of(part)):
        return f"<p>[{escape(picture[0])}]</p>"
    text = part.get("text")
    if isinstance(text, str) and len(text) > LONGEST:
        left = len(text) - LONGEST
        return part_html({**part, "text": text[:LONGEST]}) + f"<p><em>… {left:,} characters more</em></p>"
    return part_html(part)


def rows_of(
    infos: Mapping[str, SessionInfo],
    now: datetime,
    *,
    query: str = "",
    found: Mapping[str, Found] | None = None,
    sort: str = "date",
    reverse: bool = False,
    tokens: Mapping[str, int] | None = None,
) -> list[JsonObject]:
    """The rows to draw: those that match, in their order."""
    found, tokens = found or {}, tokens or {}
    ordered = in_order(matching(infos, query, found), sort, reverse=reverse, tokens=tokens)
    return [browser_row(key, info, now, found=found.get(info.id), tokens=tokens.get(key)) for key, info in ordered]


def counted(hits: Iterable[Hit], found: dict[str, Found]) -> Iterable[Hit]:
    """Add each hit to `found` as it comes, and pass it on."""
    for hit in hits:
        before = found.get(hit.session_id)
        found[hit.session_id] = before.plus() if before else Found(1, hit)
        yield hit


def near(rows: Sequence[JsonObject], ids: Sequence[str], gone: str | None) -> str | None:
    """The row to select once `gone` is no more: the next that is left of `ids`, else the one before it, else any."""
    left = {row["id"] for row in rows}
    if gone in left:
        return gone
    place = ids.index(gone) if gone in ids else 0
    around = [*ids[place:], *reversed(ids[:place])]
    return next((id for id in around if id in left), rows[0]["id"] if rows else None)
