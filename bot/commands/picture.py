"""`--chart FILE`: the memory breakdown of an answer as a picture, PNG or SVG by the file's ending."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import BadUsage

if TYPE_CHECKING:
    from bot.answered import Answered


def check(path: Path) -> None:
    """Raises `BadUsage` for an ending that is neither, or where the package that draws PNG is missing."""
    if path.suffix.lower() not in (".png", ".svg"):
        raise BadUsage("usage_chart_ending", path=str(path))
    if path.suffix.lower() == ".png":
        from importlib.util import find_spec

        if find_spec("matplotlib") is None:
            raise BadUsage("chart_needs_matplotlib")


def save(path: Path, answered: Answered) -> None:
    """Writes the picture; an answer without a memory plan has none, which is said on standard error."""
    from bot.answers.charts.builders import memory_breakdown

    plan = answered.advice.plan if answered.advice else None
    if answered.advice is None or plan is None or not plan.parts:
        print(f"gpufit: {answered.words.say('chart_needs_plan')}", file=sys.stderr)
        return
    need = answered.advice.verdict.params.get("need_gib")
    chart = memory_breakdown(plan, answered.words, need if isinstance(need, float) else None)
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
