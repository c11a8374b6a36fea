"""Checkpoints: names as the client makes them, both shapes, nothing outside the folder, a branch and never a change."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from support import gemini, header, user

import gemnb
from gemnb.errors import CheckpointError
from gemnb.store.checkpoints import Checkpoints

TALK = [
    {"role": "user", "parts": [{"text": "a"}]},
    {"role": "model", "parts": [{"text": "b", "thoughtSignature": "s"}]},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "app"
    path.mkdir()
    return path


@pytest.mark.parametrize(
    "tag", ["plain", "мой", "長い名前", "a/b", "../up", "..", "100%", "a%2Fb", "😀", "v1 (x)!*'~_", "a\nb"]
)
def test_a_tag_of_any_script_comes_back_and_stays_in_the_folder(folder: Path, tag: str) -> None:
    store = Checkpoints(folder)
    store.save(tag, TALK)
    assert [c.tag for c in store] == [tag]
    assert list(store.load(tag)) == TALK
    assert [p.parent for p in folder.parent.rglob("*.json")] == [folder]
    assert store.delete(tag)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    "tag", ["", " ", "half \ud800", "長" * 40], ids=["empty", "blank", "half a character", "too long"]
)
def test_a_tag_that_cannot_be_is_one_error_and_writes_nothing(folder: Path, tag: str) -> None:
    with pytest.raises(CheckpointError):
        Checkpoints(folder).save(tag, TALK)
    assert not list(folder.iterdir())


def test_overwrite_only_when_told(folder: Path) -> None:
    store = Checkpoints(folder)
    store.save("x", TALK)
    with pytest.raises(CheckpointError, match="already"):
        store.save("x", TALK[:1])
    assert list(store.load("x")) == TALK
    store.save("x", TALK[:1], overwrite=True)
    assert list(store.load("x")) == TALK[:1]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(TALK),
        json.dumps({"history": TALK}),
        json.dumps({"history": TALK, "authType": "k"}),
        "\ufeff" + json.dumps(TALK),
    ],
    ids=["a list", "an object", "with authType", "with a byte order mark"],
)
def test_both_shapes_load(folder: Path, data: str) -> None:
    (folder / "checkpoint-x.json").write_text(data, "utf-8")
    assert list(Checkpoints(folder).load("x")) == TALK


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b""], ids=["torn", "binary", "empty"])
def test_what_cannot_be_read_is_one_error(folder: Path, data: bytes) -> None:
    (folder / "checkpoint-x.json").write_bytes(data)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Checkpoints(folder).load("x")


def test_the_older_raw_name_is_found_and_goes_with_the_other(folder: Path) -> None:
    (folder / "checkpoint-my tag.json").write_text("[]")
    store = Checkpoints(folder)
    assert [c.tag for c in store] == ["my tag"]
    store.save("my tag", TALK, overwrite=True)
    assert list(store.load("my tag")) == TALK
    store.delete("my tag")
    assert not list(folder.iterdir())


@pytest.mark.parametrize("tag", ["/../../victim", "x/../../victim"])
def test_the_raw_name_leads_nowhere(folder: Path, tag: str) -> None:
    victim = folder.parent / "victim.json"
    victim.write_text(json.dumps(TALK))
    (folder / "checkpoint-").mkdir()
    store = Checkpoints(folder)
    with pytest.raises(CheckpointError):
        store.load(tag)
    assert not store.delete(tag)
    assert victim.exists()


def test_a_link_is_neither_read_nor_written(folder: Path) -> None:
    secret = folder.parent / "secret.json"
    secret.write_text(json.dumps(TALK))
    (folder / "checkpoint-x.json").symlink_to(secret)
    store = Checkpoints(folder)
    assert not list(store)
    with pytest.raises(CheckpointError):
        store.load("x")
    with pytest.raises(CheckpointError):
        store.save("x", [], overwrite=True)
    assert json.loads(secret.read_text()) == TALK


def test_a_checkpoint_is_the_persons_alone(folder: Path) -> None:
    os.umask(os.umask(0o000))
    made = Checkpoints(folder).save("x", TALK)
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert made.saved_at.tzinfo is not None


def test_going_on_from_a_checkpoint_is_a_branch(ws: gemnb.Workspace, write_session: Any, llm: Any) -> None:
    path = write_session(header(), user("u1", "How many?"), gemini("g1", "Two."))
    before = path.read_bytes()
    old = ws.resume()
    ws.save_checkpoint("here")
    new = ws.load_checkpoint("here")
    assert new.session_id != old.session_id
    assert [m.text for m in new.messages] == ["How many?", "Two."]
    llm._replies.append("Sure.")
    new.send("Another way")
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize(
    "data",
    [
        "{}",
        "3",
        "null",
        '{"history": 3}',
        '{"history": {"role": "user"}}',
        '["a"]',
        '[{"text": "a"}]',
        '[{"role": "user", "parts": ["a"]}]',
    ],
)
def test_an_unknown_shape_is_an_error_and_no_empty_talk(folder: Path, data: str) -> None:
    (folder / "checkpoint-odd.json").write_text(data)

    with pytest.raises(CheckpointError, match="no known shape"):
        Checkpoints(folder).load("odd")
