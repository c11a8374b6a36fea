"""What of a page, of Markdown or of plain text would run, fetch, lead away or lie."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

RUNS = {"script", "iframe", "object", "embed", "form", "link", "base", "svg", "math", "audio", "video", "style", "meta"}
FETCHES = {"src", "srcset", "data", "action", "formaction", "poster", "background", "ping"}
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control, escape, bidi and half characters, but for tabs and line ends; no front end can be sent the halves."""


class Tags(HTMLParser):
    """The elements of a page, and what of them runs or fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.evil: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag in RUNS:
            self.evil.append(tag)
        for name, value in attrs:
            link = (value or "").strip().lower()
            fetches = name in FETCHES and not link.startswith("data:image/png;base64,")
            leads = name.endswith("href") and not link.startswith(("http://", "https://", "#"))
            styled = name == "style" and (
                "url(" in link or "fixed" in link or "expression" in link or "@import" in link
            )
            if name.startswith("on") or fetches or leads or styled or name == "srcdoc":
                self.evil.append(f"{tag} {name}={value}")


def evil_html(page: str, *, own: str = "") -> list[str]:
    """What of a page runs or fetches; `own` is what the page's maker put there, a style and a policy."""
    tags = Tags()
    tags.feed(page.replace(own, "", 1) if own else page)
    tags.close()
    return tags.evil


def evil_markdown(text: str) -> list[str]:
    """What of Markdown runs or fetches in a viewer that lets all of HTML and every link through."""
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return evil_html(parser.render(text))


def unseen(text: str) -> list[str]:
    """The characters of a text that a terminal obeys, or that turn what is shown."""
    return UNSEEN.findall(text)
