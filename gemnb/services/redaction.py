"""Secrets and home paths out of a talk: each is replaced by a placeholder that stays the same for the same value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_PATTERNS = (
    ("private-key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)),
    ("key", re.compile(r"\bAIza[0-9A-Za-z_-]{30,}")),
    ("key", re.compile(r"\b(?:sk|pk|rk)[-_](?:[A-Za-z]+[-_])*[0-9A-Za-z_-]{16,}")),
    ("key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("token", re.compile(r"\b(?:gh[pousr]_[0-9A-Za-z]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[0-9A-Za-z]{20,})")),
    ("token", re.compile(r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}")),
    ("token", re.compile(r"\bya29\.[\w-]{20,}")),
    ("token", re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    ("token", re.compile(r"(?i)(?<=\bbearer )[\w.~+/=-]{12,}")),
    ("password", re.compile(r"(?<=://)[^\s/:@]*:(?P<secret>[^\s/@]+)(?=@)")),
    (
        "secret",
        re.compile(
            r"(?i)(?:api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|token|secret|passw(?:or)?d|pwd)"
            r"[\"']?\s*[=:]\s*(?P<quote>[\"']?)(?P<secret>[^\s\"',;<>]{6,})(?P=quote)"
        ),
    ),
)
_SECRET_NAME = re.compile(
    r"(?i).*(?:api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|secret|passw(?:or)?d|pwd)\Z|token\Z"
)
SHORTEST = 6
"""Characters of a secret that is looked for wherever it stands; a shorter one may be a word."""
_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)[^\s/\\:\"'<>|]+")


@dataclass(frozen=True, slots=True)
class Replacement:
    """One value that was replaced, told without telling it."""

    kind: str
    placeholder: str
    count: int

    def __str__(self) -> str:
        return f"{self.placeholder} ({self.kind}, {self.count}×)"


PLACEHOLDER = re.compile(r"<(?:private-key|key|token|password|secret|home)-\d+")
"""What stands where a secret was, up to its end, which may be cut off as punctuation."""


class Redactor:
    """Replaces secrets in text, and in everything of a JSON value.

    Args:
        homes: home folders of the person; those in the usual places are known without being told.
    """

    def __init__(self, homes: Iterable[str] = ()) -> None:
        told = sorted({h.rstrip("/\\") for h in homes if len(h.rstrip("/\\")) > 1}, key=len, reverse=True)
        self._homes = re.compile(r"(?:" + "|".join(map(re.escape, told)) + r")(?![\w.-])") if told else None
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    @property
    def replaced(self) -> list[Replacement]:
        """What was replaced so far, in order of first appearance."""
        return [Replacement(kind, name, self._counts[name]) for (kind, _), name in self._known.items()]

    def text(self, text: str) -> str:
        """`text` without secrets.

        >>> Redactor().text("see https://me:hunter22@example.org")
        'see https://me:<password-1>@example.org'
        """
        for kind, pattern in _PATTERNS:
            text = pattern.sub(lambda match, kind=kind: self._one(kind, match), text)  # type: ignore[misc]
        if self._homes:
            text = self._homes.sub(lambda match: self._placeholder("home", match[0]), text)
        return _HOMES.sub(lambda match: self._placeholder("home", match[0]), text)

    def known(self, text: str) -> str:
        """`text` without the secrets that were met so far, where nothing around them says what they are either.

        >>> redactor = Redactor()
        >>> told = redactor.text("password=hunter22")
        >>> redactor.known("log in with hunter22")
        'log in with <secret-1>'
        """
        for (kind, secret), name in self._known.items():
            if kind != "home" and len(secret) >= SHORTEST:
                text = text.replace(secret, name)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value without secrets; a text under a name like `password` is one whatever it looks like."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {
                self.text(str(key)): self._placeholder("secret", item)
                if isinstance(item, str) and item and _SECRET_NAME.match(str(key))
                else self.value(item)
                for key, item in value.items()
            }
        return value

    def _one(self, kind: str, match: re.Match[str]) -> str:
        if "secret" not in match.re.groupindex:
            return self._placeholder(kind, match[0])
        start, end = match.span("secret")
        secret = match["secret"]
        if secret.startswith("<") or secret in self._counts:
            return match[0]
        return match.string[match.start() : start] + self._placeholder(kind, secret) + match.string[end : match.end()]

    def _placeholder(self, kind: str, secret: str) -> str:
        name = self._known.get((kind, secret))
        if name is None:
            number = 1 + sum(known == kind for known, _ in self._known)
            name = self._known[kind, secret] = f"<{kind}-{number}>"
        self._counts[name] = self._counts.get(name, 0) + 1
        return name
