"""A talk as one HTML page: nothing in it runs, nothing is fetched, it prints."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from html import escape

from gemnb.model.records import Part
from gemnb.services.export import Entry, pretty, shown
from gemnb.services.markdown import markdown_html

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
WORDS = {"user": "You", "model": "Model", "info": "Note", "warning": "Warning", "error": "Error"}
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
article { margin: 1.5rem 0; padding: .1rem 1rem; border-left: 4px solid #8888; overflow-wrap: anywhere; }
article.user { border-color: #1a73e8; }
article.error, article.warning { border-color: #c5221f; }
header small, article small { opacity: .7; }
pre { overflow-x: auto; white-space: pre-wrap; background: #8882; padding: .5rem; }
table { border-collapse: collapse; } td, th { border: 1px solid #8888; padding: .2rem .5rem; }
img { max-width: 100%; }
@media print {
  body { max-width: none; margin: 0; } article { break-inside: avoid-page; }
  details::details-content { content-visibility: visible; height: auto; }
}
""".strip()
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def talk_html(entries: Iterable[Entry], title: str, session_id: str) -> str:
    """The page."""
    told = "\n".join(_article(shown(entry)) for entry in entries)
    return (
        '<!DOCTYPE html>\n<html lang="und">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><small>Session {escape(session_id)}</small></header>\n"
        f"<main>\n{told}\n</main>\n</body>\n</html>\n"
    )


def _article(entry: Entry) -> str:
    details = " · ".join(escape(word) for word in (entry.at, entry.model) if word)
    parts = "\n".join(map(part_html, entry.parts))
    return (
        f'<article class="{escape(entry.role)}" dir="auto"><p><strong>{label_of(entry)}</strong>'
        f" <small>{details}</small></p>\n{parts}\n</article>"
    )


def label_of(entry: Entry) -> str:
    """Who speaks in a message, as a word."""
    if entry.role == "user" and all("functionResponse" in part for part in entry.parts):
        return "Results"
    return WORDS.get(entry.role, "Note")


def part_html(part: Part) -> str:
    """A part as HTML: text rendered, thoughts, calls and results folded."""
    if isinstance(text := part.get("text"), str):
        rendered = markdown_html(text)
        return _folded("Thought", rendered) if part.get("thought") else rendered
    for key, word in (("functionCall", "Call"), ("functionResponse", "Result")):
        if isinstance(told := part.get(key), dict):
            return _folded(f"{word} {told.get('name', '')}", f"<pre>{escape(pretty(told))}</pre>")
    if picture := picture_of(part):
        kind, data = picture
        return f'<p><img alt="{kind}" src="data:{kind};base64,{data}"></p>'
    return _folded("Part", f"<pre>{escape(pretty(part))}</pre>")


def picture_of(part: Part) -> tuple[str, str] | None:
    """Media type and base64 of a picture that a browser may be shown; None for anything else."""
    media = part.get("inlineData")
    if not isinstance(media, dict) or media.get("mimeType") not in PICTURES or not isinstance(media.get("data"), str):
        return None
    try:
        data = base64.b64decode(media["data"], validate=True)
    except (binascii.Error, ValueError):
        return None
    return str(media["mimeType"]), base64.b64encode(data).decode()


def _folded(summary: str, inner: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>\n{inner}</details>"
