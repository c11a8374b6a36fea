"""A talk as a file: `.json`, `.md`, `.html` or `.ipynb`, by the ending. The same talk gives the same bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gemnb.errors import ExportError
from gemnb.model.progress import Progress, watched
from gemnb.model.records import JsonObject, Message, Part
from gemnb.model.shown import HALF, UNSEEN, clean_line
from gemnb.model.turns import Turn, merged_contents
from gemnb.services.markdown import safe_markdown
from gemnb.services.projection import history
from gemnb.services.redaction import Redactor, Replacement
from gemnb.store.files import write_whole


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn of the talk, or a note beside it, as an export shows it."""

    id: str
    role: str
    """`user`, `model`, or `info`, `error`, `warning` for a note."""
    parts: tuple[Part, ...]
    at: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written."""

    path: Path
    replaced: tuple[Replacement, ...] = ()
    """What `redact` replaced by what."""

    def __str__(self) -> str:
        told = f"; replaced: {', '.join(map(str, self.replaced))}" if self.replaced else ""
        return f"Exported to {self.path}{told}."


Render = Callable[[Iterable[Entry], str, str], str]
"""Entries, title and session id to text."""


def export(
    messages: Iterable[Message],
    path: Path,
    *,
    session_id: str,
    title: str,
    redact: bool = False,
    homes: Iterable[str] = (),
    progress: Progress | None = None,
) -> Exported:
    """Write the talk to `path`; a file that is there is replaced.

    Args:
        messages: the talk.
        path: where to; its ending chooses the form.
        session_id: told in the `.html` and the `.ipynb`.
        title: on one line.
        redact: replace keys, tokens, passwords and home paths by placeholders.
        homes: the person's home folders.
        progress: told how many turns are done.

    Raises:
        ExportError: the ending is none of the four, or the file cannot be written.
    """
    render = _renderer(path)
    entries = list(entries_of(messages))
    redactor = Redactor(homes)
    if redact:
        entries = [
            replace(entry, parts=tuple(redactor.value(entry.parts)))
            for entry in watched(entries, "Redacting turns", progress)
        ]
        title = redactor.text(title)
    text = render(watched(entries, "Exporting turns", progress), clean_line(title), session_id)
    write(path, whole_characters(text))
    return Exported(path, tuple(redactor.replaced))


def entries_of(messages: Iterable[Message]) -> Iterator[Entry]:
    """The turns of the talk in its order, mended as for the model, with the notes between them."""
    known = list(messages)
    turns = {turn.id: turn for turn in history(known).turns}
    for message in known:
        if message.type in ("info", "error", "warning"):
            yield Entry(message.id, message.type, tuple(message.parts), message.timestamp)
        for id in (message.id, f"{message.id}_response"):
            if turn := turns.pop(id, None):
                yield Entry(id, turn.role, turn.parts, message.timestamp, message.model)
    for turn in turns.values():  # those that a repair made, of no message of their own
        yield Entry(turn.id, turn.role, turn.parts)


def shown(value: Any) -> Any:
    """`value` without control, escape, bidi and half characters, at any depth: what is left looks like what it is."""
    if isinstance(value, str):
        return HALF.sub("\ufffd", UNSEEN.sub("", value))
    if isinstance(value, dict):
        return {shown(key): shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(shown, value))
    if isinstance(value, Entry):
        return Entry(*(shown(getattr(value, field.name)) for field in fields(value)))
    return value


def talk_json(entries: Iterable[Entry], _title: str, _session_id: str) -> str:
    """The list of Contents."""
    return json.dumps(merged_contents(_turns(entries)), indent=2, ensure_ascii=False) + "\n"


def talk_markdown(entries: Iterable[Entry], _title: str, _session_id: str) -> str:
    """A heading for each turn, `---` between; nothing in it runs or fetches, whatever viewer it meets."""
    told = [
        f"## {entry.role.upper()}\n\n" + safe_markdown("\n\n".join(map(part_markdown, entry.parts)))
        for entry in map(shown, entries)
        if entry.role in ("user", "model")
    ]
    return safe_markdown("\n\n---\n\n".join(told) + "\n")  # again: one turn may close the fence of another


def part_markdown(part: Part) -> str:
    """A part as Markdown: text as it is, what is not text in a fence that it cannot close."""
    if isinstance(text := part.get("text"), str):
        return "> *Thought:* " + text.replace("\n", "\n> ") if part.get("thought") else text
    for key, word in (("functionCall", "Call"), ("functionResponse", "Result")):
        if isinstance(told := part.get(key), dict):
            return f"**{word}** {code_span(str(told.get('name', '')))}\n\n{fenced(pretty(told), 'json')}"
    return fenced(pretty(part), "json")


def code_span(text: str) -> str:
    """`text` on one line as code."""
    line = clean_line(text).replace("`", "'")
    return f"`{line}`" if line else ""


def fenced(text: str, language: str = "") -> str:
    """`text` in a fence longer than any run of backticks in it."""
    longest = max((len(run) for run in _backticks(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _backticks(text: str) -> Iterator[str]:
    run = ""
    for char in text:
        if char == "`":
            run += char
        elif run:
            yield run
            run = ""
    if run:
        yield run


def pretty(value: JsonObject) -> str:
    """A value as indented JSON, as a person reads it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def whole_characters(text: str) -> str:
    """`text` with every half character replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def write(path: Path, text: str) -> None:
    """Write `text` to `path` whole, or leave it as it was.

    Raises:
        ExportError: it cannot be written.
    """
    if os.path.isdir(path):  # noqa: PTH112 - `Path.is_dir` raises for a name that is too long
        raise ExportError(f"{path} is a folder: give the name of a file in it.")
    try:
        write_whole(path, text.encode(), mode=0o666)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ExportError(f"The talk could not be exported to {path}: {reason}. Choose another place.") from None


def _renderer(path: Path) -> Render:
    from gemnb.services.export_html import talk_html
    from gemnb.services.export_notebook import talk_notebook

    forms: dict[str, Render] = {
        ".json": talk_json,
        ".md": talk_markdown,
        ".html": talk_html,
        ".ipynb": talk_notebook,
    }
    if (form := forms.get(path.suffix.lower())) is None:
        raise ExportError(f"No form for {path.name!r}: choose a name that ends in {', '.join(forms)}.")
    return form


def _turns(entries: Iterable[Entry]) -> Iterator[Turn]:
    return (Turn(entry.id, entry.role, entry.parts) for entry in entries if entry.role in ("user", "model"))
