"""What tables need of a tool call: how it ended, and the size of what it held."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Protocol


class Ended(Protocol):
    """A tool call of which only the end counts."""

    @property
    def status(self) -> str | None:
        """See `ToolCall`."""


class Made(Ended, Protocol):
    """A tool call, whole: a `ToolCall`, or a record that was read with fewer fields."""

    # ruff: noqa: D102 - the names are those of `ToolCall`
    @property
    def id(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def args(self) -> object: ...
    @property
    def result(self) -> object: ...
    @property
    def timestamp(self) -> str | None: ...
    @property
    def result_display(self) -> object: ...


class Call(NamedTuple):
    """A tool call as far as tables need it; what it held is measured."""

    id: str | None
    name: str
    status: str
    timestamp: str | None
    args_chars: int | None
    result_chars: int | None
    error: str | None


def measured(call: Any) -> Call:
    """`call`, a `Made`, as far as tables need it; one that was measured stays as it is."""
    if isinstance(call, Call):
        return call
    return Call(
        call.id,
        call.name or "",
        call.status or "",
        call.timestamp,
        _chars(call.args),
        _chars(call.result),
        _error(call),
    )


def _chars(value: object) -> int | None:
    return None if value is None else len(json.dumps(value, ensure_ascii=False))


def _error(call: Made) -> str | None:
    for part in call.result if isinstance(call.result, list) else [call.result]:
        response = part.get("functionResponse", {}) if isinstance(part, dict) else {}
        told = response.get("response") if isinstance(response, dict) else None
        if isinstance(told, dict) and told.get("error") is not None:
            return str(told["error"])
    return call.result_display if call.status == "error" and isinstance(call.result_display, str) else None
