"""The session browser: its state and its actions; `browser.js` draws, `gemnb.services.browsing` has the rules."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from gemnb.errors import GemnbError, SessionError, UnreadableSessionError
from gemnb.model.records import JsonObject
from gemnb.model.session import Session, SessionInfo
from gemnb.services import browsing
from gemnb.services.listing import SessionList
from gemnb.services.prices import list_price
from gemnb.services.search import search
from gemnb.workspace import Workspace

REFRESH_S = 0.1
"""Least time between two drawings of a search that is still looking."""
COUNT_S = 1.0
"""Least time between two drawings while tokens are counted: the rows move under the eye."""
PAUSE_S = 0.1
"""What was said is looked through once no letter has come for this long: each one drops the search before it."""
CLOSED = "Closed. `%resume` opens the browser again."


def _told(rows: list[JsonObject], _: object) -> list[JsonObject]:
    """The rows as they are sent, without what is empty: two thousand go with each letter of a search."""
    return [{name: value for name, value in row.items() if value or type(value) is int} for row in rows]


class SessionBrowser(anywidget.AnyWidget):
    """Look through sessions, search them, go on with one; made by `gemnb.browse`.

    Each trait is a part of the state that the front end draws. What a person does comes as `act(name, key)`; a key
    names its session, since the selection may have moved on. Actions may come on another thread while a cell runs.
    """

    _esm = Path(__file__).parent / "browser.js"
    _css = Path(__file__).parent / "browser.css"

    rows = traitlets.List(traitlets.Dict(), help="The sessions that are shown, in their order.").tag(
        sync=True, to_json=_told
    )
    query = traitlets.Unicode("", help="What is looked for.").tag(sync=True)
    selected = traitlets.Unicode(None, allow_none=True, help="Id of the session in the preview.").tag(sync=True)
    sort = traitlets.Enum(browsing.SORTS, "date", help="What the rows are ordered by.").tag(sync=True)
    reverse = traitlets.Bool(False, help="Whether the order is turned round.").tag(sync=True)
    everywhere = traitlets.Bool(False, help="Whether all projects are shown.").tag(sync=True)
    worktrees = traitlets.Bool(False, help="Whether the worktrees of this repository are shown too.").tag(sync=True)
    hidden = traitlets.Bool(False, help="Whether hidden sessions are shown, with the reason.").tag(sync=True)
    asking = traitlets.Unicode(None, allow_none=True, help="Id of the session to delete, until answered.").tag(
        sync=True
    )
    status = traitlets.Unicode("", help="What happened last.").tag(sync=True)
    preview = traitlets.Dict(help="The selected session; see `browsing.preview`.").tag(sync=True)
    card = traitlets.Dict(help="What stands in the browser's place once it is closed.").tag(sync=True)

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._lock = threading.RLock()
        self._infos: dict[str, SessionInfo] = {}
        self._found: dict[str, browsing.Found] = {}
        self._tokens: dict[str, int] = {}
        self._loaded: tuple[str, Session] | None = None
        self._searching = 0
        """Number of the search whose hits count; an older one stops when it sees another."""
        self._limit, self._pictures = browsing.PAGE, False
        self._greeted = False
        self._read()
        self.on_msg(self._message)
        self.observe(self._select, "selected")
        self.observe(self._search, "query")
        self._look()

    def __repr__(self) -> str:
        return self.card.get("title") or repr(self.listing)

    @property
    def listing(self) -> SessionList:
        """The sessions that are shown, as a list."""
        with self._lock:
            shown = [self._infos[row["id"]] for row in self.rows]
        return SessionList(shown, now=self._workspace.clock())

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for whoever shows none a table and text."""
        from gemnb.notebook.display import sessions_html

        bundle = super()._repr_mimebundle_(**kwargs)
        assert bundle is not None  # it has a view
        data, metadata = bundle
        return {**data, "text/plain": repr(self), "text/html": sessions_html(self.listing)}, metadata

    def act(self, name: str, key: str | None = None) -> None:
        """Do what a key or a button asks for.

        Args:
            name: one of `ACTIONS`.
            key: the id of the session that is meant.
        """
        action = ACTIONS.get(name)
        if action is None:
            return
        with self._lock, self.hold_sync():
            try:
                action(self, key)
            except GemnbError as error:
                self.status = str(error)

    def _message(self, _: object, content: object, __: object) -> None:
        if isinstance(content, dict) and isinstance(name := content.get("do"), str):
            key = content.get("id")
            self.act(name, key if isinstance(key, str) else None)

    def _read(self) -> None:
        """Look at the store anew."""
        workspace = self._workspace
        listed = workspace.listing(everywhere=self.everywhere, worktrees=self.worktrees, hidden=self.hidden)
        self._infos = browsing.keyed(listed)
        self._show()
        if self.sort == "tokens":
            self._in_background(self._count_tokens)

    def _show(self) -> None:
        before = [row["id"] for row in self.rows]
        self.rows = browsing.rows_of(
            self._infos,
            self._workspace.clock(),
            query=self.query,
            found=self._found,
            sort=self.sort,
            reverse=self.reverse,
            tokens=self._tokens,
        )
        self.selected = browsing.near(self.rows, before, self.selected)

    def _select(self, _: object) -> None:
        with self._lock:
            self._limit, self._pictures = browsing.PAGE, False
            self._look()

    def _look(self) -> None:
        """Preview what is selected."""
        key = self.selected
        info = self._infos.get(key or "")
        if key is None or info is None:
            self.preview = {}
            return
        try:
            if self._loaded is None or self._loaded[0] != key:
                self._loaded = key, self._workspace.store.load(info)
            told = browsing.preview(self._loaded[1], info, price=list_price, limit=self._limit, pictures=self._pictures)
        except GemnbError as error:
            told = {"title": info.title, "facts": [["Unreadable", str(error)]]}
        self.preview = {**told, "id": key}

    def _search(self, _: object) -> None:
        """Titles and ids at once; what was said as it is found, on a thread of its own."""
        with self._lock, self.hold_sync():
            self._searching += 1
            self._found = {}
            self._show()
            self.status = f"Looking for “{self.query}” …" if self.query.strip() else ""
            number, query = self._searching, self.query
        if query.strip():
            self._in_background(self._look_for, number, query)

    @staticmethod
    def _in_background(work: Callable[..., None], *given: object) -> None:
        threading.Thread(target=work, args=given, daemon=True, name="gemnb-browser").start()

    def _count_tokens(self) -> None:
        """What each session was billed; the rows move as it is known."""
        with self._lock:
            left = {key: info for key, info in self._infos.items() if key not in self._tokens}
        shown_at = time.monotonic()
        for number, (key, info) in enumerate(left.items(), start=1):
            with suppress(UnreadableSessionError):
                self._tokens[key] = browsing.spent(self._workspace.store.load(info))
            if time.monotonic() - shown_at > COUNT_S or number == len(left):
                with self._lock, self.hold_sync():
                    if self.sort != "tokens" or self.card:
                        return
                    self._show()
                    self.status = f"Counted the tokens of {number} of {len(left)} sessions."
                shown_at = time.monotonic()

    def _look_for(self, number: int, query: str) -> None:
        time.sleep(PAUSE_S)
        if number != self._searching:
            return
        found: dict[str, browsing.Found] = {}
        with self._lock:
            listed = [info for info in self._infos.values() if info.state != "unreadable"]
        hits = search(query, listed, self._workspace.store.load)
        shown_at = 0.0
        for _ in browsing.counted(hits, found):
            if number != self._searching:
                return
            if time.monotonic() - shown_at > REFRESH_S:
                self._tell(number, found, "")
                shown_at = time.monotonic()
        matches = sum(one.count for one in found.values())
        self._tell(number, found, f"{matches} matches in what was said, in {len(found)} sessions.")

    def _tell(self, number: int, found: dict[str, browsing.Found], status: str) -> None:
        with self._lock, self.hold_sync():
            if number == self._searching:
                self._found = dict(found)
                self._show()
                self.status = status or self.status

    def _info(self, key: str | None) -> SessionInfo:
        """The session that is meant."""
        info = self._infos.get(key or self.selected or "")
        if info is None:
            raise SessionError("No session is selected: choose one in the list.")
        return info

    def _resume(self, key: str | None, *, fork: bool = False) -> None:
        info = self._info(key)
        if info.is_current and not fork:
            raise SessionError("This session is the current one: `%%gemini` goes on with it.")
        chat = self._workspace.resume(info, fork=fork)
        what = "A copy of" if fork else "Going on with"
        self._close(
            {"title": f"{what} “{info.title}”", "id": chat.session_id, "how": "Write `%%gemini` in the next cell."}
        )

    def _ask(self, key: str | None) -> None:
        info = self._info(key)
        if info.is_current:
            raise SessionError("The current session cannot be deleted: go on with another one first.")
        self.asking, self.status = key or self.selected, ""

    def _delete(self, key: str | None) -> None:
        asked, self.asking = self.asking, None
        if asked is None or key not in (None, asked):
            return
        told = self._workspace.delete(self._info(asked))
        self._loaded = None
        self._read()
        back = " `%sessions delete --undo` brings it back."
        stayed = "; ".join(f"{path.name} stayed: {why}" for path, why in told.stayed)
        self.status = (f"Deleted “{told.title}”.{back}" if told.gone else f"“{told.title}” was not deleted.") + stayed

    def _turn(self, name: str) -> None:
        setattr(self, name, not getattr(self, name))
        self._read()
        if self.query.strip():
            self._search(None)

    def _order(self) -> None:
        self.sort = browsing.SORTS[(browsing.SORTS.index(self.sort) + 1) % len(browsing.SORTS)]
        self._show()
        self.status = f"Sorted by {self.sort}."
        if self.sort == "tokens":
            self._in_background(self._count_tokens)

    def _backwards(self) -> None:
        self.reverse = not self.reverse
        self._show()

    def _more(self) -> None:
        self._limit += browsing.PAGE
        self._look()

    def _with_pictures(self) -> None:
        self._pictures = True
        self._look()

    def _greet(self) -> None:
        """The first view takes the keys; one that a page made again does not."""
        if not self._greeted:
            self._greeted = True
            self.send({"do": "focus"})

    def _close(self, card: JsonObject) -> None:
        self._searching += 1
        self.card = card


