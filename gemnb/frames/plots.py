"""Charts of what was spent, of a session's context, and of how tools fare; each with its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gemnb.errors import FrameError
from gemnb.frames import draw
from gemnb.frames.columns import Column, to_frame
from gemnb.frames.draw import AMBER, BLUE, COLOURS, FAINT, GREY, INK, PURPLE, RED, Chart, Part
from gemnb.frames.usage import KEYS, NO_MODEL, SUMS
from gemnb.model.records import Message, as_count, parse_time
from gemnb.model.session import Session
from gemnb.model.shown import clean_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PERIODS: Mapping[str, tuple[str, str]] = {
    "hour": ("h", "%m-%d %H:00"),
    "day": ("D", "%Y-%m-%d"),
    "week": ("7D", "%Y-%m-%d"),
    "month": ("MS", "%Y-%m"),
}
"""For each key that is a time: the step from one to the next, and how it is written."""
MOST_BARS = 14
"""Groups that are drawn by name; the rest is one bar."""
MOST_TICKS = 10
REST = "the rest"
SHORT_ID = 8


@draw.styled
def usage(df: pd.DataFrame) -> Chart:
    """What was spent: dollars by the second key, tokens by kind; over time where the first key is a time.

    Args:
        df: of `gemnb.usage_df`.

    Returns:
        A picture; its table is `df`. Answers without a price or a time are told in the note, not drawn as zero.

    Raises:
        FrameError: `df` is no such frame.

    >>> gemnb.plots.usage(gemnb.usage_df(by=["month", "model"])).title
    'Spent by month and model'
    """
    keys = [name for name in df.columns if name in KEYS]
    if not keys or not {column.name for column in SUMS} <= set(df.columns):
        raise FrameError('That is no frame of usage: give one that `gemnb.usage_df(by=["month", "model"])` made.')
    title = f"Spent by {' and '.join(keys)}"
    over_time = keys[0] in PERIODS
    drawn = df[df[keys[0]].notna()] if over_time else df
    note = _usage_note(df, undated=int(df["answers"].sum() - drawn["answers"].sum()))
    if not len(drawn):
        return _nothing(title, "Nothing was spent yet." if not len(df) else note, df)
    if over_time:
        figure, axes = draw.card(title, note, rows=2, height=5)
        firsts, bars = _bars_over_time(drawn[keys[0]], axes[-1], keys[0])
    else:
        figure, axes = draw.card(
            title, note, columns=2, height=1.9 + 0.27 * min(drawn[keys[0]].nunique(), MOST_BARS + 1)
        )
        firsts, bars = _bars_by_name(drawn, keys[0], axes[0])
    second = drawn[keys[1]].astype("str").fillna(NO_MODEL) if len(keys) > 1 else None
    _draw_dollars(axes[0], drawn, firsts, second, bars, lying=not over_time)
    _draw_tokens(axes[1], drawn, firsts, bars, lying=not over_time)
    return Chart(title, note, figure, df)


def _usage_note(df: pd.DataFrame, *, undated: int) -> str:
    told = []
    if unpriced := int(df["unpriced"].sum()):
        models = ", ".join(map(clean_line, df.attrs.get("gemnb", {}).get("unpriced_models", []))) or "some models"
        total = int(df["total"].sum())
        share = f", {df['unpriced_total'].sum() / total:.0%} of the tokens" if total else ""
        told.append(f"Without a price: {unpriced} of {int(df['answers'].sum())} answers{share} ({models}).")
    if undated:
        told.append(f"Not drawn: {undated} answers without a time.")
    return " ".join(told)


@dataclass(frozen=True, slots=True)
class Bars:
    """Where bars stand, and how thick they are."""

    places: Sequence[float]
    sizes: Sequence[float]


def _bars_over_time(times: pd.Series, axis: Axes, key: str) -> tuple[pd.Series, Bars]:
    """For each row the number of its bar, and the bars: one for each time, as wide as its period."""
    import pandas as pd
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

    step, form = PERIODS[key]
    starts = pd.DatetimeIndex(times.drop_duplicates().sort_values())
    ends = starts + pd.tseries.frequencies.to_offset(step)
    left, right = (date2num(at.tz_convert("UTC") if at.tz else at) for at in (starts, ends))
    bars = Bars([float(v) for v in (left + right) / 2], [float(v) for v in (right - left) * 0.86])
    if len(starts) <= MOST_TICKS:
        axis.set_xticks(bars.places, [at.strftime(form) for at in starts], rotation=0 if len(starts) < 7 else 30)
    else:
        locator = AutoDateLocator(tz=starts.tz)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=starts.tz))
    span = max(right[-1] - left[0], 3 * (right[0] - left[0]))
    middle = (left[0] + right[-1]) / 2
    axis.set_xlim(middle - span * 0.52, middle + span * 0.52)
    return times.map({at: number for number, at in enumerate(starts)}).astype("int64"), bars


def _bars_by_name(df: pd.DataFrame, key: str, axis: Axes) -> tuple[pd.Series, Bars]:
    """For each row the number of its bar, and the bars: the dearest first, what is left as one."""
    names = df[key].astype("str").fillna(NO_MODEL)
    names = names.str[:SHORT_ID] if key == "session" else names
    worth = df.assign(**{key: names}).groupby(key)[["cost_usd", "total"]].sum().sort_values(["cost_usd", "total"])
    order = list(worth.index[::-1])
    shown = order if len(order) <= MOST_BARS + 1 else [*order[:MOST_BARS], f"{REST} ({len(order) - MOST_BARS})"]
    number = {name: min(at, len(shown) - 1) for at, name in enumerate(order)}
    draw.named(axis, range(len(shown)), shown)
    return names.map(number).astype("int64"), Bars(range(len(shown)), [0.76] * len(shown))


def _summed(values: pd.Series, firsts: pd.Series, bars: Bars) -> list[float]:
    sums = values.fillna(0).astype("float64").groupby(firsts).sum()
    return [float(sums.get(number, 0.0)) for number in range(len(bars.places))]


def _draw_dollars(
    axis: Axes, df: pd.DataFrame, firsts: pd.Series, second: pd.Series | None, bars: Bars, *, lying: bool
) -> None:
    costs = df["cost_usd"]
    if costs.isna().all():
        axis.text(0.5, 0.5, "No price is known.", ha="center", va="center", transform=axis.transAxes, color=FAINT)
        axis.grid(visible=False)
        (axis.xaxis if lying else axis.yaxis).set_ticks([])
        return
    parts: dict[str, Part] = {}
    if second is None:
        parts["US dollars"] = (BLUE, _summed(costs, firsts, bars))
    else:
        order = list(costs.dropna().groupby(second).sum().sort_values(ascending=False).index)
        kept = order[: len(COLOURS)]
        for name, colour in zip(kept, COLOURS, strict=False):
            parts[name] = (colour, _summed(costs.where(second == name), firsts, bars))
        if len(order) > len(kept):
            parts[REST] = (GREY, _summed(costs.where(~second.isin(kept)), firsts, bars))
    priced = set(firsts[costs.notna()])
    for number, place in enumerate(bars.places):
        if number not in priced and len(bars.places) <= MOST_BARS + 1:
            at = (0.01, place) if lying else (place, 0.02)
            along = axis.get_yaxis_transform() if lying else axis.get_xaxis_transform()
            axis.text(*at, "no price", transform=along, color=FAINT, fontsize=8, ha="left" if lying else "center",
                      va="center" if lying else "bottom")  # fmt: skip
    draw.stacked(axis, bars.places, bars.sizes, parts, lying=lying)
    draw.quantities(axis, lying=lying, dollars=True)
    _name_quantity(axis, "US dollars", lying=lying)
    if second is not None:
        draw.legend(axis, columns=2 if lying else 4)


def _draw_tokens(axis: Axes, df: pd.DataFrame, firsts: pd.Series, bars: Bars, *, lying: bool) -> None:
    counts = {kind: _summed(df[kind], firsts, bars) for kind in ("input", "cached", "output", "thoughts", "tool")}
    fresh = [
        max(input - cached, 0) + tool
        for input, cached, tool in zip(counts["input"], counts["cached"], counts["tool"], strict=True)
    ]
    parts: dict[str, Part] = {
        "new input": (BLUE, fresh),
        "cached input": (GREY, counts["cached"]),
        "thoughts": (PURPLE, counts["thoughts"]),
        "answers": (AMBER, counts["output"]),
    }
    draw.stacked(axis, bars.places, bars.sizes, parts, lying=lying)
    seen = _summed(df["visible"], firsts, bars)
    low, high = ([p + side * size / 2 for p, size in zip(bars.places, bars.sizes, strict=True)] for side in (-1, 1))
    line = axis.vlines if lying else axis.hlines
    line(seen, low, high, colors=INK, linewidth=2, label="still in a talk")
    draw.quantities(axis, lying=lying)
    _name_quantity(axis, "tokens", lying=lying)
    draw.legend(axis, columns=2 if lying else 5)


def _name_quantity(axis: Axes, name: str, *, lying: bool) -> None:
    (axis.set_xlabel if lying else axis.set_ylabel)(name)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a session, and what it held."""

    number: int
    message: Message
    live: bool
    after: str | None
    """`rewind` or `compression`, where one came before it."""


