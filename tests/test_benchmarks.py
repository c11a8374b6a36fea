"""The benchmarks run: on a store of a few lines, in one round. What they measure is for a person to look at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "benchmarks"))
import listing
import measuring
import run


@pytest.fixture
def store(home: Path, root: Path, write_session: Callable[..., Path]) -> measuring.Store:
    for number in range(3):
        write_session(
            {"sessionId": f"aa11bb2{number}", "projectHash": "x", "startTime": "2026-05-01T10:00:00.000Z"},
            {"id": "u", "type": "user", "content": "An error, zqxneedle42"},
            {"id": "g", "type": "gemini", "content": "x" * 300, "tokens": {"input": 3, "output": 1, "total": 4}},
            name=f"session-2026-05-01T10-00-aa11bb2{number}.jsonl",
        )
    return measuring.Store(home, root)


def test_every_figure_is_told(store: measuring.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("orjson")
    for name in ("GEMNB_GEMINI_CLI", "GEMNB_CCUSAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(listing, "SETTLED_NS", 0)
    before = {path: path.read_bytes() for path in store.files}

    rows = list(run.rows(store, 1))

    told = "\n".join(row.what for row in rows)
    for what in ("list, no index", "index fresh", "grew by 1 KB", "hits: 6", "first hit", "messages_df", "peak memory"):
        assert what in told
    assert all(row.figure > 0 and row.floor > 0 for row in rows)
    assert before == {path: path.read_bytes() for path in store.files}


def test_a_bar_that_is_missed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    row = measuring.Row("list", 3.0, "s", 1.0, "stat", 3.5)

    assert measuring.show([row]) and not measuring.show([row, measuring.Row("list", 4.0, "s", 1.0, "stat", 3.5)])
    assert capsys.readouterr().out.count("NOT MET") == 1


@pytest.mark.parametrize("arguments", [["nowhere"], []], ids=["no store there", "nothing to make one with"])
def test_without_a_store_it_says_what_to_do(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "GENERATOR", Path("nothing-here"))

    with pytest.raises(SystemExit, match=r"home"), measuring.store_of(arguments):
        pass
