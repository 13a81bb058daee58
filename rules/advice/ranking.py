"""Which of the placements that fit are worth showing: one for each reason that a person could choose it.

Works on plain values, so that a catalogue of devices, counts and offers is ranked in milliseconds; only what is picked
becomes an `Option`. A placement is dominated where another costs no more, does as much and meets the target as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rules.policy import RankingPolicy
from rules.records import dataclass

Where = Literal["own", "cloud", "on_premises"]
Goal = Literal["balanced", "cheapest", "fastest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One placement in plain values; None where a figure is not known.

    `rate` is work a second of all devices (tokens, samples, images), `work_usd` what a unit of work costs where it is
    rented, `price_usd` what all devices cost to buy. `key` is the caller's own handle.
    """

    key: int
    device: str
    tier: str
    devices: int
    where: Where
    meets: bool = True
    rate: float | None = None
    usd_per_hour: float | None = None
    work_usd: float | None = None
    price_usd: float | None = None
    size_gb: float = 0.0

    @property
    def money(self) -> float | None:
        """What decides between two placements of one kind: money for equal work if rented, the price if bought."""
        if self.where == "cloud":
            return self.work_usd if self.work_usd is not None else self.usd_per_hour
        return self.price_usd


@dataclass(frozen=True, slots=True)
class Picked:
    """A placement to show and the rule that chose it."""

    ranked: Ranked
    rule: str


def undominated(found: Iterable[Ranked], policy: RankingPolicy) -> tuple[Ranked, ...]:
    """Those that no other of the same kind (rented, bought, owned) beats or equals in money, rate and target.

    Money counts with what more devices burden it by.
    """
    every = list(found)
    kept: list[Ranked] = [each for each in every if each.where == "own"]
    for where in ("cloud", "on_premises"):
        same = [each for each in every if each.where == where]
        same.sort(key=lambda e: (_known(e.money) * _burden(e, policy), not e.meets, -_pace(e), e.devices, e.size_gb))
        best, best_meeting = -1.0, -1.0
        for each in same:
            pace = _pace(each)
            if pace > (best_meeting if each.meets else best):
                kept.append(each)
            best = max(best, pace)
            if each.meets:
                best_meeting = max(best_meeting, pace)
    return tuple(kept)


def _pace(each: Ranked) -> float:
    """Work a second, or the memory where no law gives a rate."""
    return each.rate if each.rate is not None else each.size_gb


def pick(
    found: Sequence[Ranked], goal: Goal, most: int, policy: RankingPolicy, tiers: Sequence[str] = ()
) -> tuple[Picked, ...]:
    """At most `most` choices: own hosts, the cheapest to buy and to rent, the best value, the fastest.

    The goal that was asked for comes first after the team's own hosts; `tiers` that are still missing fill what is
    left (T5). Placements that meet the target go before those that do not.
    """
    meeting = [each for each in found if each.meets] or list(found)
    picked: list[Picked] = []
    seen: set[tuple[str, int]] = set()

    def add(each: Ranked | None, rule: str) -> None:
        if each is None or len(picked) >= most:
            return
        at = (each.device, each.devices)
        if at not in seen:
            seen.add(at)
            picked.append(Picked(each, rule))

    for own in (e for e in meeting if e.where == "own"):
        add(own, "option_owned")
    bought = undominated((e for e in meeting if e.where == "on_premises" and e.price_usd is not None), policy)
    rented = undominated((e for e in meeting if e.where == "cloud"), policy)
    cheapest = (_least(bought, lambda e: e.price_usd, policy), "option_cheapest_to_buy")
    rent = (_least(rented, lambda e: e.money, policy), "option_cheapest_to_rent")
    if goal == "fastest":
        add(_fastest(bought), "option_fastest_to_buy")
        add(_fastest(rented), "option_fastest_to_rent")
    add(*cheapest)
    add(*rent)
    for tier in tiers:
        if all(p.ranked.tier != tier for p in picked):
            of_tier = [e for e in meeting if e.tier == tier and e.where != "own"]
            fewest = min((e.devices for e in of_tier), default=0)
            simple = [e for e in of_tier if e.devices == fewest]
            best = _most_for_the_money(simple, policy) or _least(simple, lambda e: e.price_usd, policy)
            add(best or _least(simple, lambda e: e.usd_per_hour, policy), "option_of_tier")
    if goal != "cheapest":
        add(_best_value(bought, policy), "option_best_value")
        add(_fastest(_affordable(rented, rent[0], policy)), "option_fastest_to_rent")
    return tuple(picked)


def _affordable(rented: Sequence[Ranked], cheapest: Ranked | None, policy: RankingPolicy) -> list[Ranked]:
    """Those that cost no more than a few times as much an hour as the cheapest."""
    if cheapest is None or cheapest.usd_per_hour is None:
        return []
    ceiling = policy.most_times_the_cheapest * cheapest.usd_per_hour
    return [each for each in rented if each.usd_per_hour is not None and each.usd_per_hour <= ceiling]


def _known(value: float | None) -> float:
    return value if value is not None else float("inf")


def _least(found: Sequence[Ranked], of: Callable[[Ranked], float | None], policy: RankingPolicy) -> Ranked | None:
    """The one of least money, where more devices count as dearer than they are."""
    known = [each for each in found if of(each) is not None]
    return min(known, key=lambda e: (_known(of(e)) * _burden(e, policy), -(e.rate or 0.0), e.devices), default=None)


def _burden(each: Ranked, policy: RankingPolicy) -> float:
    return 1.0 + policy.fewer_devices_worth * math.log2(each.devices)


def _most_for_the_money(found: Sequence[Ranked], policy: RankingPolicy) -> Ranked | None:
    known = [e for e in found if e.rate and e.price_usd]
    return max(known, key=lambda e: (e.rate or 0.0) / (e.price_usd or 1.0) / _burden(e, policy), default=None)


def _best_value(found: Sequence[Ranked], policy: RankingPolicy) -> Ranked | None:
    """Most work a second for the money on no more devices than the cheapest, if that is a real gain over it."""
    cheapest = _least(found, lambda e: e.price_usd, policy)
    if cheapest is None or not cheapest.rate:
        return None
    enough = policy.real_gain_ratio * cheapest.rate
    faster = [e for e in found if e.devices <= cheapest.devices and e.rate and e.rate >= enough]
    return _most_for_the_money(faster, policy)


def _fastest(found: Sequence[Ranked]) -> Ranked | None:
    known = [e for e in found if e.rate]
    return max(known, key=lambda e: (e.rate or 0.0, -_known(e.money)), default=None)
