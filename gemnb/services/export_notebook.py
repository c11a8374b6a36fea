"""A talk as a notebook: each prompt a `%%gemini` cell, what came of it its outputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from gemnb.model.records import JsonObject, Part
from gemnb.services.export import Entry, part_markdown, shown
from gemnb.services.export_html import part_html, picture_of
from gemnb.services.markdown import safe_markdown


def talk_notebook(entries: Iterable[Entry], title: str, session_id: str) -> str:
    """The notebook, format 4.5."""
    cells = [_cell("code", "%load_ext gemnb", "load", {}) | {"execution_count": None, "outputs": []}]
    for entry in map(shown, entries):
        if _is_prompt(entry):
            cells.append(_prompt_cell(entry, len(cells)))
        elif len(cells) > 1:
            cells[-1]["outputs"] += [_output(part, entry) for part in entry.parts]
        else:  # an answer before any prompt: the talk was cut there
            text = safe_markdown("\n\n".join(map(part_markdown, entry.parts)))
            cells.insert(-1, _cell("markdown", text, f"{len(cells)}:{entry.id}", _names(entry)))
    notebook = {
        "cells": cells,
        "metadata": {
            "gemnb": {"session_id": session_id, "title": title},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _is_prompt(entry: Entry) -> bool:
    return entry.role == "user" and any(isinstance(p.get("text"), str) for p in entry.parts)


def _prompt_cell(entry: Entry, number: int) -> JsonObject:
    text = "\n\n".join(part["text"] for part in entry.parts if isinstance(part.get("text"), str))
    others = [_output(part, entry) for part in entry.parts if not isinstance(part.get("text"), str)]
    cell = _cell("code", f"%%gemini\n{text}", f"{number}:{entry.id}", _names(entry))
    return cell | {"execution_count": None, "outputs": others}


def _cell(kind: str, source: str, seed: str, names: JsonObject) -> JsonObject:
    id = hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:12]
    return {"cell_type": kind, "id": id, "metadata": {"gemnb": names} if names else {}, "source": _lines(source)}


def _names(entry: Entry) -> JsonObject:
    told = {"message_id": entry.id, "timestamp": entry.at, "model": entry.model}
    return {key: value for key, value in told.items() if value}


def _output(part: Part, entry: Entry) -> JsonObject:
    """Text as Markdown; thoughts, calls and results folded; a picture as itself."""
    if isinstance(part.get("text"), str) and not part.get("thought"):
        data: JsonObject = {"text/markdown": _lines(safe_markdown(part["text"])), "text/plain": _lines(part["text"])}
    elif picture := picture_of(part):
        data = {picture[0]: picture[1], "text/plain": [f"<{picture[0]}>"]}
    else:
        data = {"text/html": _lines(part_html(part)), "text/plain": _lines(part_markdown(part))}
    return {"output_type": "display_data", "data": data, "metadata": {"gemnb": _names(entry) | {"role": entry.role}}}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True) if "\n" in text else [text] if text else []
