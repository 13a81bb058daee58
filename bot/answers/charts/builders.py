"""Specifications from what the rules say, in the words of one language."""

from __future__ import annotations

from collections.abc import Sequence

from bot.answers.charts.spec import Band, Bar, BarChart, Level, LineChart, Mark, NumberMarks, Point, Series
from bot.answers.words import Words
from rules.advice.types import MemoryPlan

_SMALLEST_SHARE = 0.01  # of the total; smaller parts are one bar together


def memory_breakdown(plan: MemoryPlan, words: Words, need_gib: float | None = None) -> BarChart:
    """The parts at the peak on one device against its usable memory, in GiB.

    The total is the need that the verdict names, or what nvidia-smi shows where none is given or a pool is filled
    beyond it; what it has beyond the parts (allocator cache, context) is a bar of its own.
    """
    say = words.say
    in_parts = sum(part.gib for part in plan.parts)
    total = need_gib if need_gib and need_gib >= in_parts else max(plan.shown_by_nvidia_smi.expected_gib, in_parts)
    large = [part for part in plan.parts if part.gib >= _SMALLEST_SHARE * total]
    bars = [Bar(_part_name(part.part, words), part.gib) for part in large]
    small = in_parts - sum(part.gib for part in large)
    if small > 0:
        bars.append(Bar(say("chart_small_parts"), small))
    beyond = total - in_parts
    if beyond >= _SMALLEST_SHARE * total:
        bars.append(Bar(say("chart_beyond_parts"), beyond))
    machine = say("machine", {"count": plan.devices, "device": plan.device or ""}) if plan.device else ""
    params = {"machine": machine, "count": plan.devices, "total_gib": total, "usable_gib": plan.usable_gib or 0.0}
    return BarChart(
        title=say("chart_memory_title", params) if machine else say("chart_memory_title_cpu"),
        description=say("chart_memory_description" if plan.usable_gib else "chart_memory_description_open", params),
        unit="GiB",
        bars=tuple(bars),
        total=Level(say("chart_total"), total),
        limit=Level(say("chart_usable"), plan.usable_gib) if plan.usable_gib else None,
        marks=marks_of(words),
    )


def break_even(
    months: Sequence[float],
    rent: Sequence[float],
    own: Sequence[float],
    own_low: Sequence[float],
    own_high: Sequence[float],
    crossing: Point | None,
    currency: str,
    words: Words,
) -> LineChart:
    """Money spent by the end of each month, renting and owning, with the band that the sensitivities leave for owning.

    `crossing` is the month and the sum at which the two meet; None where they never do.
    """
    say = words.say
    mark = None
    described = say("chart_break_even_never", {"months": months[-1]})
    if crossing is not None:
        described = say("chart_break_even_at", {"months": crossing[0]})
        mark = Mark(described, crossing)
    return LineChart(
        title=say("chart_break_even_title"),
        description=f"{say('chart_break_even_title')}. {described}",
        x_label=say("chart_months"),
        y_label=say("chart_spent", {"currency": currency}),
        lines=(_series(say("chart_rent"), months, rent), _series(say("chart_own"), months, own)),
        band=Band(say("chart_own_range"), _points(months, own_low), _points(months, own_high)),
        mark=mark,
        marks=marks_of(words),
    )


def throughput(
    concurrency: Sequence[float],
    tokens_per_s: Sequence[float],
    low: Sequence[float] | None,
    high: Sequence[float] | None,
    target_tokens_per_s: float | None,
    words: Words,
    most: Point | None = None,
) -> LineChart:
    """Tokens a second of all requests together against how many run at once, with the target that was asked for.

    `most` is the largest number at once within the targets on times, with its tokens a second.
    """
    say = words.say
    params = {"most": max(tokens_per_s), "at": concurrency[max(range(len(tokens_per_s)), key=tokens_per_s.__getitem__)]}
    target = None
    if target_tokens_per_s is not None:
        target = Level(say("chart_target"), target_tokens_per_s)
    return LineChart(
        title=say("chart_throughput_title"),
        description=say("chart_throughput_description", params),
        x_label=say("chart_concurrency"),
        y_label=say("chart_tokens_per_s"),
        lines=(_series(say("chart_expected"), concurrency, tokens_per_s),),
        band=Band(say("chart_range"), _points(concurrency, low), _points(concurrency, high)) if low and high else None,
        target=target,
        mark=Mark(say("chart_most_at_once", {"most": most[0]}), most) if most else None,
        x_doubles=min(concurrency) > 0 and max(concurrency) / min(concurrency) > 8,
        marks=marks_of(words),
    )


def marks_of(words: Words) -> NumberMarks:
    """The marks of a language, read off a number that has both."""
    sample = words.number(12345.6, 1)
    return NumberMarks(decimal=sample[-2], group=sample[2])


def _part_name(part: str, words: Words) -> str:
    label = words(f"part_{part}")
    return part.replace("_", " ") if label == f"part_{part}" else label


def _series(label: str, xs: Sequence[float], ys: Sequence[float]) -> Series:
    return Series(label, _points(xs, ys))


def _points(xs: Sequence[float], ys: Sequence[float]) -> tuple[Point, ...]:
    return tuple((float(x), float(y)) for x, y in zip(xs, ys, strict=True))
