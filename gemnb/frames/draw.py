"""How a chart looks: one white card that reads the same in light and dark, drawn without a display.

matplotlib, because a picture in the notebook's file is what shows everywhere: JupyterLab knows no Vega-Lite newer than
5, GitHub and a page made by nbconvert would want a network for it, and neither wants a kernel for a PNG.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial, wraps
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec

from gemnb.model.shown import clean_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

P = ParamSpec("P")
Colour = str | tuple[float, float, float, float]
Part = tuple[Colour, Sequence[float]]
"""A colour, and the height that each bar has in it."""
INK, FAINT = "#1f2328", "#59636e"
BLUE, AMBER, RED, GREY, PURPLE = "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"
BROWN, ORANGE = "#a96b59", "#e76300"
COLOURS = (BLUE, AMBER, PURPLE, BROWN, ORANGE)
"""Told apart by people who see colours differently (Petroff 2021); grey is for the rest, red for what failed."""
DOTS_PER_INCH = 144
SHOWN_AT = 96
"""Dots per inch at which a page shows it; the picture has more, for sharp screens."""
LONGEST = 36
"""Characters of a name in a chart; the table has it whole."""
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "SimHei")
CARD = {
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e4e7ea",
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "font.size": 9,
    "legend.frameon": False,
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and the numbers that it draws.

    >>> chart = gemnb.plots.tools(gemnb.tool_calls_df())
    >>> chart.table.columns[0], chart.png()[1:4]
    ('name', b'PNG')
    """

    title: str
    note: str
    """What is not to be seen in the picture; empty where nothing is."""
    figure: Figure
    table: pd.DataFrame

    def __repr__(self) -> str:
        return "\n".join([self.title, *([self.note] if self.note else []), self.table.to_string(index=False)])

    def png(self) -> bytes:
        """The picture."""
        held = io.BytesIO()
        with _style():
            self.figure.savefig(held, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        return held.getvalue()

    @property
    def width(self) -> int:
        """How wide it is to be shown, in pixels of a page."""
        return round(self.figure.get_figwidth() * SHOWN_AT)

    def _repr_html_(self) -> str:
        """Picture and table, where gemnb's extension is not there to show them one by one."""
        picture = base64.b64encode(self.png()).decode()
        return (
            f'<img alt="{escape(self.title)}" width="{self.width}" src="data:image/png;base64,{picture}">'
            f"{self.table.to_html(index=False, na_rep='–')}"
        )


def styled(draw: Callable[P, Chart]) -> Callable[P, Chart]:
    """`draw`, with our look and not with the styles that a notebook has set."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Chart:
        with _style():
            return draw(*args, **kwargs)

    return drawn


def _style() -> AbstractContextManager[None]:
    from matplotlib import style

    return style.context({**CARD, "font.family": families()}, after_reset=True)


def card(title: str, note: str, *, rows: int = 1, columns: int = 1, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` by `columns` axes; `height` in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, height), layout="constrained")
    drawn = figure.subplots(rows, columns, squeeze=False, sharex=columns == 1, sharey=rows == 1)
    for axis in drawn.flat:
        axis.tick_params(length=0)
    plain(figure.suptitle(label(title, 90), x=0.01, ha="left", fontweight="bold", fontsize=11))
    if note:
        plain(figure.supxlabel(label(note, 130), x=0.01, ha="left", color=FAINT, fontsize=8))
    return figure, list(drawn.flat)


def legend(axis: Axes, *, columns: int = 5) -> None:
    """What the colours mean, above the axes."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        made = axis.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, fontsize=8,
            borderaxespad=0, handlelength=1, handleheight=1, columnspacing=1.2,
        )  # fmt: skip
        for text in made.get_texts():
            plain(text)


def stacked(
    axis: Axes,
    places: Sequence[float],
    sizes: Sequence[float],
    parts: Mapping[str, Part],
    *,
    lying: bool = False,
) -> None:
    """Bars at `places`, each piled up of `parts`: name to colour and heights."""
    base = [0.0] * len(places)
    for name, (colour, values) in parts.items():
        draw = partial(axis.barh, left=base) if lying else partial(axis.bar, bottom=base)
        draw(places, values, sizes, color=colour, label=label(name), edgecolor="white", linewidth=0.5)
        base = [below + value for below, value in zip(base, values, strict=True)]
    axis.grid(visible=not lying, axis="y")
    axis.grid(visible=lying, axis="x")


def named(axis: Axes, places: Sequence[float], names: Sequence[str]) -> None:
    """Names at the left of lying bars, first at the top."""
    axis.set_yticks(places, [label(name) for name in names])
    for text in axis.get_yticklabels():
        plain(text)
    if not axis.yaxis_inverted():
        axis.invert_yaxis()


def quantities(axis: Axes, *, lying: bool = False, dollars: bool = False) -> None:
    """Numbers as a person writes them: 1.2k, 3M, $0.05."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    along = axis.xaxis if lying else axis.yaxis
    money = FuncFormatter(lambda value, _: f"\\${value:,.10f}".rstrip("0").rstrip("."))
    along.set_major_formatter(money if dollars else EngFormatter(sep=""))


def label(text: str, longest: int = LONGEST) -> str:
    """`text` as it can be drawn: one line, no more than `longest` characters, none that no font here has."""
    line = clean_line(text)
    line = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return "".join(char if ord(char) < 0x250 or ord(char) in drawable() else "\ufffd" for char in line)


def whole(axis: Any) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def plain(text: Text) -> Text:
    """`text` as it stands: a `$` in a name is no formula."""
    text.set_parse_math(False)
    return text


@cache
def families() -> list[str]:
    """The fonts to draw with, of those that this machine has."""
    from matplotlib.font_manager import get_font_names

    here = set(get_font_names())
    return [name for name in FONTS if name in here]


@cache
def drawable() -> frozenset[int]:
    """The characters that these fonts have, as code points."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    fonts = [get_font(findfont(FontProperties(family=[name]))) for name in families()]
    return frozenset(code for font in fonts for code in font.get_charmap())
