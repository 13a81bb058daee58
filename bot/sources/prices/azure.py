"""Azure Retail Prices API: public, without a key, paged JSON (learn.microsoft.com, "Azure Retail Prices overview").

It knows prices, not machines, so it is asked about the Azure instances of the catalogue and refreshes those. A
reservation's price is for its whole term, although its unit reads one hour.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode, urlsplit

from bot.sources.prices.download import Downloader
from bot.sources.prices.errors import PricesMalformed, PricesUnreachable
from bot.sources.prices.port import Answer, Progress, row_of
from rules.catalog.offers import Offer
from rules.records import dataclass

URL = "https://prices.azure.com/api/retail/prices"
PROVIDER = "azure"
_MOST_PAGES = 20
_LEAST_USD, _MOST_USD = Decimal("0.000001"), Decimal(10**9)  # of an hour, and of a reservation's whole term
_HOURS = {"1 Year": 8760, "3 Years": 26280}
_RESERVED = {"1 Year": "reserved_1y_usd_h", "3 Years": "reserved_3y_usd_h"}


@dataclass(frozen=True, slots=True)
class AzurePrices:
    """Asks for each known Azure instance in its region, one after the other."""

    url: str = URL
    downloader: Downloader = field(default_factory=Downloader)
    longest_s: float = 300.0  # for all questions together

    @property
    def name(self) -> str:
        """The provider's name."""
        return PROVIDER

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """The known Azure instances that still have a price, at today's prices in USD."""
        rows = []
        ends = self.downloader.clock() + self.longest_s
        for offer in known:
            if offer.provider != PROVIDER or not offer.instance.startswith("Standard_"):
                continue
            if self.downloader.clock() > ends:
                raise PricesUnreachable(self.name, f"not finished after {self.longest_s:g} s")
            found: dict[str, Decimal] = {}
            for item in self._items(offer.instance, offer.region, progress):
                column, price = _priced(item)
                if column:
                    found[column] = min(price, found.get(column, price))
            if found:
                rows.append(_refreshed(offer, found, today))
        return Answer(tuple(rows), frozenset({PROVIDER}))

    def _items(self, instance: str, region: str, progress: Progress) -> Iterator[Mapping[str, Any]]:
        wanted = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}' and armSkuName eq '{instance}'"
        url = f"{self.url}?{urlencode({'currencyCode': 'USD', '$filter': wanted})}"
        for _ in range(_MOST_PAGES):
            page = self._page(url, progress)
            for item in page["Items"]:
                if not isinstance(item, Mapping):
                    raise PricesMalformed(self.name, "an item is no object")
                if item.get("armSkuName") == instance and item.get("armRegionName") == region:
                    yield item
            url = page.get("NextPageLink") or ""
            if not url:
                return
            if not isinstance(url, str) or urlsplit(url).hostname != urlsplit(self.url).hostname:
                raise PricesMalformed(self.name, "the next page is on another host")
        raise PricesMalformed(self.name, f"more than {_MOST_PAGES} pages for {instance}")

    def _page(self, url: str, progress: Progress) -> Mapping[str, Any]:
        body = self.downloader.get(url, self.name, progress)
        try:
            page = json.loads(body, parse_float=Decimal)
        except (ValueError, RecursionError) as exc:
            raise PricesMalformed(self.name, "not JSON") from exc
        if not isinstance(page, Mapping) or not isinstance(page.get("Items"), list):
            raise PricesMalformed(self.name, "no list of items")
        return page


def _priced(item: Mapping[str, Any]) -> tuple[str, Decimal]:
    """The column that an item is the price of, "" where none; in USD an hour."""
    nothing = "", Decimal(0)
    price = item.get("retailPrice")
    if isinstance(price, bool) or not isinstance(price, (int, Decimal)) or not _LEAST_USD < price < _MOST_USD:
        return nothing
    sku, product = str(item.get("skuName", "")), str(item.get("productName", ""))
    if item.get("currencyCode") != "USD" or "Windows" in product or "Cloud Services" in product:
        return nothing
    if sku.endswith("Low Priority") or item.get("tierMinimumUnits", 0):
        return nothing
    term = item.get("reservationTerm")
    if item.get("type") == "Reservation" and term in _HOURS:
        return _RESERVED[term], (Decimal(price) / _HOURS[term]).quantize(Decimal("0.000001"))
    if item.get("type") != "Consumption" or item.get("unitOfMeasure") != "1 Hour":
        return nothing
    return "spot_usd_h" if sku.endswith("Spot") else "on_demand_usd_h", Decimal(price)


def _refreshed(offer: Offer, found: Mapping[str, Decimal], today: date) -> dict[str, str]:
    row = row_of(offer)
    for column in ("on_demand_usd_h", "spot_usd_h", "on_demand_eur_h", *_RESERVED.values()):
        row[column] = f"{found[column]:f}" if column in found else ""
    row["price_date"] = today.isoformat() if found.keys() - {"spot_usd_h"} else ""
    row["spot_date"] = today.isoformat() if "spot_usd_h" in found else ""
    row["source"] = f"Azure Retail Prices API {today.isoformat()}"
    row["notes"] = offer.notes if not offer.notes.startswith("spot:") else ""
    return row
