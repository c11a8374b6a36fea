"""The audit: what is taken from a talk, what a summary kept of it; measured on talks labelled by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gemnb.model.turns import Turn
from gemnb.services.audit import FLOOR, audit, with_pins
from gemnb.services.audit_facts import KINDS, facts_of, normal

TALKS = [
    json.loads(line) for line in (Path(__file__).parent / "data/audit/talks.jsonl").read_text("utf-8").splitlines()
]


def turns_of(talk: list[list[str]]) -> list[Turn]:
    return [Turn(f"t{n}", role, ({"text": text},)) for n, (role, text) in enumerate(talk)]


def figures() -> dict[str, float]:
    """Precision and recall of what is taken, and the share of right verdicts on it."""
    taken = labelled = both = right = lost = caught = 0
    for talk in TALKS:
        found = {
            (f.fact.kind, normal(f.fact.text)): f.kept for f in audit(turns_of(talk["talk"]), talk["summary"]).findings
        }
        told = {(kind, normal(text)): kept for kind, text, kept in talk["facts"]}
        common = found.keys() & told.keys()
        taken, labelled, both = taken + len(found), labelled + len(told), both + len(common)
        right += sum(found[key] == told[key] for key in common)
        lost += sum(not told[key] for key in common)
        caught += sum(not told[key] and not found[key] for key in common)
    return {
        "precision": both / taken,
        "recall": both / labelled,
        "verdicts": right / both,
        "losses caught": caught / lost,
    }


def test_the_labelled_talks_are_enough_and_of_three_languages() -> None:
    assert len(TALKS) >= 30
    assert {talk["lang"] for talk in TALKS} == {"en", "zh", "ja"}


def test_measured_on_labelled_talks() -> None:
    measured = figures()
    assert measured["precision"] >= 0.8, measured
    assert measured["recall"] >= 0.9, measured
    assert measured["verdicts"] >= 0.9, measured
    assert measured["losses caught"] >= 0.9, measured


@pytest.mark.parametrize(
    ("said", "summary", "kept"),
    [
        ("You must never touch `config/prod.yaml`.", "Never touch “config/prod.yaml”.", True),
        ("You must never touch config/prod.yaml.", "Touch config/prod.yaml.", False),
        ("You must keep 1,000 rows.", "Keep 1000 rows.", True),
        ("Do not use port 54.", "Do not use port 543.", False),
        ("不要删除 users 表。", "删除 users 表。", False),
    ],
    ids=[
        "quoting and case",
        "the denial is gone",
        "thousands",
        "a number inside a longer one",
        "the denial is gone, Chinese",
    ],
)
def test_a_rule_is_kept_only_as_it_was_said(said: str, summary: str, kept: bool) -> None:
    found = audit([Turn.prompt(said)], summary)
    rules = [f.kept for f in found.findings if f.fact.kind == "constraint"]
    assert rules == [kept]
    assert bool(found.below(FLOOR)) is not kept


def test_rules_of_the_model_are_no_rules_of_the_person() -> None:
    assert not [f for f in facts_of([Turn.reply("You must restart.")]) if f.kind == "constraint"]


def test_the_worst_loss_comes_first() -> None:
    found = audit([Turn.prompt("See src/a.py, use port 5433. Never push.")], "nothing")
    order = [KINDS.index(fact.kind) for fact in found.lost]
    assert order == sorted(order)
    assert found.lost[0].text == "Never push."
    assert str(found).splitlines()[1] == "  lost constraint: Never push."


def test_the_html_is_escaped_and_the_rows_are_plain() -> None:
    found = audit([Turn.prompt("You must never <script>alert(1)</script> run.")], "nothing")
    assert "<script>" not in found._repr_html_()
    assert {"kind", "text", "kept", "turn_id"} == set(found.rows()[0])


@pytest.mark.parametrize(
    "summary", ["<state_snapshot>x</state_snapshot>", "x", "<state_snapshot>port 5433</state_snapshot>"]
)
def test_a_pin_is_in_the_summary_whatever_the_model_does(summary: str) -> None:
    pinned = with_pins(summary, ["Port 5433", " "])
    assert "port 5433" in normal(pinned)
    assert with_pins(pinned, ["port 5433"]) == pinned
    assert pinned.endswith("</state_snapshot>") == summary.endswith("</state_snapshot>")
