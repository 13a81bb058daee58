"""The port of a price source, and the form of an offer that all of them give: a row of `offers.csv`, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Protocol, TypeAlias

from rules.catalog.offers import Offer
from rules.records import dataclass

Row: TypeAlias = Mapping[str, str]
Progress: TypeAlias = Callable[[str, int], None]  # what is being read, and how much of it (bytes or offers) so far
Key: TypeAlias = tuple[str, str, str, str, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source said. `scope` are the providers that it speaks for."""

    rows: tuple[Row, ...]
    scope: frozenset[str]


class PriceSource(Protocol):
    """One question to a source of prices. Raises a `PriceError`; gives rows that nobody has checked yet."""

    @property
    def name(self) -> str:
        """What messages call the source."""
        ...

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """Its offers. `known` are those in use: a source of bare prices takes the machine behind a name from them."""
        ...


def key_of(offer: Offer) -> Key:
    """What makes two offers the same one at two dates."""
    return offer.provider, offer.instance, offer.region, offer.gpu, offer.n_gpus


def row_of(offer: Offer) -> dict[str, str]:
    """An offer as a row of `offers.csv`, without the columns that the type does not keep."""
    return {
        "provider": offer.provider,
        "instance": offer.instance,
        "region": offer.region,
        "gpu": offer.gpu,
        "n_gpus": f"{offer.n_gpus:g}",
        "vcpus": _number(offer.vcpus),
        "ram_gib": _number(offer.ram_gib),
        "on_demand_usd_h": _money(offer.on_demand_usd_per_hour),
        "spot_usd_h": _money(offer.spot_usd_per_hour),
        "on_demand_eur_h": _money(offer.on_demand_eur_per_hour),
        "reserved_1y_usd_h": _money(offer.reserved_1y_usd_per_hour),
        "reserved_3y_usd_h": _money(offer.reserved_3y_usd_per_hour),
        "billing": offer.billing,
        "cpu": offer.cpu,
        "cpu_flags": ";".join(offer.cpu_flags),
        "price_date": offer.price_date.isoformat() if offer.price_date else "",
        "spot_date": offer.spot_date.isoformat() if offer.spot_date else "",
        "source": offer.source,
        "notes": offer.notes,
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _money(value: Decimal | None) -> str:
    return "" if value is None else f"{value:f}"
