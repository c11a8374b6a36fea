"""Retention: what would go is told before it goes; what may not go stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import NOW, SID, TALK, header, tree

import gemnb
from gemnb.model.session import SessionInfo
from gemnb.services.doctor import examine
from gemnb.services.retention import plan
from gemnb.services.retention_policy import Policy, parse_age

Write = Callable[..., Path]


@pytest.mark.parametrize(
    ("text", "hours"),
    [("36h", 36), ("30d", 720), ("2w", 336), ("1m", 720), ("9" * 14 + "d", 999_999 * 24)]
    + [(text, None) for text in ("0d", "10", "-3d", "1.5d", "10 d", "", " 10d", "１０d", "1d2h", "10days", "1Y", "d")],
)
def test_an_age_is_read_strictly(text: str, hours: int | None) -> None:
    assert parse_age(text) == (timedelta(hours=hours) if hours else None)


def old(write_session: Write, number: int, *, days: int) -> Path:
    at = (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z")
    told = header(f"{number:08x}-0000-4000-8000-000000000000", startTime=at, lastUpdated=at)
    path = write_session(told, *TALK, name=f"session-2026-01-01T00-00-{number:08x}.jsonl")
    os.utime(path, ((NOW - timedelta(days=days)).timestamp(),) * 2)
    return path


def configure(home: Path, **retention: Any) -> None:
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini/settings.json").write_text(json.dumps({"general": {"sessionRetention": retention}}))


def test_a_plan_tells_and_its_execution_does_it(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    gone, kept = old(write_session, 1, days=40), old(write_session, 2, days=20)
    before = tree(home)

    told = ws.retention()

    assert tree(home) == before
    assert [(c.decision, c.session.path) for c in told.candidates] == [("delete", gone), ("keep", kept)]
    assert "older than maxAge" in str(told) and told.candidates[1].due_at == NOW + timedelta(days=10)
    result = told.apply()
    assert (result.deleted, result.skipped, result.failed) == (1, 1, 0) and not gone.exists() and kept.exists()
    assert ws.retention().due == ()


def test_what_changed_since_the_plan_is_left_alone(ws: gemnb.Workspace, write_session: Write) -> None:
    grown, vanished = old(write_session, 1, days=40), old(write_session, 2, days=40)
    told = ws.retention()
    with grown.open("ab") as file:
        file.write(b"\n")
    vanished.unlink()

    result = told.apply()

    assert result.deleted == 0 and grown.exists()
    assert {why for _, why in result.stayed} == {"it was changed since the plan was made", "it is gone already"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"maxAge": "1Y"}, "maxAge is '1Y'"),
        ({"maxAge": 30}, "maxAge is 30"),
        ({"maxCount": 0}, "maxCount is 0"),
        ({"maxCount": 1.5}, "maxCount is 1.5"),
        ({"maxAge": "12h"}, "shorter than minRetention"),
        ({"maxAge": ""}, "neither"),
        ({"enabled": "yes"}, "enabled is 'yes'"),
    ],
)
def test_a_policy_that_makes_no_sense_deletes_nothing(
    ws: gemnb.Workspace, write_session: Write, home: Path, settings: Any, words: str
) -> None:
    path = old(write_session, 1, days=400)
    configure(home, **settings)

    told = ws.retention()

    assert told.problem and words in told.problem and told.apply().deleted == 0 and path.exists()


def test_the_table_has_a_row_for_each_session(ws: gemnb.Workspace, write_session: Write) -> None:
    old(write_session, 1, days=40)
    write_session(header(), *TALK)

    frame = gemnb.retention_df(ws).set_index("session_id")

    assert frame["decision"].to_dict() == {"00000001-0000-4000-8000-000000000000": "delete", SID: "keep"}
    assert frame.loc["00000001-0000-4000-8000-000000000000", "age_days"] == 40


rows = st.builds(
    SessionInfo,
    id=st.uuids().map(str),
    path=st.uuids().map(lambda u: Path(f"/nowhere/{u}")),
    last_updated=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    is_current=st.booleans(),
    state=st.sampled_from(["ok", "at_risk", "recovered"]),
)
ages = st.timedeltas(timedelta(hours=1), timedelta(days=900))


@given(st.lists(rows, max_size=6), ages, st.none() | ages, st.none() | st.integers(1, 4))
def test_nothing_young_current_or_broken_ever_goes(told: Any, least: Any, age: Any, count: Any) -> None:
    policy = Policy(True, age, count, least)

    made = plan(told, policy, None, now=NOW, family=lambda row: [row.path], delete=lambda _: ())

    for candidate in made.due:
        row = candidate.session
        assert NOW - row.last_updated >= least and not row.is_current and row.state in ("ok", "at_risk")
    assert len(made.candidates) == len(told)


def artifact(path: Path, place: str, *, days: int = 40) -> Path:
    made = path.parent.parent / place
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("{}")
    at = (NOW - timedelta(days=days)).timestamp()
    os.utime(made, (at, at))
    for folder in (made.parent, made.parent.parent):
        os.utime(folder, (at, at))
    return made


def test_what_belongs_to_a_kept_session_stays(ws: gemnb.Workspace, write_session: Write) -> None:
    gone = old(write_session, 1, days=40)
    write_session(header(), *TALK)
    log = artifact(gone, f"logs/session-{SID}.jsonl")
    artifact(gone, f"chats/{'00000001-0000-4000-8000-000000000000'}/{SID}.jsonl")

    assert ws.retention().apply().deleted == 1 and not gone.exists() and log.exists()


def test_where_the_file_stays_all_of_it_stays(ws: gemnb.Workspace, write_session: Write, monkeypatch: Any) -> None:
    path = old(write_session, 1, days=40)
    log = artifact(path, "logs/session-00000001-0000-4000-8000-000000000000.jsonl")
    rename = Path.rename

    def refuse(source: Path, target: Any) -> Path:
        if source == path:
            raise PermissionError(13, "Permission denied")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuse)
    result = ws.retention().apply()

    assert (result.deleted, result.failed) == (0, 1) and path.exists() and log.exists()


@pytest.mark.parametrize("change", ["a grown log", "a rewrite of the same size", "a new log"])
def test_only_what_was_planned_goes(ws: gemnb.Workspace, write_session: Write, change: str) -> None:
    path = old(write_session, 1, days=40)
    log = artifact(path, "logs/session-00000001-0000-4000-8000-000000000000.jsonl")
    told = ws.retention()
    if change == "a grown log":
        log.write_text("{}\n{}")
    elif change == "a rewrite of the same size":
        path.write_bytes(path.read_bytes())
    else:
        late = artifact(path, "tool-outputs/session-00000001-0000-4000-8000-000000000000/x.txt")

    result = told.apply()

    if change == "a new log":
        assert late.exists() and not path.exists()
    else:
        assert result.deleted == 0 and path.exists() and log.exists()


def test_a_twin_that_was_just_written_keeps_the_family(ws: gemnb.Workspace, write_session: Write) -> None:
    path = old(write_session, 1, days=40)
    twin = write_session(header("00000001-0000-4000-8000-000000000000"), name="session-2026-05-20T11-59-00000001.jsonl")
    os.utime(twin, (NOW.timestamp() - 5,) * 2)

    assert ws.retention().due == () and path.exists()


def test_a_session_that_became_current_stays_and_stops_nothing(ws: gemnb.Workspace, write_session: Write) -> None:
    first, second = old(write_session, 1, days=40), old(write_session, 2, days=41)
    told = ws.retention()
    ws.resume("00000002")

    result = told.apply()

    assert result.deleted == 1 and not first.exists() and second.exists()


def test_a_settings_file_that_cannot_be_read_keeps_everything(
    ws: gemnb.Workspace, write_session: Write, home: Path
) -> None:
    path = old(write_session, 1, days=400)
    (home / ".gemini/settings.json").write_text('{"general": {"sessionRetention": {"enabled": fal')

    told = ws.retention()

    assert told.problem and "cannot be read" in told.problem and told.apply().deleted == 0 and path.exists()


def header_only(write_session: Write, number: int, *, name: str) -> Path:
    """A start-up file in which nobody said anything, of the session `number`."""
    path = write_session(header(f"{number:08x}-0000-4000-8000-000000000000"), name=name)
    os.utime(path, ((NOW - timedelta(days=1)).timestamp(),) * 2)
    return path


def test_the_plan_says_what_the_terminal_client_would_delete(
    ws: gemnb.Workspace, write_session: Write, home: Path
) -> None:
    configure(home, maxAge="90d", maxCount=5)
    twin = old(write_session, 1, days=20)
    header_only(write_session, 1, name="session-2026-01-02T00-00-00000001.jsonl")
    fresh = old(write_session, 2, days=0)
    for number in (3, 4):
        old(write_session, number, days=1)
    write_session(b"not a record\n", name="session-2026-01-03T00-00-00000009.jsonl")
    namesake = old(write_session, 9, days=2)

    told = {c.session.path: c.client_reason for c in ws.retention().candidates}

    assert "holds nothing" in (told[twin] or "") and "holds nothing" in (told[namesake] or "")
    assert told[fresh] is None
    assert "`%sessions rescue` keeps them" in str(ws.retention()) and "would delete 2 that stay" in str(
        ws.retention().notice
    )


def test_a_rescue_takes_the_cause_away_where_that_is_harmless(ws: gemnb.Workspace, write_session: Write) -> None:
    talk = old(write_session, 1, days=20)
    twin = header_only(write_session, 1, name="session-2026-01-02T00-00-00000001.jsonl")

    (done,) = ws.rescue().sessions

    assert (done.how, done.paths) == ("cause removed", (twin,)) and talk.exists() and not twin.exists()
    assert ws.retention().endangered == () and ws.sessions()[0].state == "ok"
    assert str(ws.rescue()) == "No conversation is at risk from the terminal client."
    ws.undo_deletion("rescue")
    assert twin.exists()


def test_a_rescue_keeps_a_copy_where_the_cause_is_not_its_own(ws: gemnb.Workspace, write_session: Write) -> None:
    talk = old(write_session, 1, days=20)
    log = artifact(talk, "logs/session-00000001-0000-4000-8000-000000000000.jsonl")
    write_session(b"somebody's broken file\n", name="session-2026-01-02T00-00-00000001.jsonl")
    before = talk.read_bytes(), talk.stat().st_mtime_ns, log.read_bytes()

    (done,) = ws.rescue().sessions
    again = ws.rescue().sessions
    talk.unlink()  # as the client does
    log.unlink()
    back = ws.restore_rescued()

    assert done.how == again[0].how == "copied" and len(list(ws.cleanup.archive.folder.iterdir())) == 0
    assert (talk.read_bytes(), talk.stat().st_mtime_ns, log.read_bytes()) == before
    assert [entry.session_id for entry in back.entries] == [done.session_id]


def test_a_rescue_of_many_looks_at_store_and_archive_once(
    ws: gemnb.Workspace, write_session: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 41):
        old(write_session, number, days=20)
        if number % 2:
            header_only(write_session, number, name=f"session-2026-01-02T00-00-{number:08x}.jsonl")
        else:
            write_session(b"broken\n", name=f"session-2026-01-02T00-00-{number:08x}.jsonl")
    looks: list[str] = []
    for of, name in ((ws.cleanup.archive, "entries"), (ws.cleanup, "endangered")):

        def look(name: str, real: Callable[[], Any]) -> Any:
            looks.append(name)
            return real()

        monkeypatch.setattr(of, name, partial(look, name, getattr(of, name)))

    done = ws.rescue().sessions

    assert [one.how for one in done] == ["cause removed", "copied"] * 20
    assert sorted(looks) == ["endangered", "endangered", "entries"]


def test_nothing_is_at_risk_where_cleaning_is_off(ws: gemnb.Workspace, write_session: Write, home: Path) -> None:
    configure(home, enabled=False)
    old(write_session, 1, days=200)
    header_only(write_session, 1, name="session-2026-01-02T00-00-00000001.jsonl")

    assert ws.retention().endangered == () and ws.retention().notice is None


def test_a_rewind_that_leaves_nothing_to_resume_says_what_that_means(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), *TALK)
    chat = ws.resume("1")

    with pytest.warns(gemnb.GemnbWarning, match="terminal client would delete"):
        chat.rewind(1)


def test_the_doctor_tells_of_the_last_cleaning(
    ws: gemnb.Workspace, write_session: Write, root: Path, home: Path
) -> None:
    def told() -> str:
        return next(str(finding) for finding in examine(root, {"HOME": str(home)}) if finding.name == "retention")

    assert "never applied" in told() and "holds 0 deletions" in told()
    old(write_session, 1, days=40)
    old(write_session, 2, days=4)
    own = gemnb.open_workspace(root, home=home, clock=lambda: NOW, environ={"HOME": str(home)})
    own.retention().apply()
    assert "last applied 2026-05-20 12:00 UTC in app: 1 sessions went to the trash" in told()
    assert "1 stayed, 0 failed" in told() and "holds 1 deletions" in told()
    (own.cleanup.own / "last-cleaning.json").write_text('{"at": [')
    assert "never applied" in told()
