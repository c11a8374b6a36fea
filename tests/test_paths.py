"""Words from files become paths only inside their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemnb.errors import CheckpointError, UnsafePathError
from gemnb.store.paths import artifacts, child, decode_tag, encode_tag, is_safe_id


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "/etc", "a\\b", "x\0", "n" * 256])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UnsafePathError):
        child(Path("/tmp/x"), name)


@given(st.text())
def test_a_child_stays_in_its_folder(name: str) -> None:
    try:
        path = child(Path("/tmp/x"), name)
    except UnsafePathError:
        return
    assert os.path.normpath(path).startswith("/tmp/x/")


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("a b/c", "checkpoint-a%20b%2Fc.json"),
        ("日", "checkpoint-%E6%97%A5.json"),
        ("!'()*~-_.", "checkpoint-!'()*~-_..json"),
        ("..", "checkpoint-...json"),
    ],
)
def test_tags_are_encoded_as_the_client_does(tag: str, name: str) -> None:
    assert encode_tag(tag) == name
    assert decode_tag(name[11:-5]) == tag


@pytest.mark.parametrize(
    ("name", "tag"),
    [("%2e%2E%2f", "../"), ("100%", "100%"), ("%41%ff", "A%ff"), ("%E6%97", "\xe6\x97"), ("%ED%A0%80", "\xed\xa0\x80")],
)
def test_a_badly_encoded_name_is_read_byte_by_byte(name: str, tag: str) -> None:
    assert decode_tag(name) == tag


@pytest.mark.parametrize("tag", ["", "  ", "\ud83d", "x" * 300])
def test_a_tag_that_cannot_be_is_refused(tag: str) -> None:
    with pytest.raises(CheckpointError):
        encode_tag(tag)


@pytest.mark.parametrize("id", ["..", ".", "", "chats", "LOGS", "a/b", "tool-outputs", "x" * 200])
def test_an_unsafe_id_has_no_artifacts(tmp_path: Path, id: str) -> None:
    (tmp_path / "chats").mkdir()

    assert not is_safe_id(id) and artifacts(tmp_path, id) == []


def test_links_are_no_artifacts(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tool-outputs").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "session-abc").mkdir()
    (tmp_path / "abc").symlink_to(tmp_path / "elsewhere")

    assert artifacts(tmp_path, "abc") == []
