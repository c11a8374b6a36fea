"""How gemnb's values look in a notebook; their `repr` stays the plain-text form."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from gemnb.model.shown import clean_line, visible
from gemnb.notebook.plain import printable

if TYPE_CHECKING:  # values are known by name: their modules are loaded with the first one
    from gemnb.frames.draw import Chart
    from gemnb.notebook.stream import ShownReply
    from gemnb.services.chat import Chat, Reply
    from gemnb.services.compression import Compression
    from gemnb.services.listing import SessionList
    from gemnb.services.memory_inbox import Inbox, Proposal
    from gemnb.store.recorder import RecordingHealth
    from gemnb.store.sessions import Deleted

MUTED = "color:var(--jp-ui-font-color2,GrayText)"
CELL = "padding:2px 8px;text-align:left;vertical-align:top"
DIFF = "padding:4px 8px;max-height:30em;overflow:auto;border:1px solid var(--jp-border-color2,GrayText)"
TINTS = {
    "added": "background-color:rgba(46,160,67,0.25)",
    "removed": "background-color:rgba(248,81,73,0.25)",
    "kept": "",
    "about": MUTED,
}
"""Of the lines of a diff; the theme's own text colour stands on them."""
ALERT = "color:var(--jp-error-color1,#b00020);font-weight:600"


def install(shell: InteractiveShell) -> None:
    """Teach `shell` to show gemnb's values."""
    html, plain = _formatters(shell)
    for name, show in SHOWN.items():
        _shower(shell).for_type_by_name(*name.rsplit(".", 1), show)
    for name, form in HTML.items():
        html.for_type_by_name(*name.rsplit(".", 1), form)
    for name in PLAIN:
        plain.for_type_by_name(*name.rsplit(".", 1), _show_plain)


def uninstall(shell: InteractiveShell) -> None:
    """Take that back."""
    html, plain = _formatters(shell)
    for name in SHOWN:
        _shower(shell).pop(name, None)
    for name in HTML:
        html.pop(name, None)
    for name in PLAIN:
        plain.pop(name, None)


def _show_plain(value: object, printer: Any, _: bool) -> None:
    """The plain form of a value, fit for a terminal."""
    told = type(value)
    printer.text(
        printable(str(value) if told.__str__ is not object.__str__ and not isinstance(value, list) else repr(value))
    )


def _formatters(shell: InteractiveShell) -> tuple[Any, Any]:
    assert shell.display_formatter is not None  # set by InteractiveShell.__init__
    formatters = shell.display_formatter.formatters
    return formatters["text/html"], formatters["text/plain"]


def _shower(shell: InteractiveShell) -> Any:
    assert shell.display_formatter is not None  # set by InteractiveShell.__init__
    return shell.display_formatter.ipython_display_formatter


def show_chart(chart: Chart) -> None:
    """The picture, then its table: two outputs, so that a viewer which strips one of them still has the other."""
    show_picture(chart)
    display(chart.table)


def show_picture(chart: Chart) -> None:
    """The picture alone, in the size that it is made for."""
    told = {"image/png": chart.png(), "text/plain": f"{chart.title}. {chart.note}".rstrip()}
    display(told, metadata={"image/png": {"width": chart.width}}, raw=True)


def sessions_html(sessions: SessionList) -> str:
    """A table: number, title, age and marks, messages, id."""
    from gemnb.services.listing import HOW

    if not sessions:
        return f"<p>{_code(sessions.nothing)}</p>"
    rows = "".join(
        f'<tr><td style="{CELL}">{row.index or "–"}</td>'
        f'<td style="{CELL}">{escape(row.title)}{_marks(sessions, row)}</td>'
        f'<td style="{CELL}">{row.message_count}</td>'
        f'<td style="{CELL}"><code>{escape(clean_line(row.id))}</code></td></tr>'
        for row in sessions
    )
    head = "".join(f'<th style="{CELL}">{name}</th>' for name in ("#", "session", "messages", "id"))
    return f'<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p style="{MUTED}">{_code(HOW)}</p>'


def _marks(sessions: SessionList, row: Any) -> str:
    project = f"{escape(clean_line(row.project_root))} · " if row.project_root else ""
    return f'<br><small style="{MUTED}">{project}{escape(" · ".join(sessions.marks(row)))}</small>'


def chat_html(chat: Chat) -> str:
    """A chat by its last prompt, and whether it is being saved."""
    asked = f": <i>{escape(clean_line(chat.last_prompt)[:200])}</i>" if chat.last_prompt else ""
    go_on = _code("Go on with `%%gemini`.")
    return (
        f"<p><b>Session <code>{escape(clean_line(chat.session_id)[:8])}</code></b>, {chat.size}{asked}<br>"
        f"{recording_html(chat.recording)} {go_on}</p>"
    )


