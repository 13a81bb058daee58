"""The catalogue as placements in plain values: what fits, how fast it is, what it costs, whether it meets the ask.

Need is computed once a device count on a reference card; speed by the laws for every device that holds it; prices by
index. Only what `ranking.pick` chooses is judged exactly afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from rules.advice.budget import budget_of
from rules.advice.demand import Demand
from rules.advice.judge import Judged, judge
from rules.advice.paces import Pace, Paces
from rules.advice.ranking import Ranked, Where
from rules.advice.team_rules import broken
from rules.advice.types import Excluded
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.cost.currency import decimal_of
from rules.cost.rentals import RentalWants, rental_quotes
from rules.cost.types import Cost, RentalQuote
from rules.cost.unit_prices import effective_hourly, weeks_per_month
from rules.policy import Policy
from rules.records import dataclass
from rules.units import HOURS_PER_WEEK
from rules.workload import InferenceWorkload, TrainingWorkload, Workload


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device and how many of it hold one copy of the work."""

    device: Accelerator
    count: int
    tier: str


@dataclass(slots=True)
class Placement:
    """A candidate with its pace and money; `ranked.key` is its place in the list. Judged exactly at most once."""

    ranked: Ranked
    device: Accelerator
    count: int
    replicas: int
    cost: Cost
    _judged: Judged | None = None

    def judged(self, workload: Workload, model: ModelSpec, policy: Policy) -> Judged:
        """The exact verdict on one replica."""
        if self._judged is None:
            shared = _shared(workload, self.replicas)
            self._judged = judge(shared, model, self.device, self.count, policy)
        return self._judged

    def same_hardware(self, other: Placement) -> bool:
        """True where only the way to pay differs."""
        return (self.device.name, self.count, self.replicas) == (other.device.name, other.count, other.replicas)


def _shared(workload: Workload, replicas: int) -> Workload:
    """The workload of one of `replicas`: its part of the sequences in flight."""
    if replicas == 1 or not isinstance(workload, InferenceWorkload) or workload.concurrency is None:
        return workload
    at_once = workload.concurrency
    return replace(workload, concurrency=replace(at_once, value=math.ceil(at_once.value / replicas)))


def priced(
    workload: Workload,
    model: ModelSpec,
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand | None,
    candidates: Iterable[Candidate],
) -> tuple[list[Placement], tuple[Excluded, ...]]:
    """Every way to rent or to buy the candidates, within the budget and the team's constraints."""
    paces = Paces(workload, model, demand, policy)
    limits = workload.constraints
    wants = rental_wants(workload)
    ceiling = budget_of(limits.budget, policy)
    hours = decimal_of(hours_per_week(workload, policy)) * weeks_per_month(policy.rental)
    found: list[Placement] = []
    kept_out: list[Excluded] = []

    def consider(each: Candidate, pace: Pace, where: Where, cost: Cost, usd_per_hour: Decimal | None) -> None:
        devices = each.count * pace.replicas
        price = cost.street_price_usd or cost.list_price_usd
        money = price if where == "on_premises" else None
        if not ceiling.allows(usd_per_hour=usd_per_hour, once=money, hours_per_month=hours):
            return
        facts = _facts(each.device, each.tier, devices, where, cost, money, policy)
        broke = broken(facts, policy.constraints)
        kept_out.extend(
            Excluded(
                hardware=each.device.name,
                count=devices,
                constraint=b.constraint.id,
                reason=b.constraint.reason,
                certain=b.certain,
            )
            for b in broke
        )
        if any(b.certain for b in broke):
            return
        work = float(usd_per_hour) / (pace.rate * pace.replicas * 3600) if usd_per_hour and pace.rate else None
        by_hour = demand is not None and demand.told
        ranked = Ranked(
            key=len(found),
            device=each.device.name,
            tier=each.tier,
            devices=devices,
            where=where,
            meets=pace.meets,
            rate=pace.rate * pace.replicas if pace.rate else None,
            usd_per_hour=float(usd_per_hour) if usd_per_hour is not None else None,
            work_usd=None if by_hour else work,
            price_usd=float(money) if money is not None else None,
            size_gb=each.device.memory_gb_marketed * devices,
        )
        found.append(Placement(ranked, each.device, each.count, pace.replicas, cost))

    for each in candidates:
        pace = paces.of(each.device, each.count)
        if limits.devices and pace.replicas > 1:
            pace = replace(pace, replicas=1, meets=False)
        devices = each.count * pace.replicas
        quote = next(iter(rental_quotes(catalogue, each.device.name, devices, wants, policy=policy)), None)
        cost = money_of(each.device, devices, quote)
        if limits.where != "on_premises" and quote is not None:
            consider(
                each, pace, "cloud", replace(cost, purchase=quote.purchase), effective_hourly(quote, policy.rental)
            )
        if limits.where != "cloud" and not limits.providers and limits.purchase is None and limits.location is None:
            consider(each, pace, "on_premises", cost, None)
    return found, _worth_telling(kept_out)


def _worth_telling(kept_out: list[Excluded]) -> tuple[Excluded, ...]:
    seen: dict[tuple[str, int, str], Excluded] = {}
    for each in kept_out:
        seen.setdefault((each.hardware, each.count, each.constraint), each)
    return tuple(seen.values())


def money_of(device: Accelerator, devices: int, quote: RentalQuote | None) -> Cost:
    """Prices of `devices` cards: to buy as listed and on the street, and to rent by the quote."""
    return Cost(
        purchase="owned",
        usd_per_hour=quote.usd_per_hour if quote else None,
        list_price_usd=_times(device.list_price_usd, devices),
        street_price_usd=_times(device.street_price_usd, devices),
        price_date=quote.price_date if quote else None,
        quote=quote,
    )


def _times(price: float | None, devices: int) -> Decimal | None:
    return decimal_of(price) * devices if price is not None else None


def rental_wants(workload: Workload) -> RentalWants:
    """What the workload's constraints ask of an offer."""
    limits = workload.constraints
    return RentalWants(location=limits.location, providers=limits.providers, purchase=limits.purchase)


def hours_per_week(workload: Workload, policy: Policy) -> float:
    """Hours a week that the machine runs: as stated, else a service's whole week or training's working hours."""
    stated = workload.traffic.hours_per_week
    if stated:
        return min(stated, HOURS_PER_WEEK)
    training = isinstance(workload, TrainingWorkload)
    return policy.traffic.training_hours_per_week if training else policy.traffic.serving_hours_per_week


def _facts(
    device: Accelerator, tier: str, devices: int, where: Where, cost: Cost, price: Decimal | None, policy: Policy
) -> dict[str, str | float | None]:
    """What a team's expressions may look at: what is bought costs 0 an hour, what is rented costs 0 to buy."""
    rented = where == "cloud"
    quote = cost.quote if rented else None
    hourly = float(quote.usd_per_hour) if quote else None if rented else 0.0
    return {
        "device": device.name,
        "vendor": device.vendor,
        "tier": tier,
        "kind": "gpu",
        "where": where,
        "provider": quote.provider if quote else None,
        "region": quote.region if quote else None,
        "purchase": quote.purchase if quote else None,
        "form_factor": device.form_factor,
        "memory_type": device.memory_type,
        "devices": float(devices),
        "memory_gib": device.memory_gib,
        "watts": device.tdp_w * devices if device.tdp_w else None,
        "release_year": float(device.release_year) if device.release_year else None,
        "usd_per_hour": hourly,
        "usd_per_month": hourly * policy.rental.hours_per_month if hourly is not None else None,
        "price_usd": float(price) if price is not None else 0.0 if rented else None,
    }
