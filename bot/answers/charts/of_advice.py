"""The charts of one advice: its memory plan, its comparison of renting and owning, its throughput under load."""

from __future__ import annotations

from bot.answers.charts.builders import break_even, memory_breakdown, throughput
from bot.answers.charts.spec import BarChart, LineChart, Point
from bot.answers.words import Words
from rules.advice.types import Advice, Capacity
from rules.speed.types import InferenceSpeed


def memory_chart(advice: Advice, words: Words) -> BarChart | None:
    """The parts of the memory plan against the usable memory; None without a plan."""
    plan = advice.plan
    if plan is None or not plan.parts:
        return None
    need = advice.verdict.params.get("need_gib")
    return memory_breakdown(plan, words, need if isinstance(need, float) else None)


def break_even_chart(advice: Advice, words: Words) -> LineChart | None:
    """Money spent by renting and by owning in USD, month by month; None where the two were not compared."""
    found = advice.rent_or_buy.break_even if advice.rent_or_buy else None
    if found is None or len(found.curve) < 2:
        return None
    curve = found.curve
    months = [float(point.month) for point in curve]
    rent, own = [float(point.rent) for point in curve], [float(point.own) for point in curve]
    return break_even(
        months,
        rent,
        own,
        [float(point.own_low) for point in curve],
        [float(point.own_high) for point in curve],
        _crossing(months, rent, own) if found.cheaper == "own" else None,  # a machine too slow for it never pays
        "USD",
        words,
    )


def _crossing(months: list[float], rent: list[float], own: list[float]) -> Point | None:
    """Where the drawn lines meet for good; None where renting stays below to the end."""
    if own[-1] > rent[-1]:
        return None
    for at in range(len(months) - 1, 0, -1):
        before, after = own[at - 1] - rent[at - 1], own[at] - rent[at]
        if before > 0 >= after:
            share = before / (before - after)
            month = months[at - 1] + share * (months[at] - months[at - 1])
            return month, rent[at - 1] + share * (rent[at] - rent[at - 1])
    return None


def throughput_chart(advice: Advice, words: Words) -> LineChart | None:
    """Tokens a second against sequences at once on all replicas of the first option; None without such a curve.

    The band is the law's range at the asked load; the target is the asked rate of generated tokens.
    """
    carried, found = advice.capacity, advice.speed
    if carried is None or len(carried.curve) < 2 or not advice.options:
        return None
    copies = advice.options[0].replicas
    at = [point.concurrency * copies for point in carried.curve]
    expected = [point.total_tok_s * copies for point in carried.curve]
    low = high = None
    if isinstance(found, InferenceSpeed) and found.total_tok_s is not None and found.total_tok_s.expected:
        total = found.total_tok_s
        low = [value * total.low / total.expected for value in expected]
        high = [value * total.high / total.expected for value in expected]
    most = None
    if carried.sequences in (point.concurrency for point in carried.curve):
        place = next(i for i, point in enumerate(carried.curve) if point.concurrency == carried.sequences)
        most = at[place], expected[place]
    return throughput(at, expected, low, high, _asked_tokens_s(advice, carried, copies), words, most)


def _asked_tokens_s(advice: Advice, carried: Capacity, copies: int) -> float | None:
    """The generated tokens a second at the peak that were asked for, where traffic was told as a rate."""
    traffic = advice.workload.traffic
    rates = (traffic.requests_per_s, traffic.requests_per_month, traffic.tokens_per_day, traffic.peak_requests_per_s)
    if carried.share is None or traffic.concurrency is not None or not any(rates):
        return None
    return carried.share * carried.answer_tok_s * copies
