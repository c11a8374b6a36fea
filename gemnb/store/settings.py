"""The client's settings: three files and the defaults, merged key by key, each value with its source (FORMAT.md 5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gemnb.model.records import JsonObject
from gemnb.store.journal import open_regular

LARGEST_FILE = 16 * 1024 * 1024
SYSTEM_PATH = "/etc/gemini-cli/settings.json"
DEFAULTS: Mapping[str, object] = {
    "general.sessionRetention.enabled": True,
    "general.sessionRetention.maxAge": "30d",
    "general.sessionRetention.maxCount": None,
    "general.sessionRetention.minRetention": "1d",
    "model.maxSessionTurns": -1,
    "model.compressionThreshold": 0.5,
    "model.name": None,
    "context.fileName": "GEMINI.md",
    "context.importFormat": "tree",
}
# each also matches what is never closed, to the end: so no place is looked at twice
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|,(\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what holds, and who said so."""

    key: str
    value: object
    source: str
    """`default`, or `system`, `workspace` or `user` with the file's path."""

    def __str__(self) -> str:
        return f"{self.key} = {self.value!r} ({self.source})"


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings. A file that cannot be read counts as absent, and `problems` says so."""

    layers: tuple[tuple[str, JsonObject], ...] = ()
    """Source and content of each file that was read, the winner first."""
    problems: tuple[str, ...] = ()

    def get(self, key: str) -> Setting:
        """The setting at the dotted `key`; the value of an unknown one that nobody set is None."""
        for source, layer in self.layers:
            found, value = _dig(layer, key)
            if found:
                return Setting(key, value, source)
        return Setting(key, DEFAULTS.get(key), "default")

    def explain(self) -> list[Setting]:
        """Every setting that matters here."""
        return [self.get(key) for key in DEFAULTS]


def load_settings(home: Path, root: str, *, environ: Mapping[str, str]) -> Settings:
    """Read the settings of the project `root`: system wins over workspace, over user, over the defaults."""
    files = [
        ("system", Path(environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or SYSTEM_PATH)),
        ("workspace", Path(root) / ".gemini" / "settings.json"),
        ("user", home / ".gemini" / "settings.json"),
    ]
    layers: list[tuple[str, JsonObject]] = []
    problems: list[str] = []
    for scope, path in files:
        try:
            with open_regular(path) as file:
                layers.append((f"{scope} settings ({path})", parse_settings(file.read(LARGEST_FILE))))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            problems.append(f"The {scope} settings in {path} cannot be read ({error}); they count as absent.")
    return Settings(tuple(layers), tuple(problems))


def parse_settings(data: bytes) -> JsonObject:
    """JSON with comments, trailing commas and a byte order mark, as editors leave it.

    Read by the standard parser after comments are blanked: a JSON5 library takes minutes for a large file.

    Raises:
        ValueError: it is something else.
    """
    text = data.decode("utf-8-sig", "replace")
    text = _COMMENT.sub(lambda m: m[1] or " ", text)
    text = _TRAILING_COMMA.sub(lambda m: m[1] or m[2], text)
    if not text.strip():
        return {}
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def _dig(layer: JsonObject, key: str) -> tuple[bool, object]:
    value: object = layer
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            return False, None
        value = value[name]
    return True, value
