"""What can be rented: the cheapest offers of whole instances for an accelerator and a count, or for a CPU machine.

Offers are sorted once a catalogue; what was asked once is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from functools import cached_property
from math import ceil
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError
from rules.catalog.offers import Offer
from rules.cost.currency import decimal_of
from rules.cost.regions import satisfies
from rules.cost.types import Purchase, RentalQuote
from rules.memory.footprint import Note
from rules.policy import CurrencyPolicy, Policy, RentalPolicy
from rules.records import dataclass

PurchaseWish = Literal["on_demand", "spot", "reserved", "serverless"]
_PURCHASES: dict[PurchaseWish | None, tuple[Purchase, ...]] = {
    None: ("on_demand",),
    "on_demand": ("on_demand",),
    "spot": ("spot",),
    "reserved": ("reserved_1y", "reserved_3y"),
    "serverless": ("serverless",),
}
_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalWants:
    """What a rented machine must satisfy. `providers` empty = all; `one_machine`: all devices in one instance.

    Marketplaces, whose lowest price is rarely to be had, count only where `providers` names them. `purchase` None = on
    demand. A CPU machine has at least `vcpus` and `ram_gib` and all `cpu_flags`.
    """

    location: str | None = None
    providers: tuple[str, ...] = ()
    purchase: PurchaseWish | None = None
    one_machine: bool = False
    vcpus: float = 0.0
    ram_gib: float = 0.0
    cpu_flags: tuple[str, ...] = ()
    most: int = 5


@dataclass(frozen=True, slots=True)
class _Rate:
    """One way to pay for one instance type; `each` is USD an hour and whole instance."""

    offer: Offer
    purchase: Purchase
    each: Decimal
    dated: date | None
    devices: int
    notes: tuple[Note, ...]


class _RentalIndex:
    """Rates by accelerator; `device_name` gives the catalogue's name of what an offer calls its device."""

    def __init__(self, offers: Iterable[Offer], device_name: Callable[[str], str], policy: Policy) -> None:
        self._offers, self._device_name, self._currency = tuple(offers), device_name, policy.currency
        self._marketplaces = frozenset(policy.rental.marketplaces)
        self._asked: dict[tuple[str, int, RentalWants], tuple[RentalQuote, ...]] = {}

    @cached_property
    def _by_device(self) -> dict[str, list[_Rate]]:
        found: dict[str, list[_Rate]] = {}
        names: dict[str, str] = {}
        for offer in self._offers:
            whole = offer.n_gpus >= 1 and offer.n_gpus == int(offer.n_gpus)
            if offer.gpu and not whole:
                continue  # a slice of a device is not a device
            name = names.setdefault(offer.gpu, self._device_name(offer.gpu) if offer.gpu else "")
            found.setdefault(name, []).extend(_rates(offer, self._currency))
        return found

    def quotes(self, accelerator: str, count: int, wants: RentalWants) -> tuple[RentalQuote, ...]:
        """The cheapest quotes for all devices, cheapest first."""
        key = accelerator, count, wants
        if (known := self._asked.get(key)) is not None:
            return known
        purchases = _PURCHASES[wants.purchase]
        providers = {name.lower() for name in wants.providers}
        chosen = []
        for rate in self._by_device.get(accelerator, ()):
            instances = ceil(count / rate.devices) if accelerator else count
            offer = rate.offer
            if (
                rate.purchase in purchases
                and (offer.provider.lower() in providers if providers else offer.provider not in self._marketplaces)
                and not (wants.one_machine and instances > 1)
                and satisfies(offer.region, wants.location)
                and _large_enough(offer, wants)
            ):
                chosen.append((rate.each * instances, offer.provider, offer.instance, instances, rate))
        chosen.sort(key=lambda item: item[:4])
        answer = tuple(
            _quote(accelerator, total, instances, rate) for total, _, _, instances, rate in chosen[: wants.most]
        )
        if len(self._asked) >= _REMEMBERED:
            self._asked.clear()
        self._asked[key] = answer
        return answer


