"""Charts as text: block characters to the width at hand, or ASCII alone."""

from __future__ import annotations

from collections.abc import Sequence

from bot.answers.charts.scale import number, shown, ticks, x_share, x_ticks
from bot.answers.charts.spec import BarChart, Chart, LineChart, Point
from bot.answers.layout import Surface

_ROWS = 12
_PARTS = " ▏▎▍▌▋▊▉"
_LONGEST_LABEL = 28
_PLAIN = str.maketrans("█▒│─┼└░●·…", "#%|-++.@*~")


def text_chart(chart: Chart, surface: Surface) -> str:
    """The chart in lines no longer than the surface is wide, each ended."""
    lines = _bars(chart, surface) if isinstance(chart, BarChart) else _lines(chart, surface)
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return text.translate(_PLAIN) if surface.plain else text


def _bars(chart: BarChart, surface: Surface) -> list[str]:
    """A bar begins where the one above it ends; the total is last; the limit is a line through all of them."""
    rows = [(_cut(bar.label), shown(bar.value, chart.marks), bar.value) for bar in chart.bars]
    total = (_cut(chart.total.label), shown(chart.total.value, chart.marks), chart.total.value)
    name_width = max(len(name) for name, _, _ in (*rows, total))
    value_width = max(len(value) for _, value, _ in (*rows, total))
    room = max(10, surface.width - name_width - value_width - 5)
    scale = (room - 1) / chart.most
    limit = round(chart.limit.value * scale) if chart.limit else None
    lines, start = [chart.title], 0.0
    for name, value, size in rows:
        bar = _bar(start * scale, (start + size) * scale, room, surface.plain)
        lines.append(f"  {name:<{name_width}} {value:>{value_width}} {_with_limit(bar, limit)}")
        start += size
    name, value, size = total
    bar = _bar(0.0, size * scale, room, surface.plain).replace("█", "▒" if chart.over else "█")
    lines.append(f"  {name:<{name_width}} {value:>{value_width}} {_with_limit(bar, limit)}")
    if chart.limit and limit is not None:
        label = f"{chart.limit.label} {shown(chart.limit.value, chart.marks)} {chart.unit}"
        before = name_width + value_width + 4
        lines.append(" " * max(0, min(before + limit - len(label) + 1, surface.width - len(label))) + label)
    return lines


def _bar(start: float, end: float, room: int, plain: bool) -> str:
    """Blocks from `start` to `end` of `room` columns; a part too small for a block still shows."""
    first = min(round(start), room - 1)
    if plain:
        return (" " * first + "█" * max(1, round(end) - first)).ljust(room)[:room]
    eighths = max(1, round((end - first) * 8))
    bar = " " * first + "█" * (eighths // 8) + (_PARTS[eighths % 8] if eighths % 8 else "")
    return bar.ljust(room)[:room]


def _with_limit(bar: str, limit: int | None) -> str:
    if limit is None:
        return bar
    at = min(limit, len(bar) - 1)
    return bar[:at] + "│" + bar[at + 1 :]


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _lines(chart: LineChart, surface: Surface) -> list[str]:
    values = ticks(chart.y_most, 3)
    labels = {value: number(value, chart.marks) for value in values}
    margin = max(len(label) for label in labels.values())
    room = max(20, surface.width - margin - 3)
    grid = [[" "] * room for _ in range(_ROWS)]
    if chart.band:
        low, high = _columns(chart, chart.band.low, room), _columns(chart, chart.band.high, room)
        for x in range(room):
            if low[x] is not None and high[x] is not None:
                for row in range(_row(chart, high[x]), _row(chart, low[x]) + 1):
                    grid[row][x] = "░"
    if chart.target:
        grid[_row(chart, chart.target.value)] = [c if c != " " else "─" for c in grid[_row(chart, chart.target.value)]]
    signs = "█·"
    for at, line in enumerate(chart.lines):
        for x, value in enumerate(_columns(chart, line.points, room)):
            if value is not None:
                grid[_row(chart, value)][x] = signs[at % len(signs)]
    if chart.mark:
        grid[_row(chart, chart.mark.at[1])][round(x_share(chart, chart.mark.at[0]) * (room - 1))] = "●"
    at_row = {_row(chart, value): label for value, label in labels.items()}
    lines = [chart.title, chart.y_label]
    lines += [
        f"{at_row.get(row, ''):>{margin}} {'┼' if row in at_row else '│'}{''.join(grid[row])}" for row in range(_ROWS)
    ]
    lines.append(" " * (margin + 1) + "└" + "─" * room)
    lines.append(" " * (margin + 2) + _axis(chart, room))
    lines.append(f"{chart.x_label:>{surface.width}}" if len(chart.x_label) < surface.width else chart.x_label)
    legend = [f"{signs[at % len(signs)]} {line.label}" for at, line in enumerate(chart.lines)]
    legend += [f"░ {chart.band.label}"] if chart.band else []
    legend += [f"─ {chart.target.label} {number(chart.target.value, chart.marks)}"] if chart.target else []
    legend += [f"● {chart.mark.label}"] if chart.mark else []
    return [*lines, *_packed(legend, surface.width)]


def _packed(pieces: Sequence[str], width: int) -> list[str]:
    """Pieces side by side, in as few lines as the width allows."""
    lines = [""]
    for piece in pieces:
        joined = f"{lines[-1]}   {piece}" if lines[-1] else piece
        if len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(piece)
    return lines


def _row(chart: LineChart, value: float | None) -> int:
    share = max(0.0, (value or 0.0) / chart.y_most)
    return _ROWS - 1 - min(_ROWS - 1, round(share * (_ROWS - 1)))


def _columns(chart: LineChart, points: Sequence[Point], room: int) -> list[float | None]:
    """The value of a line in each column, straight between its points; None outside them."""
    placed = [(x_share(chart, x) * (room - 1), y) for x, y in points]
    found: list[float | None] = [None] * room
    for (x0, y0), (x1, y1) in zip(placed, placed[1:] or placed, strict=False):
        for x in range(max(0, round(x0)), min(room - 1, round(x1)) + 1):
            share = min(1.0, max(0.0, (x - x0) / (x1 - x0))) if x1 > x0 else 0.0
            found[x] = y0 + share * (y1 - y0)
    return found


def _axis(chart: LineChart, room: int) -> str:
    axis = [" "] * room
    free = 0
    for value in x_ticks(chart, max(2, room // 12)):
        label = number(value, chart.marks)
        at = min(max(0, round(x_share(chart, value) * (room - 1)) - len(label) // 2), room - len(label))
        if at >= free:
            axis[at : at + len(label)] = label
            free = at + len(label) + 1
    return "".join(axis)
