"""Words that were made to run, fetch or lie, and a talk with them in every place that strangers fill."""

from __future__ import annotations

from typing import Any

from support import SID, TOKENS, gemini, header, user

WORDS = {
    "script": "<script>ran()</script>",
    "handler": "<img src=x onerror=ran()>",
    "svg": "<svg onload=ran()><style>@import 'http://evil.test'</style></svg>",
    "links": "[go](javascript:ran()) ![look](http://evil.test/x.png) <javascript:ran()> [r]\n\n[r]: data:text/html,x",
    "table": "</td></table></pre></code><iframe src='http://evil.test'></iframe>",
    "attribute": '" onmouseover="ran()" style="position:fixed;background:url(http://evil.test)',
    "css": "<style>*{background:url(http://evil.test)}</style><b style='position:fixed;inset:0'>over all</b>",
    "ansi": "\x1b]8;;http://evil.test\x07go\x1b]8;;\x07\x1b[2J\x1b[31m\x9b1m\x07\x08\x08 done",
    "bidi": "invoice \u202egnp.exe\u202c \u2066\u200f\u061c fdp",
    "fence": "```\n</pre><script>ran()</script>\n```\n~~~\n<details open ontoggle=ran()>",
    "entities": "&lt;script&gt;ran()&lt;/script&gt; &#106;avascript:ran() <a href='jAvAsCrIpT:ran()'>x</a>",
    "ticks": "`<b onclick=ran()>` ``x`<img src=http://evil.test/y onload=ran()>`",
    "formula": "$\\frac{$ $x^$ \\ % {x!r} {0} %s",
    "math": "$\\href{javascript:ran()}{go}$ $$\\style{position:fixed}{x} \\class{a}{b} \\require{html}$$",
    "meta": '<meta http-equiv=refresh content="0;url=//evil.test"><base href=//evil.test><form action=//evil.test>',
    "null": "a\0b<scr\0ipt>ran()</script>\ud800",
}


def talk_of(words: str, *, project_hash: str = "x", session_id: str = SID) -> list[dict[str, Any]]:
    """The records of a session with `words` for title, prompt, answer, thought, model, tool, call, result and note."""
    part = {"functionCall": {"id": "c", "name": words, "args": {words: words}}}
    call = {"id": "c", "name": words, "args": {words: words}, "status": "success", "resultDisplay": words}
    call["result"] = [{"functionResponse": {"id": "c", "name": words, "response": {"output": words}}}]
    return [
        header(session_id, projectHash=project_hash, summary=f"{words} river"),
        user("u0", f"river {words}"),
        gemini("g0", f"It must never be lost: {words}"),
        user("u", f"We must never use {words} for the river"),
        gemini(
            "g",
            [
                {"text": words},
                {"text": words, "thought": True},
                {"inlineData": {"mimeType": words, "data": words}},
                part,
            ],
            model=words,
            tokens=TOKENS,
            thoughts=[{"subject": words, "description": words}],
            toolCalls=[call],
        ),
        {"id": "e", "type": "error", "content": words},
        user("u2", words),
    ]
