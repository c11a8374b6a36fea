"""Charts: drawn for any frame of ours, never a warning, never a formula, and each with its table."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from PIL import Image
from support import SID, TALK, TOKENS, gemini, header, user
from traitlets.config import Config

import gemnb
from gemnb.errors import FrameError
from gemnb.frames import draw
from gemnb.frames.plots import CONTEXT, TOOLS
from gemnb.frames.usage import KEYS

Write = Callable[..., Path]
NAMES = [
    "plain",
    "$x^2$ and $",
    "日本語のツール",
    "\x1b[31mred",
    "ẹ́ 👨‍👩‍👧 \U000f0000",
    "half \ud83d",
    "<b>b</b>",
    "x" * 300,
    "",
]


def answer(id: str, model: str = "gemini-2.5-pro", at: str = "2026-05-01T10:00:09Z", **more: Any) -> dict[str, Any]:
    return gemini(id, "x", tokens=TOKENS | {"cached": 40}, model=model, timestamp=at, **more)


def texts(chart: gemnb.plots.Chart) -> list[str]:
    """Everything written in the picture."""
    from matplotlib.text import Text

    found = chart.figure.findobj(lambda one: isinstance(one, Text) and one.get_visible())
    return [one.get_text() for one in found if isinstance(one, Text) and one.get_text()]


def heights(chart: gemnb.plots.Chart, axis: int) -> dict[str, float]:
    """What the bars of one axes come to, by name."""
    return {
        str(bars.get_label()): float(sum(bars.datavalues))  # type: ignore[attr-defined]
        for bars in chart.figure.axes[axis].containers
    }


def picture(chart: gemnb.plots.Chart) -> Image.Image:
    return Image.open(io.BytesIO(chart.png()))


@pytest.fixture
def many(ws: gemnb.Workspace, write_session: Write) -> gemnb.Workspace:
    days = [f"2026-{month:02}-{day:02}T{day:02}:30:00Z" for month in (1, 3, 4) for day in (1, 7, 8, 20)]
    told = [answer(f"g{n}", f"gemini-2.5-{('pro', 'flash')[n % 2]}", at) for n, at in enumerate(days)]
    write_session(header(), user("u", "x"), *told, answer("odd", "mystery-1"), answer("bad", at="never"))
    return ws


@pytest.mark.parametrize("rows", ["many", "none"])
@pytest.mark.parametrize("by", [(key,) for key in KEYS] + [(key, "model") for key in KEYS], ids=str)
def test_usage_is_drawn_by_any_key(many: gemnb.Workspace, by: tuple[str, ...], rows: str) -> None:
    df = gemnb.usage_df(many, by=by, tz="America/New_York")

    chart = gemnb.plots.usage(df if rows == "many" else df.head(0))

    assert picture(chart).width == chart.width * 1.5
    assert chart.table.equals(df if rows == "many" else df.head(0)) and " and ".join(dict.fromkeys(by)) in chart.title


def test_the_bars_are_the_sums_of_the_frame(many: gemnb.Workspace) -> None:
    df = gemnb.usage_df(many, by=["project", "model"])

    chart = gemnb.plots.usage(df)

    money, tokens = heights(chart, 0), heights(chart, 1)
    priced = df.dropna(subset="cost_usd")
    assert money == pytest.approx(dict(zip(priced["model"], priced["cost_usd"], strict=True)))
    assert tokens["new input"] + tokens["cached input"] == df["input"].sum()
    assert (tokens["cached input"], tokens["answers"]) == (df["cached"].sum(), df["output"].sum())


def test_what_cannot_be_drawn_is_told(many: gemnb.Workspace) -> None:
    chart = gemnb.plots.usage(gemnb.usage_df(many, by=["month"]))

    assert chart.note == (
        "Without a price: 2 of 14 answers, 14% of the tokens (gemini-2.5-pro, mystery-1). "
        "Not drawn: 1 answers without a time."
    )
    assert chart.note in texts(chart) and str(chart).startswith(f"{chart.title}\n{chart.note}\n")


def test_a_bar_without_a_price_is_not_a_zero(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), answer("a", "mystery-1"), answer("b"))

    told = texts(gemnb.plots.usage(gemnb.usage_df(ws, by="model")))

    assert told.count("no price") == 1
    nothing = gemnb.plots.usage(gemnb.usage_df(ws, by="model", prices=lambda *_: None))
    assert "No price is known." in texts(nothing)


@pytest.mark.parametrize("stamp", ["0001-01-01T00:00:00Z", "1969-12-31T23:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("by", ["hour", "day", "week", "month"])
def test_a_time_far_off_is_drawn_too(ws: gemnb.Workspace, write_session: Write, by: str, stamp: str) -> None:
    write_session(header(), *TALK, answer("far", at=stamp))

    assert picture(gemnb.plots.usage(gemnb.usage_df(ws, by=by, tz="UTC")))


def test_many_groups_are_drawn_as_the_rest(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x"), *(answer(f"g{n}", f"model-{n:02}") for n in range(40)))

    chart = gemnb.plots.usage(gemnb.usage_df(ws, by="model", prices="free"))

    assert "the rest (26)" in texts(chart) and heights(chart, 1)["answers"] == 40 * TOKENS["output"]


@pytest.mark.parametrize("name", NAMES, ids=[ascii(n)[:12] for n in NAMES])
def test_any_name_is_drawn_as_text(ws: gemnb.Workspace, write_session: Write, name: str) -> None:
    call = {"id": "c", "name": name, "args": {}, "status": "error"}
    write_session(header(), user("u", "x"), answer("g", name, toolCalls=[call]))

    usage, tools = gemnb.plots.usage(gemnb.usage_df(ws, by="model")), gemnb.plots.tools(gemnb.tool_calls_df(ws))

    for chart in (usage, tools):
        assert picture(chart) and "<b>" not in chart._repr_html_() and "\x1b" not in "".join(texts(chart))
        assert name != "$x^2$ and $" or name in texts(chart)


def test_a_session_shows_where_it_was_cut(ws: gemnb.Workspace, write_session: Write) -> None:
    summary = user("s", "<state_snapshot>\nx\n</state_snapshot>")
    write_session(
        header(),
        *(user("u1", "a"), answer("g1"), user("u2", "b"), answer("g2")),
        {"$set": {"messages": [summary, gemini("ok", "Got it.")]}},
        *(user("u3", "c"), answer("g3"), user("u4", "d"), answer("g4")),
        {"$rewindTo": "u4"},
    )

    chart = gemnb.plots.context(ws.load(SID))

    assert [c.name for c in CONTEXT] == list(chart.table.columns)
    assert chart.table["live"].to_list() == [False, False, True, False]
    assert chart.table["after"].dropna().to_dict() == {2: "compression"}
    assert chart.note.startswith("Pale: 3 of 4 answers")
    assert {"compression", "rewind", "new input", "cached input"} <= set(texts(chart)) and picture(chart)


def test_tools_are_counted_by_how_they_ended(ws: gemnb.Workspace, write_session: Write) -> None:
    ends = ["success", "error", "success", "cancelled", "odd", "success"]
    at = "2026-05-01T10:00:11Z"
    calls = [{"id": f"c{n}", "name": "ls", "args": {}, "status": s, "timestamp": at} for n, s in enumerate(ends)]
    write_session(header(), user("u", "x"), answer("g", toolCalls=calls))

    chart = gemnb.plots.tools(gemnb.tool_calls_df(ws))

    assert chart.table.astype(object).where(chart.table.notna(), None).to_dict("records") == [
        {"name": "ls", "calls": 6, "failed": 1, "cancelled": 1, "failed_share": pytest.approx(1 / 6), "median_s": 2.0,
         "median_result_chars": None},
    ]  # fmt: skip
    assert heights(chart, 0) == {"success": 3, "error": 1, "cancelled": 1, "other": 1}
    assert "17% failed" in texts(chart)


@pytest.mark.parametrize("draw_it", [gemnb.plots.usage, gemnb.plots.tools], ids=["usage", "tools"])
def test_another_frame_is_an_error_that_says_which(ws: gemnb.Workspace, draw_it: Any) -> None:
    with pytest.raises(FrameError, match="_df"):
        draw_it(gemnb.messages_df(ws))


def test_no_rows_are_drawn_as_words(ws: gemnb.Workspace, write_session: Write) -> None:
    write_session(header(), user("u", "x"))

    told = [
        (gemnb.plots.tools(gemnb.tool_calls_df(ws)), "No tool was called yet.", [c.name for c in TOOLS]),
        (gemnb.plots.context(ws.load(SID)), "No answer tells how long its prompt was.", [c.name for c in CONTEXT]),
    ]

    for chart, words, columns in told:
        assert words in texts(chart) and list(chart.table.columns) == columns and picture(chart)
    with pytest.raises(FrameError, match=r"ws\.load"):
        gemnb.plots.context("latest")  # type: ignore[arg-type]


def contrast(one: str, other: str) -> float:
    """The ratio that WCAG 2 takes."""
    from matplotlib.colors import to_rgb

    def light(colour: str) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return sum(part * weight for part, weight in zip(parts, (0.2126, 0.7152, 0.0722), strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["default", "dark_background", "grayscale"])
def test_it_reads_the_same_in_light_and_dark(many: gemnb.Workspace, theme: str) -> None:
    df = gemnb.usage_df(many, by=["month", "model"])
    plain = gemnb.plots.usage(df).png()

    with mpl.style.context(theme):
        chart = gemnb.plots.usage(df)
        assert chart.png() == plain

    image = picture(chart).convert("RGBA")
    assert image.getpixel((0, 0)) == (255, 255, 255, 255) and image.getextrema()[3] == (255, 255)
    assert all(contrast(ink, "white") >= 4.5 for ink in (draw.INK, draw.FAINT, draw.RED))


LINES = ["%sessions usage --by month,model", "gemnb.plots.usage(gemnb.usage_df(ws, by=['month', 'model']))"]


@pytest.mark.parametrize("line", LINES, ids=["magic", "function"])
def test_a_notebook_has_the_picture_and_the_table(many: gemnb.Workspace, line: str) -> None:
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    shell.user_ns |= {"gemnb": gemnb, "ws": many}
    shell.extension_manager.load_extension("gemnb")
    try:
        shell.user_ns["Gemnb"].workspace = many
        with capture_output() as caught:
            result = shell.run_cell(line).result
        shown = [output.data for output in caught.outputs]
        shown += [shell.display_formatter.format(result)[0]] if isinstance(result, pd.DataFrame) else []
    finally:
        shell.extension_manager.unload_extension("gemnb")
        InteractiveShell.clear_instance()

    assert set(shown[0]) == {"image/png", "text/plain"} and shown[0]["text/plain"].startswith("Spent by ")
    assert caught.outputs[0].metadata["image/png"] == {"width": 720}
    assert "<table" in shown[-1]["text/html"] and "mystery-1" in shown[-1]["text/plain"]
    assert "<img" in gemnb.plots.usage(gemnb.usage_df(many))._repr_html_()  # where the extension is not loaded
