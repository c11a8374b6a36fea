"""A live talk whose file is taken away under it: emptied, garbled, replaced, blocked. Nothing said is lost."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import SID, TALK, header, to_bytes, user

import gemnb
from gemnb.errors import GemnbWarning, TalkChangedError
from gemnb.services import past
from gemnb.store import live, replay
from gemnb.store.replay import read_fold, read_session
from gemnb.testing import demo_llm

OTHER = "cc33dd44-0000-4000-8000-00000000000c"


@pytest.fixture
def chat(ws: gemnb.Workspace, llm: Any) -> Any:
    llm._default = "Aye."
    chat = ws.new_chat()
    chat.send("First.")
    return chat


def said(chat: Any) -> list[str]:
    return [m.text for m in chat.messages if m.type == "user"][-2:]


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def garbled(path: Path) -> None:
    path.write_bytes(b"\x00\xff not a record" * 40)


def garbled_in_place(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def headless(path: Path) -> None:
    path.write_bytes(to_bytes({"$set": {"lastUpdated": "2026-05-01T10:00:00.000Z"}}))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])


@pytest.mark.parametrize("harm", [emptied, garbled, garbled_in_place, headless, cut], ids=lambda f: f.__name__)
def test_a_talk_that_the_file_lost_is_kept_and_written_again(chat: Any, harm: Callable[[Path], None]) -> None:
    path = chat.recording.path
    before = [m.id for m in chat.messages]
    harm(path)

    with pytest.warns(GemnbWarning, match="lost .* messages"):
        chat.send("Second.")

    assert [m.id for m in chat.messages][: len(before)] == before and said(chat) == ["First.", "Second."]
    assert [m.id for m in read_session(path).messages] == [m.id for m in chat.messages]
    assert list(read_fold(path, as_client=True).live) == [m.id for m in chat.messages]
    assert chat.recording.active and not chat.recording.unsaved


def test_another_sessions_file_is_never_written_to(chat: Any, ws: gemnb.Workspace) -> None:
    path = chat.recording.path
    path.write_bytes(to_bytes(header(OTHER), *TALK))
    held = path.read_bytes()

    with pytest.warns(GemnbWarning) as told:
        chat.send("Second.")
    chat.send("Third.")

    assert path.read_bytes() == held
    own = chat.recording.path
    assert own != path and said(chat) == ["Second.", "Third."]
    assert [m.id for m in read_session(own).messages] == [m.id for m in chat.messages]
    assert {row.id for row in ws.sessions()} == {chat.session_id, OTHER}
    assert any("another session" in str(one.message) for one in told)


def as_record(message: Any) -> dict[str, Any]:
    return {"id": message.id, "timestamp": message.timestamp, "type": message.type, "content": message.content}


def test_what_another_program_rewound_is_not_brought_back_and_is_said(chat: Any) -> None:
    taken = next(m.id for m in chat.messages if m.text == "First.")
    with chat.recording.path.open("ab") as file:
        file.write(to_bytes({"$rewindTo": taken}))

    with pytest.warns(GemnbWarning, match="it took 2 messages out"):
        chat.send("Second.")

    assert "First." not in [m.text for m in chat.messages]


@pytest.mark.parametrize(
    ("first", "tail", "back"),
    [
        pytest.param(None, 1, "Second. Third.", id="it wrote back an older talk"),
        pytest.param(None, 0, "First. Second. Third.", id="it wrote back a talk from before ours"),
        pytest.param("Summed up.", 2, "Third.", id="it summed up an older talk"),
        pytest.param("Summed up.", 3, "", id="it summed up all that was said"),
    ],
)
def test_what_another_program_wrote_the_talk_anew_without_is_put_back(
    ws: gemnb.Workspace, llm: Any, write_session: Callable[..., Path], first: Any, tail: int, back: str
) -> None:
    llm._default = "Aye."
    path = write_session(header(), *TALK)
    chat = ws.resume("1")
    for text in ("First.", "Second.", "Third."):
        chat.send(text)
    spoken = [as_record(m) for m in chat.messages]
    kept = spoken[:2] + spoken[2 : 2 + 2 * tail] if first is None else spoken[2 * tail : 2 + 2 * tail]
    summary = [user("s", first)] if first else []
    with path.open("ab") as file:
        file.write(to_bytes({"$set": {"messages": [*summary, *kept]}}))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        chat.sync()

    texts = [m.text for m in chat.messages if m.text in ("First.", "Second.", "Third.")]
    shown = [m["content"][0]["text"] for m in kept if m["type"] == "user"]
    assert texts == [t for t in shown if t.endswith(".")] + back.split(" ") * bool(back)
    assert [m.id for m in read_session(path).messages] == [m.id for m in chat.messages]
    assert bool(back) == any("put back" in str(one.message) for one in told)


def test_a_file_that_appears_just_before_ours_is_made_stays_as_it_is(
    ws: gemnb.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ws.new_chat()
    recorder = chat._journal._recorder
    prepare = recorder._prepare
    theirs: list[Path] = []

    def and_then_another(path: Path) -> Path:
        free = prepare(path)
        if not theirs:
            free.write_bytes(b"theirs")
            theirs.append(free)
        return free

    monkeypatch.setattr(recorder, "_prepare", and_then_another)
    with pytest.warns(GemnbWarning, match="Nothing is being saved"), pytest.warns(match="is another file"):
        chat.send("First.")

    assert theirs[0].read_bytes() == b"theirs" and chat.recording.active
    assert [m.id for m in read_session(chat.recording.path).messages] == [m.id for m in chat.messages]


@pytest.fixture
def summed_up(ws: gemnb.Workspace, llm: Any, write_session: Callable[..., Path]) -> Callable[[Any], gemnb.Chat]:
    """A long talk; while the model sums it up, another program writes the given record to it."""
    told = "A question that is long enough to be worth a summary. " * 9
    path = write_session(header(), *(user(f"u{n}", told) for n in range(9)))
    llm._default = "<state_snapshot>short</state_snapshot>"
    real = llm.stream

    def meanwhile(record: Any) -> gemnb.Chat:
        def stream(*args: Any, **options: Any) -> Any:
            if len(llm.asked) == 1:
                with path.open("ab") as file:
                    file.write(to_bytes(record))
            return real(*args, **options)

        llm.stream = stream
        return ws.resume("1")

    return meanwhile


def test_what_is_said_while_the_model_sums_up_stays(summed_up: Callable[[Any], gemnb.Chat]) -> None:
    chat = summed_up(user("theirs", "In between."))

    with pytest.warns(GemnbWarning, match="its 1 new messages"):
        assert chat.compress(floor={}).status == "COMPRESSED"

    assert [m.id for m in chat.messages][-1] == "theirs"
    assert [m.id for m in read_session(chat.recording.path).messages] == [m.id for m in chat.messages]


def test_what_is_rewound_while_the_model_sums_up_is_not_summed_up(summed_up: Callable[[Any], gemnb.Chat]) -> None:
    chat = summed_up({"$rewindTo": "u7"})

    with pytest.warns(GemnbWarning, match="it took 2 messages out"), pytest.raises(TalkChangedError):
        chat.compress(floor={})

    assert [m.id for m in chat.messages] == [f"u{n}" for n in range(7)]


@pytest.mark.parametrize("step", ["rewind", "compress", "undo_rewind"])
def test_what_comes_just_before_a_step_of_ours_is_not_dropped_by_it(
    ws: gemnb.Workspace, llm: Any, write_session: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    told = "A question that is long enough to be worth a summary. " * 9
    path = write_session(header(), *(user(f"u{n}", told) for n in range(9)))
    llm._default = "<state_snapshot>short</state_snapshot>"
    chat = ws.resume("1")
    chat.rewind(9)
    lines = [to_bytes(user("theirs", "In between."))]

    def write() -> None:
        if lines:
            with path.open("ab") as file:
                file.write(lines.pop())

    with monkeypatch.context() as patch, pytest.warns(GemnbWarning, match="its 1 new messages"):
        just_before_a_write_of_ours(patch, write)
        {
            "rewind": lambda: chat.rewind(5),
            "compress": lambda: chat.compress(floor={}),
            "undo_rewind": chat.undo_rewind,
        }[step]()

    assert not lines and [m.id for m in chat.messages][-1] == "theirs"
    assert [m.id for m in read_session(path).messages] == [m.id for m in chat.messages]


@pytest.mark.parametrize(
    ("kind", "why"), [("fifo", "no regular file"), ("device", ""), ("link", ""), ("hard link", "hard link")]
)
def test_what_is_no_file_of_ours_stops_recording_and_not_the_talk(
    chat: Any, tmp_path: Path, kind: str, why: str
) -> None:
    path = chat.recording.path
    aside = tmp_path / "aside.jsonl"
    path.rename(aside)
    held = aside.read_bytes()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        try:
            os.mknod(path, 0o020600, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    elif kind == "link":
        path.symlink_to(aside)
    else:
        path.hardlink_to(aside)

    with pytest.warns(GemnbWarning, match="Nothing is being saved"):
        assert chat.send("Second.").text == "Aye."

    assert aside.read_bytes() == held
    assert not chat.recording.active and re.search(why, chat.recording.reason)
    path.unlink()
    aside.rename(path)
    chat.send("Third.")
    assert [m.id for m in read_session(path).messages] == [m.id for m in chat.messages]
    assert chat.recording.active and not chat.recording.unsaved


def test_an_older_file_that_is_newer_than_its_twin_goes_on(
    ws: gemnb.Workspace, llm: Any, write_session: Callable[..., Path]
) -> None:
    twin = write_session(header(), TALK[0])
    newer = header(lastUpdated="2026-05-02T10:00:00.000Z") | {"messages": [*TALK, {"id": "u9", "type": "user"}]}
    older = write_session(json.dumps(newer).encode(), name="session-2026-05-01T10-00-aa11bb22.json")
    held = twin.read_bytes(), older.read_bytes()
    llm._default = "Aye."
    chat = ws.resume(SID)

    with pytest.warns(GemnbWarning, match="another file"):
        chat.send("On.")

    assert chat.recording.active and (twin.read_bytes(), older.read_bytes()) == held
    assert [m.id for m in read_session(chat.recording.path).messages] == [m.id for m in chat.messages]
    ws.chat = None
    assert ws.resume("latest").messages == chat.messages


@pytest.mark.parametrize("step", ["rewind", "compress", "undo"])
def test_what_another_wrote_stays_where_a_step_of_ours_still_waits_for_the_disk(
    chat: Any, ws: gemnb.Workspace, step: str
) -> None:
    ws.llm = demo_llm()
    path = chat.recording.path
    for number in range(8):
        chat.send(f"River {number} is long, and more of it. " * 20)
    chat.send("More.")
    if step == "undo":
        chat.rewind(10)
    blocked = path.rename(path.with_suffix(".held"))
    path.mkdir()
    with pytest.warns(gemnb.GemnbWarning, match="Nothing is being saved"):
        {"rewind": lambda: chat.rewind(10), "compress": lambda: chat.compress(floor={}), "undo": chat.undo_rewind}[
            step
        ]()
    path.rmdir()
    with blocked.open("ab") as file:
        file.write(to_bytes(user("other", "Another program asks.")))
    blocked.rename(path)

    with pytest.warns(gemnb.GemnbWarning, match="Another program is writing"):
        chat.send("Go on.")

    found = read_session(path)
    assert [m.id for m in found.messages] == [m.id for m in chat.messages]
    assert "Another program asks." in [m.text for m in found.messages]
    assert step != "rewind" or "More." not in [m.text for m in found.messages]


def while_read_to_resume(patch: pytest.MonkeyPatch, write: Callable[[], None]) -> None:
    patch.setattr(replay, "read_session", and_then(replay.read_session, write))


def while_folded_in(patch: pytest.MonkeyPatch, write: Callable[[], None]) -> None:
    patch.setattr(live, "read_session", and_then(live.read_session, write))


def just_before_a_write_of_ours(patch: pytest.MonkeyPatch, write: Callable[[], None]) -> None:
    patch.setattr(os, "write", before(os.write, write))


def and_then(real: Callable[..., Any], write: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        done = real(*args)
        write()
        return done

    return call


def before(real: Callable[..., Any], write: Callable[[], None]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        write()
        return real(*args)

    return call


@pytest.mark.parametrize("when", [while_read_to_resume, while_folded_in, just_before_a_write_of_ours])
def test_what_another_writes_at_the_worst_moment_is_seen(
    ws: gemnb.Workspace, llm: Any, write_session: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, when: Any
) -> None:
    path = write_session(header(), *TALK)
    llm._default = "Aye."
    lines = [to_bytes(user("theirs", "In between."))]

    def write() -> None:
        if lines:
            with path.open("ab") as file:
                file.write(lines.pop())

    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if when is while_folded_in:
            chat = ws.resume("1")
            with path.open("ab") as file:
                file.write(to_bytes(user("theirs-too", "Before.")))
        when(patch, write)
        chat = ws.resume("1")
        chat.send("Mine.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chat.sync()

    assert not lines and "theirs" in [m.id for m in chat.messages]
    assert {m.id for m in chat.messages} == {m.id for m in read_session(path).messages}


def test_old_steps_are_undone_from_the_disk_and_not_held(chat: Any) -> None:
    for number in range(past.KEPT + 3):
        chat.send(f"Prompt {number}.")
        chat.rewind(2)
    whole = [m.id for m in chat.messages]
    assert len(chat._past._steps) == past.KEPT

    for _ in range(past.KEPT + 3):
        chat.undo_rewind()

    asked = [m.text for m in chat.messages if m.text.startswith("Prompt")]
    assert asked == [f"Prompt {number}." for number in range(past.KEPT + 3)]
    assert [m.id for m in chat.messages][: len(whole)] == whole
