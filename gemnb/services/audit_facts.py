"""The checkable facts of a talk, by patterns alone: what a summary of it may not lose."""

# ruff: noqa: E501 - lists of words

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gemnb.model.turns import Turn

KINDS = (
    "constraint",
    "decision",
    "todo",
    "error",
    "path",
    "command",
    "url",
    "version",
    "number",
    "identifier",
)
"""Worst loss first."""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the talk states."""

    kind: str
    """One of `KINDS`."""
    text: str
    """As it stands in the talk."""
    turn_id: str


_URL = re.compile(r"https?://[^\s<>\"'`、。）」』，；]+[^\s<>\"'`、。）」』，；.,;:!?)\]}]", re.A)
_PATH = re.compile(
    r"(?<![\w/.@:-])(?:~|\.{1,2})?(?:/[\w.@%+-]+){2,}/?|(?<![\w/.@:-])[\w@%+-][\w.@%+-]*(?:/[\w.@%+-]+)+/?"
    r"|[A-Za-z]:\\(?:[\w .-]+\\)*[\w.-]+"
    r"|(?<![\w/.@-])[\w-]+(?:\.[\w-]+)*\.(?:py|pyi|js|ts|tsx|jsx|json|jsonl|md|txt|csv|tsv|yaml|yml|toml|ini|cfg|sql|sh|go|rs|c|h"
    r"|cpp|hpp|java|kt|rb|php|html|css|ipynb|log|lock|xml|parquet|db|sqlite|env|png|jpg|pdf|zip|gz)(?![\w/])",
    re.A,
)
_COMMAND = re.compile(
    r"(?m)(?:^\s*\$ |`)\s*((?:sudo |uv run )?(?:git|npm|npx|yarn|pnpm|pip|pip3|uv|python|python3|pytest|make|cargo|go|docker|kubectl"
    r"|curl|wget|ls|cd|cp|mv|rm|cat|grep|sed|awk|psql|ruff|mypy|node|bash|sh|ssh|scp|rsync|terraform|helm|gradle|mvn|tox|nox)"
    r"\b[^`\n]*)"
)
_VERSION = re.compile(
    r"(?<![\w.])v?\d+\.\d+\.\d+(?:[-.+]?[a-z]+[.\d]*)?(?![\w.]*\w)|(?<![\w.])v\d+(?:\.\d+)*\b", re.A | re.I
)
_NAMED_VERSION = re.compile(
    r"\b(?:Python|Node|Node\.js|Java|Go|Rust|Ruby|PHP|Django|React|Postgre(?:s|SQL)|MySQL|Redis|Ubuntu|Debian|pandas|numpy|Kotlin|Swift)"
    r" ?(\d+(?:\.\d+)*)(?![\w.]*\w)",
    re.A,
)
_UNITS = (
    r"%|°C|ms|s|sec|seconds?|min|minutes?|hours?|h|days?|weeks?|months?|years?|[KMGT]i?B|bytes?|kHz|MHz|GHz|Hz|km|cm|mm|m|kg|g|px|rows?"
    r"|lines?|files?|users?|requests?|tokens?|times|retries|threads?|workers?|characters?|items?|records?|tests?|columns?|USD|EUR|dollars?"
)
_CJK_UNITS = "毫秒|分钟|小时|秒|天|周|个月|年|行|列|次|个|条|人|元|万|页|字符?|字节|台|倍|件|分|時間|日|ヶ月|週間|回|個|名|円|ミリ秒|文字|ページ|つ|本|枚|度"
_NUMBER = re.compile(
    rf"(?<![\w.,/-])[-+$€£¥]?\d+(?:[,_]\d{{3}})*(?:\.\d+)?\s?(?:(?:{_UNITS})(?![\w])|(?:{_CJK_UNITS}))", re.A
)
_NAMED_NUMBER = re.compile(
    r"\b(?:port|timeout|limit|threshold|seed|batch size|batch_size|retries|size|width|height|line|issue|ticket|PR|rate|version|max|min"
    r"|chunk size|learning rate|depth|budget|budget of)\b(?:\s*(?:is|of|to|at|=|:|#|の?は|为|是)\s*|\s+#?)(\d+(?:[,_]\d{3})*(?:\.\d+)?)(?![\w]|\.\d)"
    r"|(?:端口|超时|上限|阈值|种子|预算|ポート|タイムアウト|閾値|シード|予算)(?:号|番号)?\s*(?:是|为|设为|は|を|：|:|=)?\s*"
    r"(\d+(?:[,_]\d{3})*(?:\.\d+)?)",
    re.I | re.A,
)
_IDENTIFIER = re.compile(
    r"(?<![\w/.$-])(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|[A-Z]{2,}-\d+)(?:\(\))?(?![\w/]|-\w)",
    re.A,
)
_TICKED = re.compile(r"`([^`\s]{2,60})`")
_ERROR = re.compile(
    r"(?m)\b(?:[A-Za-z_.]*(?:Error|Exception|Panic)\b:[^\n。！？]*?(?=[.!?](?:\s|$)|[\n。！？`]|$)|[A-Z][A-Za-z]*(?:Error|Exception)\b"
    r"|(?:fatal|error|panic|FAILED)\s*:[^\n。！？]*?(?=[.!?](?:\s|$)|[\n。！？`]|$)|(?:E[A-Z]{4,}\b)[^\n]{0,80}|HTTP [45]\d\d|exit (?:code|status) [1-9]\d*)",
    re.A,
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[。！？；])|\n+")

_EN_MUST = (
    r"\b(?:must(?:n't)?|never|do not|don't|does not have to|always|should(?: not|n't)|may not|cannot be|can't be|not allowed|forbidden"
    r"|avoid|make sure|ensure|has to|have to|required?|only (?:use|touch|change|edit|write|read)|no more than|at most|at least"
    r"|under no circumstances|needs? to (?:be|stay|remain|work|support)|keep (?:the|it|all|every))\b"
)
CONSTRAINT = re.compile(
    _EN_MUST
    + r"|必须|必須|不要|不能|不得|不可|不许|禁止|务必|一定要|只能|只许|请勿|千万别|别(?:用|动|改|删|碰|再)|不准|至少|最多|不超过|不允许"
    r"|必ず|ないでください|ないで(?:ほしい|下さい)|てはいけ|てはなら|ではいけ|ではなら|なければ(?:ならない|なりません|いけ)|べき(?:だ|で|では)"
    r"|絶対に?|厳守|だけ(?:を)?使|以内に|以下に(?:して|抑え)|使わない|触らない|変えない|消さない",
    re.I,
)
NEGATION = re.compile(
    r"\b(?:never|not|no|none|don't|doesn't|mustn't|shouldn't|can't|cannot|won't|avoid|without|forbidden|prohibited|off[- ]limits"
    r"|untouched|unchanged)\b|不|别|勿|禁止|未|ない|ません|なし|禁",
    re.I,
)
_DECISION = re.compile(
    r"\b(?:we(?:'ll| will| are going to)? (?:use|go with|keep|stay with|drop|switch to|decided)|let's (?:use|go with|keep|drop|switch)"
    r"|decided (?:to|on|that|against)|i(?:'ve| have)? (?:decided|chosen|chose)|agreed (?:to|on|that)|go(?:ing)? with|we chose)\b"
    r"|决定|就用|改用|采用|选用|定为|選んだ|決めた|決めました|決定|採用|にします|にしましょう|に決",
    re.I,
)
_TODO = re.compile(
    r"\b(?:todo|fixme|still (?:need|needs|have|has|to|missing|open)|remains? to|remaining|next step|not (?:done )?yet|left to do|later we"
    r"|pending)\b|^\s*[-*] \[ \]|待办|还没|尚未|还需要|下一步|稍后|之后再|剩下|残って|まだ.{0,20}(?:ない|いません|ません)"
    r"|未対応|未完了|次は|後で|これから",
    re.I,
)
_QUESTION = re.compile(r"[?？]\s*$|吗。?$|ですか。?$|ますか。?$")

MOST_CHARACTERS = 1_000_000
"""Of one text that are looked through: a longer one is a file, and its summary holds no more of it."""
LONGEST_WORD = 500
_WORD = re.compile("[!-~]+")
_GAP = re.compile(r"\s+")


def facts_of(turns: Iterable[Turn]) -> list[Fact]:
    """The facts of `turns`, each once, in the order of the talk."""
    found: dict[tuple[str, str], Fact] = {}
    for turn in turns:
        for kind, text in _of_turn(turn):
            found.setdefault((kind, normal(text)), Fact(kind, text, turn.id))
    return list(found.values())


def _of_turn(turn: Turn) -> Iterator[tuple[str, str]]:
    for part in turn.parts:
        if isinstance(text := part.get("text"), str) and not part.get("thought"):
            yield from facts_of_text(text, by_person=turn.role == "user")
        elif isinstance(call := part.get("functionCall"), dict):
            yield from _of_arguments(call.get("args"))
        elif isinstance(response := part.get("functionResponse"), dict):
            for told in _texts(response.get("response")):
                yield from (("error", _clip(match[0])) for match in _ERROR.finditer(_tame(told)))


def facts_of_text(text: str, *, by_person: bool) -> Iterator[tuple[str, str]]:
    """Kind and words of each fact in `text`; rules are taken from what a person said only."""
    text = _tame(text)
    for sentence in sentences(text):
        if _QUESTION.search(sentence):
            continue
        if by_person and CONSTRAINT.search(sentence):
            yield "constraint", sentence
        elif _DECISION.search(sentence):
            yield "decision", sentence
        elif _TODO.search(sentence):
            yield "todo", sentence
    yield from (("error", _clip(match[0])) for match in _ERROR.finditer(text))
    for match in _COMMAND.finditer(text):
        yield "command", match[1].strip()
    yield from _atoms(text)


def _tame(text: str) -> str:
    """`text` without the long words and gaps that a pattern would go over anew from each of their characters."""
    text = _GAP.sub(lambda gap: gap[0] if len(gap[0]) < 9 else "\n" if "\n" in gap[0] else " ", text[:MOST_CHARACTERS])
    return _WORD.sub(lambda word: word[0] if len(word[0]) <= LONGEST_WORD else _split(word[0]), text)


def _split(word: str) -> str:
    return " ".join(word[start : start + LONGEST_WORD] for start in range(0, len(word), LONGEST_WORD))


def _atoms(text: str) -> Iterator[tuple[str, str]]:
    """Facts of one word; what is part of a longer one is not told again."""
    text = re.sub(r"</?[a-z_]+>|\x1b?\[[\d;]*m", " ", text)
    for kind, pattern in (
        ("url", _URL),
        ("path", _PATH),
        ("version", _NAMED_VERSION),
        ("version", _VERSION),
        ("number", _NUMBER),
        ("number", _NAMED_NUMBER),
        ("identifier", _IDENTIFIER),
    ):
        for match in pattern.finditer(text):
            yield kind, match[0].strip().rstrip(".,")
        text = pattern.sub(" ", text)
    for match in _TICKED.finditer(text):
        yield "identifier", match[1]


def _of_arguments(args: Any) -> Iterator[tuple[str, str]]:
    """Commands and paths that a tool was called with."""
    if not isinstance(args, dict):
        return
    for key, value in args.items():
        if isinstance(value, str) and len(value) <= 300:
            if key in ("command", "cmd"):
                yield "command", value
            else:
                yield from ((kind, text) for kind, text in _atoms(value) if kind in ("path", "url"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:20_000]
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def sentences(text: str) -> list[str]:
    """The sentences of `text`, markers of lists and tags left out."""
    bare = re.sub(r"</?\w+>", "\n", text)
    return [s for piece in _SENTENCE.split(bare) if len(s := piece.strip(" \t-*•#>")) > 1]


def normal(text: str) -> str:
    """`text` as it is compared: one width and case, without quotes and thousands separators.

    >>> normal("Port “5,433”")
    'port 5433'
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"(?<=\d)[,_ \u202f](?=\d{3}(?!\d))", "", text)
    text = re.sub(r"[\"'`´‘’“”„«»「」『』*]", "", text)
    return " ".join(text.split())


def _clip(text: str) -> str:
    return text.strip()[:200]
