"""Markdown that strangers wrote, made safe: raw HTML is text, links lead to the web or nowhere."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gemnb.model.shown import HALF, UNSEEN

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

SCHEMES = ("http://", "https://", "#")


def safe_markdown(text: str) -> str:
    """`text` fit for a renderer that lets HTML through: unchanged where it holds none and no link leads elsewhere.

    Else every `<` and `[` outside fenced code is escaped: it loses its links, and shows the HTML as it was typed.
    Where that would change which lines are fenced, those inside are escaped too.
    """
    if "<" not in text and "[" not in text:
        return text
    tokens = _parser(html=True).parse(text)
    if all(_is_safe(token) for token in tokens):
        return text
    fenced = {line for token in tokens if token.type == "fence" and token.map for line in range(*token.map)}
    lines = text.split("\n")
    spared = "\n".join(line if number in fenced else _escaped(line) for number, line in enumerate(lines))
    return spared if all(_is_safe(token) for token in _parser(html=True).parse(spared)) else _escaped(text)


def markdown_html(text: str) -> str:
    """`text` rendered to HTML in which nothing runs, no picture is fetched and no character turns what is shown."""
    rendered: str = _parser(html=False).render(HALF.sub("\ufffd", UNSEEN.sub("", text)))
    return rendered


def _escaped(text: str) -> str:
    # entities, for a backslash would itself be escaped by one before it
    return text.replace("<", "&lt;").replace("[", "&#91;")


def _is_safe(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image"):
        return False
    if token.type == "link_open" and not str(token.attrGet("href")).lower().startswith(SCHEMES):
        return False
    return all(_is_safe(child) for child in token.children or ())


@cache
def _parser(*, html: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": html}).enable("table").enable("strikethrough")
    if html:  # a link that the parser refuses is no link to it, but one to a renderer that refuses none: see them all
        parser.validateLink = lambda url: True  # type: ignore[method-assign]  # noqa: ARG005 - its name is the parser's
    else:
        parser.disable("image")
        parser.validateLink = lambda url: url.lower().startswith(SCHEMES)  # type: ignore[method-assign]
    return parser