def _count(kind: str) -> Callable[[Asked], int | None]:
    return lambda row: as_count(getattr(row.message.tokens, kind))


CONTEXT: tuple[Column[Asked], ...] = (
    Column("request", "Int64", "Number of the request, from 1.", lambda r: r.number),
    Column("at", "datetime64[us, UTC]", "When it was answered.", lambda r: parse_time(r.message.timestamp)),
    Column("model", "category", "Model that answered.", lambda r: r.message.model),
    Column("input", "Int64", "Tokens of the prompt, cached ones included.", _count("input")),
    Column("cached", "Int64", "Tokens of the prompt that came from the cache.", _count("cached")),
    Column("output", "Int64", "Tokens of the answer.", _count("output")),
    Column("live", "boolean", "Whether the answer is still in the talk.", lambda r: r.live),
    Column("after", "category", "`rewind` or `compression`, where one came just before.", lambda r: r.after),
)


@draw.styled
def context(session: Session) -> Chart:
    """How full the context was at each request of a session, what came from the cache, and where it was cut.

    Args:
        session: of `Workspace.load`.

    Raises:
        FrameError: it is no session.

    >>> gemnb.plots.context(ws.load(19)).title
    'Context of session e5567a35'
    """
    if not isinstance(session, Session):
        raise FrameError("That is no session: give what `ws.load(3)` returns.")
    from matplotlib.colors import to_rgba

    asked, cuts = _asked(session)
    table = to_frame(asked, CONTEXT, {"source": session.id, "tz": "UTC"})
    title = f"Context of session {session.id[:8]}"
    told = table[table["input"].notna()]
    if not len(told):
        return _nothing(title, "No answer tells how long its prompt was.", table)
    gone = int((~told["live"]).sum())
    note = f"Pale: {gone} of {len(told)} answers, taken away by a rewind or a compression; they were paid for."
    figure, (axis,) = draw.card(title, note if gone else "", height=3.2)
    sizes = told["input"].astype("float64")
    cached = told["cached"].astype("float64").fillna(0).clip(upper=sizes)
    for live, pale in ((True, 1.0), (False, 0.4)):
        those = told["live"] == live
        parts = {"new input": (BLUE, (sizes - cached)[those]), "cached input": (GREY, cached[those])}
        shown: dict[str, Part] = {
            name if live or gone == len(told) else f"_{name}": (to_rgba(colour, pale), list(v))
            for name, (colour, v) in parts.items()
        }
        draw.stacked(axis, list(told.loc[those, "request"].astype("float64")), [0.8] * int(those.sum()), shown)
    for kind, colour in (("compression", PURPLE), ("rewind", RED)):
        for at, number in enumerate(number for number, what in cuts.items() if what == kind):
            look = "--" if kind == "rewind" else "-"
            axis.axvline(number + 0.5, color=colour, linestyle=look, label=kind if at == 0 else None)
    axis.set_xlim(0.4, len(table) + 0.6)
    axis.set_xlabel("request")
    axis.set_ylabel("tokens of the prompt")
    draw.whole(axis.xaxis)
    draw.quantities(axis)
    draw.legend(axis)
    return Chart(title, note if gone else "", figure, table)


