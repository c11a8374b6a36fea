"""Settings: merged key by key, each value with its source; what is broken is told and counts as absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemnb.store.settings import load_settings, parse_settings

KEY = "general.sessionRetention.maxAge"


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_system_wins_over_workspace_over_user_over_default(tmp_path: Path) -> None:
    home, root = tmp_path / "h", tmp_path / "r"
    places = [home / ".gemini/settings.json", root / ".gemini/settings.json", tmp_path / "sys.json"]
    environ = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(places[-1])}
    told = []
    for number, place in enumerate([None, *places]):
        if place:
            put(place, json.dumps({"general": {"sessionRetention": {"maxAge": f"{number}d"}}}))
        setting = load_settings(home, str(root), environ=environ).get(KEY)
        told.append((setting.value, setting.source.split()[0]))

    assert told == [("30d", "default"), ("1d", "user"), ("2d", "workspace"), ("3d", "system")]
    assert load_settings(home, str(root), environ=environ).get("general.sessionRetention.minRetention").value == "1d"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param('{"a": 1, // note\n}', {"a": 1}, id="a comment and a trailing comma"),
        pytest.param('/* x */ {"a": "http://b/*c*/,]"}', {"a": "http://b/*c*/,]"}, id="what looks like one in a text"),
        pytest.param("\ufeff{}", {}, id="a byte order mark"),
        pytest.param("  ", {}, id="nothing"),
    ],
)
def test_what_editors_leave_is_understood(text: str, value: object) -> None:
    assert parse_settings(text.encode()) == value


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "nope"])
def test_a_broken_file_is_told_and_absent(tmp_path: Path, text: str) -> None:
    put(tmp_path / ".gemini/settings.json", text)

    settings = load_settings(tmp_path, "/nowhere", environ={"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/nowhere"})

    assert settings.get(KEY).source == "default" and "settings.json" in settings.problems[0]


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())))
def test_plain_json_is_itself(value: dict[str, object]) -> None:
    assert parse_settings(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ['"' + '\\"' * 50_000, "{" + "/*x" * 50_000, '{"a":' + " ," * 50_000])
def test_a_hostile_file_does_not_stall(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_settings(text.encode())  # the suite's limit would end a quadratic one