ACTIONS: dict[str, Callable[[SessionBrowser, str | None], None]] = {
    "resume": lambda browser, key: browser._resume(key),
    "fork": lambda browser, key: browser._resume(key, fork=True),
    "delete": lambda browser, key: browser._ask(key),
    "confirm": lambda browser, key: browser._delete(key),
    "cancel": lambda browser, _: setattr(browser, "asking", None),
    "sort": lambda browser, _: browser._order(),
    "reverse": lambda browser, _: browser._backwards(),
    "all": lambda browser, _: browser._turn("everywhere"),
    "worktrees": lambda browser, _: browser._turn("worktrees"),
    "hidden": lambda browser, _: browser._turn("hidden"),
    "more": lambda browser, _: browser._more(),
    "pictures": lambda browser, _: browser._with_pictures(),
    "close": lambda browser, _: browser._close({"title": CLOSED}),
    "ready": lambda browser, _: browser._greet(),
}
"""What a person can do beside moving and typing, and `ready`, which a new view says."""


def browse(source: Workspace | None = None) -> SessionBrowser:
    """Open the browser on a project's sessions, as the last value of a cell: `gemnb.browse()`.

    Args:
        source: a workspace; None for the one that the magics work on, else the project of the current folder.

    Returns:
        The browser: `.rows`, `.query` and `.selected` can be read and set. Without a widget front end it shows as a
        table, in a terminal as text. A notebook that was run by nbclient shows the table once it is converted, if it
        was run with `store_widget_state=False`: nbconvert prefers a widget's saved state, and every title is in that.

    >>> browser = gemnb.browse()
    >>> browser.rows[0]["number"]
    24
    """
    return SessionBrowser(source or _workspace())


def _workspace() -> Workspace:
    from IPython.core.getipython import get_ipython

    from gemnb.notebook.extension import ATTRIBUTE, workspace_of
    from gemnb.workspace import open_workspace

    shell = get_ipython()  # type: ignore[no-untyped-call]
    return workspace_of(shell) if shell is not None and hasattr(shell, ATTRIBUTE) else open_workspace()