def _asked(session: Session) -> tuple[list[Asked], dict[int, str]]:
    """Each request, and the cuts."""
    live = {message.id for message in session.messages}
    billed = [message for message in session.usage.values() if message.tokens]
    cuts = _cuts(session, {message.id: number for number, message in enumerate(billed)})
    return [Asked(n + 1, message, message.id in live, cuts.get(n)) for n, message in enumerate(billed)], cuts


def _cuts(session: Session, numbers: Mapping[str, int]) -> dict[int, str]:
    """Number of the first request after each rewind or compression, from 0, to what it was."""
    found: dict[int, str] = {}
    for step in session.history:
        known = [numbers[id] for id in step.before if id in numbers]
        if known and not set(step.before) <= set(step.after):
            found[max(known) + 1] = "rewind" if step.kind == "rewind" else "compression"
    return found


@dataclass(frozen=True, slots=True)
class Tool:
    """How one tool fared."""

    name: str
    statuses: Mapping[str, int]
    seconds: float | None
    result_chars: float | None

    @property
    def calls(self) -> int:
        """How often it was called."""
        return sum(self.statuses.values())

    def of(self, *statuses: str) -> int:
        """Calls that ended so."""
        return sum(self.statuses.get(status, 0) for status in statuses)


TOOLS: tuple[Column[Tool], ...] = (
    Column("name", "str", "The tool.", lambda t: t.name),
    Column("calls", "Int64", "How often it was called.", lambda t: t.calls),
    Column("failed", "Int64", "Calls with status `error`.", lambda t: t.of("error")),
    Column("cancelled", "Int64", "Calls with status `cancelled`.", lambda t: t.of("cancelled")),
    Column("failed_share", "Float64", "Failed calls, of all, 0 to 1.", lambda t: t.of("error") / t.calls),
    Column("median_s", "Float64", "Seconds to the result, median.", lambda t: t.seconds),
    Column("median_result_chars", "Float64", "Characters of the result, median.", lambda t: t.result_chars),
)


