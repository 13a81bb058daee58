"""Charts as PNG by matplotlib (part of the extra `bot`), drawn without its global state, so in any thread or process.

Sized for a phone: 960 x 600 pixels with large letters; colours of Okabe and Ito, which colour-blind readers tell apart.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any

from bot.answers.charts.scale import number, shown, ticks, x_ticks
from bot.answers.charts.spec import BarChart, Chart, LineChart

BLUE, ORANGE, GREEN, VERMILION, SKY, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#595959"
_WIDTH_IN, _HEIGHT_IN, _DPI = 6.4, 4.0, 150
_LETTERS = 12
_LONGEST_LABEL, _LONGEST_AXIS, _LONGEST_TITLE = 26, 34, 52
_LONGEST_IN_TWO_COLUMNS = 36


class MatplotlibMissing(RuntimeError):
    """The package matplotlib is not installed."""


def png_chart(chart: Chart) -> bytes:
    """The picture's bytes. Raises `MatplotlibMissing`."""
    if find_spec("matplotlib") is None:
        raise MatplotlibMissing
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.text import Text

    height = _HEIGHT_IN if isinstance(chart, LineChart) else max(2.6, 1.3 + 0.36 * (len(chart.bars) + 1))
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(_WIDTH_IN, height), dpi=_DPI, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=_LETTERS)
    figure.suptitle(_cut(chart.title, _LONGEST_TITLE), fontsize=_LETTERS + 1.5, fontweight="bold", x=0.02, ha="left")
    if isinstance(chart, BarChart):
        _bars(chart, axes)
    else:
        _lines(chart, axes)
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})
    return picture.getvalue()


def _bars(chart: BarChart, axes: Any) -> None:
    labels = [*(bar.label for bar in chart.bars), chart.total.label]
    start, room = 0.0, chart.most * 1.16
    for row, bar in enumerate(chart.bars):
        axes.barh(row, bar.value, left=start, color=BLUE if row % 2 == 0 else SKY, height=0.72)
        _value(axes, start + bar.value, row, shown(bar.value, chart.marks), room)
        start += bar.value
    last = len(chart.bars)
    axes.barh(last, chart.total.value, color=VERMILION if chart.over else GREEN, height=0.72)
    _value(axes, chart.total.value, last, shown(chart.total.value, chart.marks), room, bold=True)
    if chart.limit:
        axes.axvline(chart.limit.value, color="black", linestyle=(0, (4, 2)), linewidth=1.8)
        text = f"{_cut(chart.limit.label)} {shown(chart.limit.value, chart.marks)} {chart.unit}"
        right = chart.limit.value > 0.5 * room
        axes.annotate(
            text,
            (chart.limit.value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4 if not right else 6, 3),
            textcoords="offset points",
            ha="right" if right else "left",
            va="bottom",
            fontsize=_LETTERS,
        )
    axes.set_yticks(range(len(labels)), [_cut(label) for label in labels])
    axes.invert_yaxis()
    axes.set_xlim(0, room)
    values = ticks(chart.most, 5)
    axes.set_xticks(values, [number(value, chart.marks) for value in values])
    axes.set_xlabel(chart.unit, fontsize=_LETTERS)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)


def _value(axes: Any, end: float, row: int, text: str, room: float, bold: bool = False) -> None:
    """A value to the right of its bar, on white, so that the limit's line does not run through it."""
    axes.text(
        end + room * 0.012,
        row,
        text,
        va="center",
        ha="left",
        fontsize=_LETTERS,
        fontweight="bold" if bold else "normal",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=3,
    )


def _lines(chart: LineChart, axes: Any) -> None:
    if chart.band:
        xs = [x for x, _ in chart.band.low]
        low, high = [y for _, y in chart.band.low], [y for _, y in chart.band.high]
        axes.fill_between(
            xs, low, high, color=ORANGE, alpha=0.28, linewidth=0, label=_cut(chart.band.label, _LONGEST_AXIS)
        )
    styles = ((BLUE, "-"), (VERMILION, "--"), (GREEN, "-."))
    for at, line in enumerate(chart.lines):
        colour, style = styles[at % len(styles)]
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        axes.plot(xs, ys, style, color=colour, linewidth=2.6, label=_cut(line.label, _LONGEST_AXIS))
    if chart.target:
        label = f"{_cut(chart.target.label, _LONGEST_AXIS)} {number(chart.target.value, chart.marks)}"
        axes.axhline(chart.target.value, color="black", linestyle=(0, (4, 2)), linewidth=1.8, label=label)
    if chart.mark:
        axes.plot(*chart.mark.at, "o", color="black", markersize=9, label=_cut(chart.mark.label, _LONGEST_TITLE))
    if chart.x_doubles:
        axes.set_xscale("log", base=2)
    axes.minorticks_off()
    across, up = x_ticks(chart, 7), ticks(chart.y_most * 1.05, 5)
    axes.set_xticks(across, [number(value, chart.marks) for value in across])
    axes.set_yticks(up, [number(value, chart.marks) for value in up])
    axes.set_xlim(*chart.x_range)
    axes.set_ylim(0, chart.y_most * 1.08)
    axes.set_xlabel(_cut(chart.x_label, _LONGEST_AXIS), fontsize=_LETTERS)
    axes.set_ylabel(_cut(chart.y_label, _LONGEST_AXIS), fontsize=_LETTERS)
    axes.grid(color="#DDDDDD", linewidth=0.8)
    _, labels = axes.get_legend_handles_labels()
    columns = 2 if all(len(label) <= _LONGEST_IN_TWO_COLUMNS for label in labels) else 1
    axes.figure.legend(loc="outside lower left", ncols=columns, fontsize=_LETTERS - 0.5, frameon=False)


def _cut(label: str, longest: int = _LONGEST_LABEL) -> str:
    return label if len(label) <= longest else label[: longest - 1] + "…"
