"""Cloud offers: one `Offer` per row of `data/offers.csv`. Prices are USD an hour before tax for the whole instance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import TypeAlias, TypeVar

from rules.catalog.cells import date_of, price_of
from rules.catalog.errors import CatalogError
from rules.records import dataclass

T = TypeVar("T")
Machine: TypeAlias = tuple[str, str, str, str]  # provider, instance, region, device


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One instance type in one region at one date; None = not offered or not known.

    `gpu` is the `name` of an accelerator ("" for a CPU-only instance) and `n_gpus` may be a fraction (vGPU slice).
    """

    provider: str
    instance: str
    region: str
    gpu: str
    n_gpus: float
    vcpus: float | None = None
    ram_gib: float | None = None
    on_demand_usd_per_hour: Decimal | None = None
    spot_usd_per_hour: Decimal | None = None
    on_demand_eur_per_hour: Decimal | None = None
    reserved_1y_usd_per_hour: Decimal | None = None
    reserved_3y_usd_per_hour: Decimal | None = None
    billing: str = ""
    cpu: str = ""
    cpu_flags: tuple[str, ...] = ()
    price_date: date | None = None
    spot_date: date | None = None
    source: str = ""
    notes: str = ""
    origin: str = "catalogue"

    @classmethod
    def from_row(cls, row: Mapping[str, str], origin: str = "catalogue") -> Offer:
        """Builds one offer from a CSV row; raises `CatalogError` naming the instance and what is wrong."""
        try:
            return cls(
                provider=row["provider"],
                instance=row["instance"],
                region=row["region"],
                gpu=row["gpu"],
                n_gpus=_number(row["n_gpus"]) or 0.0,
                vcpus=_number(row["vcpus"]),
                ram_gib=_number(row["ram_gib"]),
                on_demand_usd_per_hour=price_of(row["on_demand_usd_h"]),
                spot_usd_per_hour=price_of(row["spot_usd_h"]),
                on_demand_eur_per_hour=price_of(row["on_demand_eur_h"]),
                reserved_1y_usd_per_hour=price_of(row["reserved_1y_usd_h"]),
                reserved_3y_usd_per_hour=price_of(row["reserved_3y_usd_h"]),
                billing=row["billing"],
                cpu=row["cpu"],
                cpu_flags=tuple(row["cpu_flags"].replace(";", " ").split()),
                price_date=date_of(row["price_date"]),
                spot_date=date_of(row["spot_date"]),
                source=row["source"],
                notes=row["notes"] or "",
                origin=origin,
            )
        except (KeyError, ValueError, AttributeError, TypeError, InvalidOperation) as exc:
            raise CatalogError("offer_row_invalid", row=row.get("instance") or "?", detail=str(exc)) from exc


def not_replaced(own: Collection[Machine], rows: Sequence[T], machine: Callable[[T], Machine]) -> Iterator[T]:
    """Those of `rows` that no machine of `own` stands for: the same provider, instance and region.

    Where several of `rows` share these three (marketplaces list many devices under one name), the device counts too.
    """
    places = {place[:3] for place in own}
    devices: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        *_, gpu = place = machine(row)
        devices.setdefault(place[:3], set()).add(gpu)
    for row in rows:
        place = machine(row)
        shared = len(devices[place[:3]]) > 1
        if not (place in own if shared else place[:3] in places):
            yield row


def later(fresh: Sequence[Offer], ours: Sequence[Offer]) -> tuple[list[Offer], list[Offer]]:
    """Both lists without the offers that the other has of the same machine and count at a later date.

    On one date the fresh one counts; so does the dated one where the other has no date.
    """
    ours_at = {(machine_of(o), o.n_gpus): _last_date(o) for o in ours}
    kept = [o for o in fresh if _last_date(o) >= ours_at.get((machine_of(o), o.n_gpus), date.min)]
    replaced = {(machine_of(o), o.n_gpus) for o in kept}
    return kept, [o for o in ours if (machine_of(o), o.n_gpus) not in replaced]


def _last_date(offer: Offer) -> date:
    return max(offer.price_date or date.min, offer.spot_date or date.min)


def machine_of(offer: Offer) -> Machine:
    """Provider, instance, region and device of an offer."""
    return offer.provider, offer.instance, offer.region, offer.gpu


def _number(text: str) -> float | None:
    if not text:
        return None
    value = float(text)
    if not 0 <= value < 1e7:
        raise ValueError(f"{text!r} is not a count")
    return value