@draw.styled
def tools(df: pd.DataFrame) -> Chart:
    """Which tools were called, and which fail.

    Args:
        df: of `gemnb.tool_calls_df`.

    Raises:
        FrameError: `df` is no such frame.

    >>> gemnb.plots.tools(gemnb.tool_calls_df()).title
    'Calls of tools, and how they ended'
    """
    if not {"name", "status", "duration_s", "result_chars"} <= set(df.columns):
        raise FrameError("That is no frame of tool calls: give one that `gemnb.tool_calls_df()` made.")
    found = sorted((_tool(str(name), part) for name, part in df.groupby("name")), key=lambda t: (-t.calls, t.name))
    table = to_frame(found, TOOLS, {**df.attrs.get("gemnb", {}), "odd": {}})
    title = "Calls of tools, and how they ended"
    if not found:
        return _nothing(title, "No tool was called yet.", table)
    drawn = found[:MOST_BARS]
    note = f"Not drawn: {len(found) - len(drawn)} tools that were called less often." if len(found) > len(drawn) else ""
    figure, (axis,) = draw.card(title, note, height=1.3 + 0.27 * len(drawn))
    parts: dict[str, Part] = {
        "success": (BLUE, [tool.of("success") for tool in drawn]),
        "error": (RED, [tool.of("error") for tool in drawn]),
        "cancelled": (AMBER, [tool.of("cancelled") for tool in drawn]),
        "other": (GREY, [tool.calls - tool.of("success", "error", "cancelled") for tool in drawn]),
    }
    draw.named(axis, range(len(drawn)), [tool.name for tool in drawn])
    used = {name: told for name, told in parts.items() if any(told[1])}
    draw.stacked(axis, range(len(drawn)), [0.76] * len(drawn), used, lying=True)
    for place, tool in enumerate(drawn):
        if tool.of("error"):
            axis.annotate(
                f"{tool.of('error') / tool.calls:.0%} failed", (tool.calls, place), xytext=(4, 0),
                textcoords="offset points", va="center", fontsize=8, color=RED,
            )  # fmt: skip
    axis.margins(x=0.12)
    axis.set_xlim(left=0)
    axis.set_xlabel("calls")
    draw.whole(axis.xaxis)
    draw.legend(axis)
    return Chart(title, note, figure, table)


def _tool(name: str, calls: pd.DataFrame) -> Tool:
    counts = calls["status"].astype("str").fillna("other").value_counts()
    seconds, chars = calls["duration_s"].dropna(), calls["result_chars"].dropna()
    return Tool(
        name or "(no name told)",
        {str(status): int(count) for status, count in counts.items()},
        float(seconds.median()) if len(seconds) else None,
        float(chars.median()) if len(chars) else None,
    )


def _nothing(title: str, note: str, table: pd.DataFrame) -> Chart:
    figure, (axis,) = draw.card(title, "", height=1.2)
    axis.set_axis_off()
    axis.text(0, 0.5, draw.label(note, 130), va="center", color=FAINT)
    return Chart(title, note, figure, table)
