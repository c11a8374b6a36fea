"""Markdown of strangers: unchanged where it is harmless, and harmless to a renderer that lets everything through."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gemnb.services.markdown import markdown_html, safe_markdown

EVIL = "<img src=x onerror=alert(1)>"


class Found(HTMLParser):
    """Collects what a page would run, fetch or follow."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag in ("img", "script", "svg") or any(name.startswith("on") for name in told):
            self.bad.append(tag)
        if tag == "a" and not (told.get("href") or "").lower().startswith(("http://", "https://", "#")):
            self.bad.append(str(told.get("href")))


def rendered(text: str) -> str:
    """As the most trusting renderer shows it."""
    trusting = MarkdownIt("commonmark", {"html": True})
    trusting.validateLink = lambda url: True  # type: ignore[method-assign]
    return str(trusting.render(text))


@pytest.mark.parametrize("target", ["javascript:alert(1)", "java&#115;cript:alert(1)", "data:text/html;base64,AA"])
@pytest.mark.parametrize("form", ["[x]({})", "\\[x]({})", "\\\\[x]({})", "[x][a]\n\n[a]: {}", "<{}>", "![x]({})"])
def test_a_link_leads_to_the_web_or_nowhere(target: str, form: str) -> None:
    assert not Found(rendered(safe_markdown(form.format(target)))).bad


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        f"<!--\n```\n-->\n```\n{EVIL}\n```",
        f"<div>\n~~~\n</div>\n\n~~~\n{EVIL}\n~~~",
        "<!--\n```\n-->\n```\n[a](javascript:alert(1)) ![p](http://evil/p)\n```",
        f"`` ` {EVIL}",
        f"> ```\n{EVIL}\n> ```",
    ],
)
def test_nothing_runs_however_the_fences_pair(text: str) -> None:
    assert not Found(rendered(safe_markdown(text))).bad
    assert not Found(markdown_html(text)).bad


PIECES = st.sampled_from(
    (
        *("```", "~~~", "<!--", "-->", EVIL, "<div>", "</div>", "[a](javascript:x)", "![p](http://e/p)", "`", "\\"),
        *("\n", "\n\n", "> ", "- ", "    ", "[a]", "[a]: data:x", "<![CDATA[", "]]>", "<?", "?>", "|", "\r", "\t"),
    )
)


@given(st.lists(PIECES, max_size=14).map("".join))
def test_nothing_runs_whatever_is_written(text: str) -> None:
    assert not Found(rendered(safe_markdown(text))).bad


@pytest.mark.parametrize(
    "text", ["plain", "a < b", "[docs](https://example.org)", "```html\n<img>\n```", "`<b>` and **bold**"]
)
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert safe_markdown(text) == text


def test_a_fence_beside_something_harmful_keeps_its_text() -> None:
    assert safe_markdown(f"{EVIL}\n\n```html\n<b>[x]\n```").endswith("```html\n<b>[x]\n```")
