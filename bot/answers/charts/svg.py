"""Charts as SVG to stand in a page: scales with it, takes its text colour, has a title and a description.

The template escapes every text; shapes are computed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bot.answers.charts.scale import number, shown, ticks, x_share, x_ticks
from bot.answers.charts.spec import BarChart, Chart, LineChart, Point

_WIDTH = 640
_TOP, _ROW, _LETTER = 56, 28, 7.6
_PLOT_HEIGHT = 260
_LONGEST_LABEL = 28


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )


def svg_chart(chart: Chart) -> str:
    """One `<svg>` element. The ids in it depend on the chart alone, so that several fit into one page."""
    own = hashlib.sha256(repr(chart).encode()).hexdigest()[:10]
    values = _bars(chart) if isinstance(chart, BarChart) else _lines(chart)
    name = "bars.svg.j2" if isinstance(chart, BarChart) else "lines.svg.j2"
    text: str = _environment().get_template(name).render(chart=chart, own=own, width=_WIDTH, **values)
    return text


def _bars(chart: BarChart) -> dict[str, Any]:
    labels = [*(bar.label for bar in chart.bars), chart.total.label]
    left = 12 + _LETTER * max(len(_cut(label)) for label in labels)
    scale = (_WIDTH - left - 64) / chart.most
    rows, start = [], 0.0
    for at, bar in enumerate(chart.bars):
        rows.append(_bar_row(chart, at, bar.label, start, bar.value, left, scale, "b" if at % 2 == 0 else "s"))
        start += bar.value
    last = len(chart.bars)
    kind = "over" if chart.over else "ok"
    rows.append(_bar_row(chart, last, chart.total.label, 0.0, chart.total.value, left, scale, kind))
    bottom = _TOP + _ROW * len(rows)
    limit = None
    if chart.limit:
        x = left + chart.limit.value * scale
        label = f"{chart.limit.label} {shown(chart.limit.value, chart.marks)} {chart.unit}"
        limit = {"x": _px(x), "label": label, "anchor": "end" if x > _WIDTH / 2 else "start"}
    marks = [{"x": _px(left + v * scale), "label": number(v, chart.marks)} for v in ticks(chart.most, 6)]
    return {"rows": rows, "limit": limit, "ticks": marks, "top": _TOP, "bottom": bottom, "height": bottom + 44}


def _bar_row(
    chart: BarChart, at: int, label: str, start: float, value: float, left: float, scale: float, kind: str
) -> dict[str, str]:
    return {
        "label": _cut(label),
        "whole": label,
        "value": shown(value, chart.marks),
        "x": _px(left + start * scale),
        "y": _px(_TOP + at * _ROW + 4),
        "middle": _px(_TOP + at * _ROW + _ROW / 2 + 5),
        "width": _px(max(1.0, value * scale)),
        "end": _px(left + (start + value) * scale + 6),
        "left": _px(left - 8),
        "kind": kind,
    }


def _lines(chart: LineChart) -> dict[str, Any]:
    marks = ticks(chart.y_most * 1.05, 5)
    left = 22 + _LETTER * max(len(number(value, chart.marks)) for value in marks)
    right, bottom = _WIDTH - 24.0, float(_TOP + _PLOT_HEIGHT)

    def place(point: Point) -> tuple[float, float]:
        x, y = point
        return left + x_share(chart, x) * (right - left), bottom - y / (chart.y_most * 1.08) * _PLOT_HEIGHT

    def path(points: Sequence[Point]) -> str:
        return " ".join(f"{_px(x)},{_px(y)}" for x, y in map(place, points))

    legend = [("band", chart.band.label)] if chart.band else []
    legend += [(f"l{at % 3}", line.label) for at, line in enumerate(chart.lines)]
    legend += [("target", f"{chart.target.label} {number(chart.target.value, chart.marks)}")] if chart.target else []
    legend += [("mark", chart.mark.label)] if chart.mark else []
    first_x = chart.x_range[0]
    return {
        "left": _px(left),
        "right": _px(right),
        "top": _TOP,
        "bottom": _px(bottom),
        "centre": _px((left + right) / 2),
        "x_ticks": [{"x": _px(place((v, 0.0))[0]), "label": number(v, chart.marks)} for v in x_ticks(chart, 8)],
        "y_ticks": [{"y": _px(place((first_x, v))[1]), "label": number(v, chart.marks)} for v in marks],
        "band": path([*chart.band.low, *reversed(chart.band.high)]) if chart.band else "",
        "lines": [{"kind": f"l{at % 3}", "path": path(line.points)} for at, line in enumerate(chart.lines)],
        "target": _px(place((first_x, chart.target.value))[1]) if chart.target else "",
        "mark": [_px(value) for value in place(chart.mark.at)] if chart.mark else [],
        "legend": [
            {"kind": kind, "label": label, "x": 16 + 312 * (at % 2), "y": _px(bottom + 66 + 22 * (at // 2))}
            for at, (kind, label) in enumerate(legend)
        ],
        "height": _px(bottom + 66 + 22 * ((len(legend) + 1) // 2)),
    }


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
