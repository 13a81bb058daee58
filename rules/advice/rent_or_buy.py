"""Rent or buy for the same work (T8): the cheapest fitting offer against the card worth owning, at the hours told.

A faster card needs fewer hours, so hours are those of the rented machine and the owned one's follow from both speeds.
Where a speed is not known, the comparison is of the same card.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from rules.advice.headlines import machine_of
from rules.advice.market import hours_per_week
from rules.advice.types import Option, RentOrBuy
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.cost.break_even import break_even
from rules.cost.errors import CostError
from rules.cost.ownership import OwnershipWants, ownership_cost, place_of, usd_per_kwh
from rules.cost.types import BreakEven, OwnershipCost, RentalQuote
from rules.cost.unit_prices import effective_hourly
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.speed.types import InferenceSpeed, TrainingSpeed
from rules.units import HOURS_PER_WEEK
from rules.workload import TrainingWorkload, Workload

_MONTHS_A_YEAR = 12


def rate_of(option: Option) -> float | None:
    """Work a second of all devices of an option; None where no law gives it."""
    found = option.speed
    if isinstance(found, TrainingSpeed):
        return found.tokens_per_s_per_device.expected * found.devices
    if isinstance(found, InferenceSpeed):
        figure = found.total_tok_s or found.samples_s or found.realtime_factor
        return figure.expected * option.replicas if figure is not None else None
    return None


def rent_or_buy(
    workload: Workload, options: Sequence[Option], catalogue: Catalogue, policy: Policy, *, stated: bool
) -> RentOrBuy | None:
    """The comparison among `options`; None where nothing can be rented or nothing bought.

    With `stated` hardware both sides are that hardware where it can be had both ways; else the cheapest of each.
    """
    rent = _to_rent(options, stated)
    own = _to_buy(options, stated, rent, hours_per_week(workload, policy)) if rent is not None else None
    if own is None or rent is None:
        return None
    quote = rent.cost.quote if rent.cost else None
    if quote is None:
        return None
    try:
        device = catalogue.find_accelerator(own.hardware)
        owned = ownership_cost(
            device, own.devices, _wants(workload, device, own, rent, policy), catalogue.ownership, policy
        )
        hours = hours_per_week(workload, policy)
        ratio = _ratio(own, rent)
        found = break_even(owned, effective_hourly(quote, policy.rental), hours, ratio, policy)
    except CostError:
        return None
    return RentOrBuy(
        verdict=_verdict(found, quote, owned, own, rent, hours, ratio),
        rent=quote,
        own=owned,
        break_even=found,
        rented_hours_per_week=hours,
        owned_hours_per_week=hours / ratio,
        hours_origin=_origin(workload),
        rented_rate=rate_of(rent),
        owned_rate=rate_of(own),
        notes=(*found.notes, *owned.notes, *quote.notes),
    )


def _origin(workload: Workload) -> Literal["stated", "assumed"]:
    return "stated" if workload.traffic.hours_per_week else "assumed"


def _to_buy(options: Sequence[Option], stated: bool, rent: Option, hours: float) -> Option | None:
    """The cheapest to buy that does the work of `hours` rented hours in a week; any that fits where none does."""
    known = [o for o in options if o.kind == "gpu" and o.cost and (o.cost.street_price_usd or o.cost.list_price_usd)]
    fitting = [o for o in known if o.outcome in ("fits", "tight")]
    if stated and options and options[0] in fitting:
        return options[0]
    cheapest = next((o for o in fitting if o.rule in ("option_cheapest_to_buy", "")), next(iter(fitting), None))
    if cheapest is None or hours / _ratio(cheapest, rent) <= HOURS_PER_WEEK:
        return cheapest
    enough = [_enough_of(option, hours / _ratio(option, rent)) for option in fitting]
    return min((o for o in enough if hours / _ratio(o, rent) <= HOURS_PER_WEEK), key=_price, default=cheapest)


def _enough_of(option: Option, hours: float) -> Option:
    """As many replicas of a server as do the work of `hours` in a week; a training run stays as it is."""
    copies = math.ceil(hours / HOURS_PER_WEEK)
    if copies <= 1 or not isinstance(option.speed, InferenceSpeed) or option.cost is None:
        return option
    cost = replace(
        option.cost,
        street_price_usd=option.cost.street_price_usd and option.cost.street_price_usd * copies,
        list_price_usd=option.cost.list_price_usd and option.cost.list_price_usd * copies,
    )
    return replace(option, replicas=option.replicas * copies, cost=cost)


def _price(option: Option) -> Decimal:
    cost = option.cost
    return (cost.street_price_usd or cost.list_price_usd or Decimal(0)) if cost is not None else Decimal(0)


def _to_rent(options: Sequence[Option], stated: bool) -> Option | None:
    known = [o for o in options if o.kind == "gpu" and o.cost and o.cost.quote and o.outcome in ("fits", "tight")]
    if stated and options and options[0] in known:
        return options[0]
    return next((o for o in known if o.rule == "option_cheapest_to_rent"), next(iter(known), None))


def _ratio(own: Option, rent: Option) -> float:
    mine, theirs = rate_of(own), rate_of(rent)
    return mine / theirs if mine and theirs else 1.0


def _wants(workload: Workload, device: Accelerator, own: Option, rent: Option, policy: Policy) -> OwnershipWants:
    hours = hours_per_week(workload, policy) / _ratio(own, rent)
    months = workload.traffic.months
    return OwnershipWants(
        hours_per_week=min(HOURS_PER_WEEK, hours),
        months=max(1, round(months)) if months else None,
        place=place_of(device),
        training=isinstance(workload, TrainingWorkload),
        usd_per_kwh=usd_per_kwh(workload.constraints.kwh_price, policy),
    )


def _verdict(
    found: BreakEven,
    quote: RentalQuote,
    owned: OwnershipCost,
    own: Option,
    rent: Option,
    hours: float,
    ratio: float,
) -> Note:
    params: dict[str, Param] = {
        "hours": hours,
        "rented": machine_of(rent),
        "provider": quote.provider,
        "usd_per_hour": float(quote.usd_per_hour),
        "rent_month": float(found.rent_usd_per_month),
        "owned": machine_of(own),
        "price": float(owned.purchase_price.expected),
        "own_hours": hours / ratio,
        "running": float(owned.per_month.expected),
        "residual": float(owned.residual_value.expected),
        "years": owned.months / _MONTHS_A_YEAR,
        "own_month": float(found.own_usd_per_month),
    }
    if hours / ratio > HOURS_PER_WEEK:
        return Note("verdict_rent_too_slow", params, "T8")
    if found.hours_per_week is not None:
        params["break_even_hours"] = float(found.hours_per_week)
    if found.cheaper == "own" and found.months is not None:
        return Note("verdict_buy", {**params, "months": float(found.months)}, "T8")
    months = found.months_at_any_length
    if months is not None and found.hours_per_week is not None:
        return Note("verdict_rent_pays_late", {**params, "months": float(months)}, "T8")
    if found.hours_per_week is not None:
        return Note("verdict_rent", params, "T8")
    return Note("verdict_rent_never_pays", params, "T8")