def recording_html(health: RecordingHealth) -> str:
    """How recording stands, loud where it does not."""
    return f'<span style="{MUTED if health.active else ALERT}">{escape(clean_line(str(health)))}</span>'


def reply_html(reply: Reply) -> str:
    """The answer as Markdown, with a line on how it went."""
    from gemnb.services.markdown import markdown_html

    note = f'<p style="{ALERT}">{escape(clean_line(reply.error))}</p>' if reply.error else ""
    return f"{markdown_html(reply.text)}{note}"


def shown_html(reply: ShownReply) -> str:
    """The line on how it went, the text being on the page."""
    return f'<small style="{MUTED}">{escape(repr(reply))}</small>'


def compression_html(result: Compression) -> str:
    """What came of it, and the account of what the summary lost."""
    words, *_ = str(result).split("\n", 1)
    return f"<p>{_code(words)}</p>{result.audit._repr_html_() if result.audit.findings else ''}"


def told_html(value: object) -> str:
    """What a value tells, broken between words: a paragraph for each line, and what is set in below it as a list."""
    told = []
    for line in str(value).splitlines():
        text = _code(clean_line(line.strip()))
        told.append(f"<li>{text}</li>" if line.startswith("  ") else f"<p>{text}</p>")
    return re.sub("((?:<li>.*?</li>)+)", r"<ul>\1</ul>", "".join(told))


def deleted_html(deleted: Deleted) -> str:
    """What went and what stayed."""
    stayed = "".join(f"<li>{escape(clean_line(str(p)))}: {escape(clean_line(why))}</li>" for p, why in deleted.stayed)
    left = f"<p>Stayed:</p><ul>{stayed}</ul>" if stayed else ""
    if not deleted.gone:
        return f"<p>Nothing of <b>{escape(deleted.title)}</b> was deleted.</p>{left}"
    after = "It is gone for good." if deleted.purged else _code("`%sessions delete --undo` brings it back.")
    return f"<p>Deleted <b>{escape(deleted.title)}</b>, files and folders: {len(deleted.gone)}. {after}</p>{left}"


def inbox_html(inbox: Inbox) -> str:
    """Each proposal as a coloured diff; the signs at the line starts tell the same without colour."""
    from gemnb.services.memory_inbox import NONE

    notes = "".join(f"<p>{_code(visible(note))}</p>" for note in inbox.notes)
    if not inbox:
        return f"{notes}<p>{NONE}</p>"
    return f'{notes}{"".join(map(_proposal_html, inbox))}<p style="{MUTED}">{_code(inbox.how)}</p>'


def _proposal_html(proposal: Proposal) -> str:
    if proposal.problem:
        told = f'<p style="{ALERT}">cannot be applied: {escape(visible(proposal.problem))}</p>'
    else:
        lines = "".join(f'<span style="{TINTS[kind]}">{escape(line)}</span>\n' for kind, line in proposal.lines)
        told = f'<pre style="{DIFF}">{lines}</pre>'
    return f"<p><b>{escape(proposal.title)}</b></p>{told}"


def _code(text: str) -> str:
    """`text` with its back-quoted words as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


HTML: dict[str, Callable[[Any], str]] = {
    "gemnb.services.listing.SessionList": sessions_html,
    "gemnb.services.chat.Chat": chat_html,
    "gemnb.services.chat.Reply": reply_html,
    "gemnb.notebook.stream.ShownReply": shown_html,
    "gemnb.store.sessions.Deleted": deleted_html,
    "gemnb.store.recorder.RecordingHealth": recording_html,
    "gemnb.services.memory_inbox.Inbox": inbox_html,
    "gemnb.services.compression.Compression": compression_html,
    "gemnb.services.rescue.Rescue": told_html,
    "gemnb.services.retention_plan.RetentionPlan": told_html,
    "gemnb.services.retention_plan.CleanupResult": told_html,
    "gemnb.store.trash.Restored": told_html,
}
SHOWN: dict[str, Callable[[Any], None]] = {
    "gemnb.frames.draw.Chart": show_chart,
}
PLAIN = (
    "gemnb.services.listing.SessionList",
    "gemnb.services.listing.HitList",
    "gemnb.services.listing.PromptList",
    "gemnb.services.chat.Chat",
    "gemnb.services.chat.Reply",
    "gemnb.services.export.Exported",
    "gemnb.store.sessions.Deleted",
    "gemnb.store.trash.Restored",
    "gemnb.notebook.stream.ShownReply",
    "gemnb.services.memory.Memory",
    "gemnb.services.memory_inbox.Inbox",
    "gemnb.services.rescue.Rescue",
    "gemnb.services.retention_plan.RetentionPlan",
    "gemnb.services.retention_plan.CleanupResult",
    "gemnb.store.recorder.RecordingHealth",
)
