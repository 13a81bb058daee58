"""`--chart FILE`: the picture of an answer, PNG or SVG by the file's ending.

A question of cost gets rent against own with its band, one of capacity throughput against load, others the memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import BadUsage

if TYPE_CHECKING:
    from bot.answered import Answered
    from bot.answers.charts.spec import Chart


def check(path: Path) -> None:
    """Raises `BadUsage` for an ending that is neither, or where the package that draws PNG is missing."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise BadUsage("usage_chart_ending", path=str(path))
    if path.suffix.lower() == ".png":
        from importlib.util import find_spec

        if find_spec("matplotlib") is None:
            raise BadUsage("chart_needs_matplotlib")


def save(path: Path, answered: Answered) -> None:
    """Writes the picture; an answer with nothing to draw has none, which is said on standard error."""
    chart = _chart(answered)
    if chart is None:
        print(f"gpufit: {answered.words('chart_needs_plan')}", file=sys.stderr)
        return
    if path.suffix.lower() == ".png":
        from bot.answers.charts.png import png_chart

        content = png_chart(chart)
    else:
        from bot.answers.charts.svg import svg_chart

        content = svg_chart(chart).encode()
    try:
        path.write_bytes(content)
    except OSError as exc:
        raise BadUsage("file_unusable", path=str(path), detail=exc.strerror or "") from exc


def _chart(answered: Answered) -> Chart | None:
    """What the intent asks for, where the advice has its figures; else the memory breakdown."""
    from bot.answers.charts.of_advice import break_even_chart, memory_chart, throughput_chart

    advice, intent = answered.advice, answered.parsed.intent
    if advice is None:
        return None
    found = None
    if intent == "cost":
        found = break_even_chart(advice, answered.words)
    elif intent == "capacity":
        found = throughput_chart(advice, answered.words)
    return found or memory_chart(advice, answered.words)