_Basis: TypeAlias = tuple[CurrencyPolicy, RentalPolicy]
_indexes: WeakKeyDictionary[Catalogue, dict[_Basis, _RentalIndex]] = WeakKeyDictionary()
_NO_WANTS = RentalWants()


def rental_quotes(
    catalogue: Catalogue, accelerator: str, count: int, wants: RentalWants = _NO_WANTS, *, policy: Policy
) -> tuple[RentalQuote, ...]:
    """The cheapest offers, at most `wants.most`, for `count` devices of this catalogue name; empty where none is known.

    `accelerator` "" asks for `count` CPU machines. A reserved price that is not known gives no quote. Prices in EUR are
    converted at the policy's rate and say so.
    """
    if count < 1:
        return ()
    of_catalogue = _indexes.setdefault(catalogue, {})
    basis = policy.currency, policy.rental
    index = of_catalogue.get(basis)
    if index is None:
        index = of_catalogue[basis] = _RentalIndex(catalogue.offers, _device_names(catalogue), policy)
    return index.quotes(accelerator, count, wants)


def cpu_quotes(catalogue: Catalogue, wants: RentalWants, *, policy: Policy) -> tuple[RentalQuote, ...]:
    """The cheapest CPU machines that have the cores, the memory and the instruction sets wanted."""
    return rental_quotes(catalogue, "", 1, wants, policy=policy)


def _device_names(catalogue: Catalogue) -> Callable[[str], str]:
    known = {row["name"] for row in catalogue.accelerator_rows}

    def name(text: str) -> str:
        if text in known:
            return text
        try:
            return catalogue.find_accelerator(text).name
        except CatalogError:
            return text

    return name


def _rates(offer: Offer, currency: CurrencyPolicy) -> list[_Rate]:
    rates: list[_Rate] = []
    devices = int(offer.n_gpus) or 1

    def rate(purchase: Purchase, each: Decimal | None, dated: date | None, *notes: Note) -> None:
        if each is not None:
            rates.append(_Rate(offer, purchase, each, dated, devices, notes))

    listed: Purchase = "serverless" if "serverless" in offer.billing else "on_demand"
    on_demand = offer.on_demand_usd_per_hour
    if on_demand is None and offer.on_demand_eur_per_hour is not None and currency.usd_per_eur:
        converted = offer.on_demand_eur_per_hour * decimal_of(currency.usd_per_eur)
        said = Note("cost_converted_from_eur", {"rate": currency.usd_per_eur, "date": currency.as_of})
        rate(listed, converted, offer.price_date, said)
    else:
        rate(listed, on_demand, offer.price_date)
    rate("spot", offer.spot_usd_per_hour, offer.spot_date or offer.price_date)
    rate("reserved_1y", offer.reserved_1y_usd_per_hour, offer.price_date)
    rate("reserved_3y", offer.reserved_3y_usd_per_hour, offer.price_date)
    return rates


def _large_enough(offer: Offer, wants: RentalWants) -> bool:
    return (
        (not wants.vcpus or (offer.vcpus or 0) >= wants.vcpus)
        and (not wants.ram_gib or (offer.ram_gib or 0) >= wants.ram_gib)
        and all(flag in offer.cpu_flags for flag in wants.cpu_flags)
    )


def _quote(accelerator: str, total: Decimal, instances: int, rate: _Rate) -> RentalQuote:
    notes = rate.notes
    if accelerator and instances > 1:
        notes = (*notes, Note("cost_several_instances", {"instances": instances, "devices": rate.devices}))
    return RentalQuote(
        provider=rate.offer.provider,
        instance=rate.offer.instance,
        region=rate.offer.region,
        accelerator=accelerator,
        devices=rate.devices * instances if accelerator else 0,
        instances=instances,
        purchase=rate.purchase,
        usd_per_hour=total,
        price_date=rate.dated,
        source=rate.offer.source,
        billing=rate.offer.billing,
        notes=notes,
    )
