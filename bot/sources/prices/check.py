"""Row by row: which offers of an answer may stand beside the catalogue, and why the others may not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from statistics import median

from bot.sources.prices.port import Key, Row, key_of
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError, UnknownName
from rules.catalog.offers import Offer
from rules.memory.footprint import Note, Param
from rules.policy import PricePolicy
from rules.records import dataclass

_MEMORY_TOLERANCE = 0.15  # marketed GB against GiB, rounding, what a driver keeps
_LEAST_USD, _MOST_USD = Decimal("0.00001"), Decimal(100_000)  # an hour of any machine at all
_PRICES = (
    "on_demand_usd_per_hour",
    "spot_usd_per_hour",
    "on_demand_eur_per_hour",
    "reserved_1y_usd_per_hour",
    "reserved_3y_usd_per_hour",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """Accepted offers by key, each with its row, and the refusals: one note a row."""

    accepted: Mapping[Key, tuple[Offer, Row]]
    refused: tuple[Note, ...]


class RowCheck:
    """The checks, against the offers in use on a day."""

    def __init__(self, catalogue: Catalogue, known: Sequence[Offer], policy: PricePolicy, today: date) -> None:
        self._catalogue, self._policy, self._today = catalogue, policy, today
        self._known = {key_of(offer): offer for offer in known}
        self._devices: dict[str, Accelerator] = {}
        by_device: dict[str, list[Decimal]] = defaultdict(list)
        for offer in known:
            if offer.gpu and offer.n_gpus and offer.on_demand_usd_per_hour:
                by_device[offer.gpu].append(offer.on_demand_usd_per_hour / Decimal(str(offer.n_gpus)))
        self._usual = {gpu: median(prices) for gpu, prices in by_device.items()}

    def all(self, rows: Iterable[Row]) -> Checked:
        """Checks every row; of two rows for one offer the later is refused."""
        accepted: dict[Key, tuple[Offer, Row]] = {}
        refused = []
        for row in rows:
            label = " ".join(filter(None, (row.get("provider"), row.get("instance"), row.get("region")))) or "?"
            try:
                offer, kept = self._offer(row)
            except UnknownName as exc:
                refused.append(Note("refresh_row_unknown_device", {"row": label, "device": exc.name}))
                continue
            except CatalogError as exc:
                refused.append(Note("refresh_row_invalid", {"row": label, "detail": exc.params.get("detail", "?")}))
                continue
            wrong = self._wrong(offer, row, label)
            if wrong is None and key_of(offer) in accepted:
                wrong = Note("refresh_row_twice", {"row": label})
            if wrong is None:
                accepted[key_of(offer)] = offer, kept
            else:
                refused.append(wrong)
        return Checked(accepted, tuple(refused))

    def _offer(self, row: Row) -> tuple[Offer, Row]:
        kept = dict(row)
        if kept.get("gpu"):
            kept["gpu"] = self._device(kept["gpu"]).name
        return Offer.from_row(kept, origin="override"), kept

    def _device(self, name: str) -> Accelerator:
        if name not in self._devices:
            self._devices[name] = self._catalogue.find_accelerator(name)
        return self._devices[name]

    def _wrong(self, offer: Offer, row: Row, label: str) -> Note | None:
        if not (offer.provider and offer.instance and offer.region):
            return Note("refresh_row_invalid", {"row": label, "detail": "provider, instance, region"})
        if offer.gpu and not offer.n_gpus:
            return Note("refresh_row_invalid", {"row": label, "detail": "n_gpus"})
        if all(getattr(offer, price) is None for price in _PRICES):
            return Note("refresh_row_no_price", {"row": label})
        return (
            self._wrong_memory(offer, row, label) or self._wrong_date(offer, label) or self._wrong_price(offer, label)
        )

    def _wrong_memory(self, offer: Offer, row: Row, label: str) -> Note | None:
        told = row.get("gpu_memory_gb_each", "")
        if not offer.gpu or not told:
            return None
        device = self._device(offer.gpu)
        try:
            gigabytes = float(told)
        except ValueError:
            return Note("refresh_row_invalid", {"row": label, "detail": f"gpu_memory_gb_each {told!r}"})
        near = (abs(gigabytes / size - 1) for size in (device.memory_gib, device.memory_gb_marketed))
        if min(near) <= _MEMORY_TOLERANCE:
            return None
        has = f"{device.memory_gb_marketed:g}"
        return Note("refresh_row_memory", {"row": label, "device": device.name, "told_gb": told, "has_gb": has})

    def _wrong_date(self, offer: Offer, label: str) -> Note | None:
        dates = [day for day in (offer.price_date, offer.spot_date) if day]
        if not dates:
            return Note("refresh_row_undated", {"row": label})
        if max(dates) > self._today + timedelta(days=1):
            return Note("refresh_row_future", {"row": label, "date": max(dates).isoformat()})
        old = self._known.get(key_of(offer))
        before = [day for day in (old.price_date, old.spot_date) if day] if old else []
        if before and max(dates) < max(before):
            params = {"row": label, "date": max(dates).isoformat(), "known": max(before).isoformat()}
            return Note("refresh_row_older", params)
        return None

    def _wrong_price(self, offer: Offer, label: str) -> Note | None:
        """Every price against the same price before; a first on-demand price against the device's usual one."""
        old = self._known.get(key_of(offer))
        for price in _PRICES:
            fresh: Decimal | None = getattr(offer, price)
            before: Decimal | None = getattr(old, price) if old else None
            if before is None and price == "on_demand_usd_per_hour" and offer.gpu in self._usual:
                before = self._usual[offer.gpu] * Decimal(str(offer.n_gpus))
            if fresh is not None and not _LEAST_USD <= fresh <= _MOST_USD:
                return Note("refresh_row_invalid", {"row": label, "detail": price})
            if fresh is None or before is None:
                continue
            factor = float(fresh / before)
            if not self._policy.refresh_least_factor <= factor <= self._policy.refresh_most_factor:
                params: dict[str, Param] = {
                    "row": label,
                    "price": f"{fresh:g}",
                    "before": f"{before:.4g}",
                    "factor": factor,
                }
                return Note("refresh_row_price_jump", params)
        return None
