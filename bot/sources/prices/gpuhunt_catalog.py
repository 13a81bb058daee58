"""Prices by the package gpuhunt (optional extra `prices`): its published catalogue and the providers it can ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any, TypeAlias

from bot.sources.prices.errors import PricesMalformed, PricesNotInstalled, PricesUnreachable
from bot.sources.prices.port import Answer, Progress, Row, row_of
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import UnknownName
from rules.catalog.offers import Offer
from rules.records import dataclass

_Machine: TypeAlias = tuple[str, str, str, str, int]  # provider, instance, region, device, how many
_Machines: TypeAlias = Mapping[_Machine, dict[bool, Any]]  # the cheapest item of each, by whether it is spot

_FORM_FACTOR = re.compile(r"pcie|sxm|nvl")

# Names of providers where gpuhunt's differ from ours.
_PROVIDERS = {"lambdalabs": "lambda", "vastai": "vast-ai", "jarvislabs": "jarvis-labs"}


@dataclass(frozen=True, slots=True)
class GpuhuntPrices:
    """Asks once for everything and keeps one region an instance beside those that the catalogue knows."""

    catalogue: Catalogue
    query: Callable[[], Iterable[Any]] | None = None

    @property
    def name(self) -> str:
        """The package's name."""
        return "gpuhunt"

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """Its items, on-demand and spot of one machine in one row."""
        items = self._items()
        machines: dict[_Machine, dict[bool, Any]] = {}
        for count, item in enumerate(items, start=1):
            prices = machines.setdefault(_machine(item), {})
            if item.spot not in prices or item.price < prices[item.spot].price:
                prices[item.spot] = item
            if count % 1000 == 0:
                progress(self.name, count)
        rows = self._rows(machines, known, today)
        if not rows:
            raise PricesMalformed(self.name, "no offers")
        return Answer(rows, frozenset(row["provider"] for row in rows))

    def _rows(self, machines: _Machines, known: Sequence[Offer], today: date) -> tuple[Row, ...]:
        before = {(o.provider, o.instance, o.region): o for o in known}
        like = {(o.provider, o.instance): o for o in known if o.gpu}
        rows: list[Row] = []
        cheapest: dict[tuple[str, str, str, int], tuple[float, Row]] = {}
        for machine, prices in machines.items():
            provider, instance, region, gpu, count = machine
            old = before.get((provider, instance, region))
            row = self._row(machine, prices, old or like.get((provider, instance)), today)
            price = min(item.price for item in prices.values())
            elsewhere = provider, instance, gpu, count
            if old:
                rows.append(row)
            elif elsewhere not in cheapest or price < cheapest[elsewhere][0]:
                cheapest[elsewhere] = price, row
        return (*rows, *(row for _, row in cheapest.values()))

    def _items(self) -> Iterable[Any]:
        if self.query is not None:
            return self.query()
        try:
            import gpuhunt
        except ImportError as exc:
            raise PricesNotInstalled("gpuhunt") from exc
        try:
            found: Iterable[Any] = gpuhunt.default_catalog().query()
        except Exception as exc:
            raise PricesUnreachable(self.name, type(exc).__name__) from exc
        return found

    def _row(self, machine: _Machine, prices: dict[bool, Any], like: Offer | None, today: date) -> dict[str, str]:
        provider, instance, region, gpu, count = machine
        item = next(iter(prices.values()))
        row = row_of(like) if like else dict.fromkeys(_COLUMNS, "")
        day = today.isoformat()
        row |= {
            "provider": provider,
            "instance": instance,
            "region": region,
            "gpu": like.gpu if like else self._device(gpu, item.gpu_memory, instance),
            "n_gpus": f"{like.n_gpus:g}" if like else str(count),
            "vcpus": str(item.cpu or ""),
            "ram_gib": f"{item.memory:g}" if item.memory else "",
            "on_demand_usd_h": f"{prices[False].price:g}" if False in prices else "",
            "spot_usd_h": f"{prices[True].price:g}" if True in prices else "",
            "on_demand_eur_h": "",
            "price_date": day if False in prices else "",
            "spot_date": day if True in prices else "",
            "source": f"gpuhunt {day}",
        }
        return row

    def _device(self, name: str, memory_gb: float | None, instance: str) -> str:
        """Our name of a device; the name as it came where none is known, which the check then refuses.

        gpuhunt does not tell the form factor: where the instance's name does, it picks the variant.
        """
        told = _FORM_FACTOR.search(instance.lower())
        for wanted in (f"{name} {told[0]}" if told else "", name):
            try:
                if wanted:
                    return self.catalogue.find_accelerator(wanted, memory_gb).name
            except UnknownName:
                continue
        return name


_COLUMNS = tuple(row_of(Offer(provider="", instance="", region="", gpu="", n_gpus=0)))


def _machine(item: Any) -> _Machine:
    provider = _PROVIDERS.get(item.provider, item.provider)
    return provider, item.instance_name, item.location, item.gpu_name or "", int(item.gpu_count or 0)
