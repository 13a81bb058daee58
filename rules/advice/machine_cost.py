"""What machines cost without a word on the work: rented by the hour, bought, and the electricity of running them."""

from __future__ import annotations

from decimal import Decimal

from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.cost.currency import amount_of, convert, decimal_of
from rules.cost.errors import CostError
from rules.cost.ownership import OwnershipWants, ownership_cost, place_of, usd_per_kwh
from rules.cost.rentals import RentalWants, rental_quotes
from rules.cost.types import Amount
from rules.cost.unit_prices import weeks_per_month
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass
from rules.units import HOURS_PER_WEEK
from rules.workload import Constraints, Money, Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineUse:
    """How the machines are used: `hours` of one rental, or hours a week; a rate that the reader names for renting."""

    hours: float | None = None
    hours_per_week: float | None = None
    rent_per_hour: Money | None = None


def machine_cost(
    device: Accelerator,
    count: int,
    use: MachineUse,
    limits: Constraints,
    traffic: Traffic,
    catalogue: Catalogue,
    policy: Policy,
) -> tuple[Note, ...]:
    """Sentences on renting, buying and running `count` devices; what is not known is said to be so."""
    machine = Note("machine", {"device": device.name, "count": count})
    weekly = use.hours_per_week or traffic.hours_per_week
    told = [*_renting(device, count, machine, use, weekly, limits, catalogue, policy)]
    told.extend(_owning(device, count, machine, weekly, limits, catalogue, policy))
    return tuple(told)


def _renting(
    device: Accelerator,
    count: int,
    machine: Note,
    use: MachineUse,
    weekly: float | None,
    limits: Constraints,
    catalogue: Catalogue,
    policy: Policy,
) -> list[Note]:
    wants = RentalWants(location=limits.location, providers=limits.providers, purchase=limits.purchase)
    quote = next(iter(rental_quotes(catalogue, device.name, count, wants, policy=policy)), None)
    told: list[Note] = []
    hourly: Decimal | None = None
    if use.rent_per_hour is not None and (use.hours or weekly):
        hourly = convert(amount_of(use.rent_per_hour), "USD", policy.currency).value * count
        hours = use.hours or float(decimal_of(weekly or 0.0) * weeks_per_month(policy.rental))
        stated: dict[str, Param] = {
            "machine": machine,
            "per_hour": float(hourly),
            "hours": hours,
            "usd": float(hourly * decimal_of(hours)),
        }
        return [Note("machine_rent_stated", stated, "T8")]
    if quote is None:
        told.append(Note("machine_rent_unknown", {"machine": machine}, "T8"))
    else:
        hourly = quote.usd_per_hour
        params: dict[str, Param] = {
            "machine": machine,
            "per_hour": float(hourly),
            "provider": quote.provider,
            "instance": quote.instance,
            "region": quote.region,
            "date": quote.price_date.isoformat() if quote.price_date else "?",
        }
        told.append(Note("machine_rent", params, "T8"))
    if hourly is not None and use.hours:
        whole: dict[str, Param] = {"hours": use.hours, "usd": float(hourly * decimal_of(use.hours))}
        told.append(Note("machine_rent_for", whole, "T8"))
    elif hourly is not None and weekly:
        month = hourly * decimal_of(weekly) * weeks_per_month(policy.rental)
        told.append(Note("machine_rent_month", {"hours": weekly, "usd": float(month)}, "T8"))
    return told


def _owning(
    device: Accelerator,
    count: int,
    machine: Note,
    weekly: float | None,
    limits: Constraints,
    catalogue: Catalogue,
    policy: Policy,
) -> list[Note]:
    kwh = limits.kwh_price
    try:
        price, place = usd_per_kwh(kwh, policy), place_of(device)
        wants = OwnershipWants(hours_per_week=weekly or HOURS_PER_WEEK, place=place, usd_per_kwh=price)
        owned = ownership_cost(device, count, wants, catalogue.ownership, policy)
    except CostError:
        return [Note("machine_price_unknown", {"machine": machine}, "T8")]
    told = [Note("machine_price", {"usd": float(owned.purchase_price.expected)}, "T8")]
    energy = next((line.amount for line in owned.lines if line.item == "energy"), None)
    if weekly and energy is not None:
        params: dict[str, Param] = {"machine": machine, "hours": weekly}
        if kwh is None or kwh.currency == "USD":
            ends = {"usd": float(energy.expected), "low": float(energy.low), "high": float(energy.high)}
            told.append(Note("machine_energy", {**params, **ends}, "T8"))
        else:
            shown = [
                float(convert(Amount(value), kwh.currency, policy.currency).value)
                for value in (energy.expected, energy.low, energy.high)
            ]
            amounts: dict[str, Param] = {
                "amount": shown[0],
                "low": shown[1],
                "high": shown[2],
                "currency": kwh.currency,
            }
            told.append(Note("machine_energy_in", {**params, **amounts}, "T8"))
    return told
