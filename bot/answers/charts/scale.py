"""Axes: round tick values, numbers in the reader's marks, and where a value falls."""

from __future__ import annotations

import math

from bot.answers.charts.spec import LineChart, NumberMarks

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


def ticks(most: float, about: int) -> list[float]:
    """Round values from 0 to at most `most`, about so many."""
    rough = most / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((s * power for s in _STEPS), key=lambda s: abs(most / s - about))
    return [step * i for i in range(int(most / step + 1e-9) + 1)]


def x_ticks(chart: LineChart, about: int) -> list[float]:
    """Tick values of the x axis: powers of two where it doubles, else round values within the range."""
    low, high = chart.x_range
    if chart.x_doubles:
        powers = [2.0**n for n in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]
        return powers[:: max(1, math.ceil(len(powers) / about))] or [low]
    return [value for value in ticks(high, about) if value >= low] if high > 0 else [low]


def x_share(chart: LineChart, x: float) -> float:
    """Where an x lies between the ends of its axis, 0 to 1."""
    low, high = chart.x_range
    if chart.x_doubles:
        low, high, x = math.log2(low), math.log2(high), math.log2(x)
    return (x - low) / (high - low) if high > low else 0.5


def number(value: float, marks: NumberMarks) -> str:
    """A value as an axis or a label shows it: whole from 100 on, one or two digits below."""
    if abs(value) >= 100 or value == round(value):
        return _marked(f"{value:,.0f}", marks)
    return _marked(f"{value:,.1f}" if abs(value) >= 0.95 else f"{value:.2g}", marks)


def shown(value: float, marks: NumberMarks) -> str:
    """A value beside its bar, with one digit after the mark as the answers have it; small ones as "<0.1"."""
    return _marked("<0.1" if 0 < value < 0.05 else f"{value:,.1f}", marks)


def _marked(text: str, marks: NumberMarks) -> str:
    return "".join({".": marks.decimal, ",": marks.group}.get(character, character) for character in text)
