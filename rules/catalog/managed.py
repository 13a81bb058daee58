"""Managed and serverless prices: one `ManagedPrice` per row of `data/managed.csv`. USD before tax."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation

from rules.catalog.cells import amount_of, date_of
from rules.catalog.errors import CatalogError
from rules.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedPrice:
    """One dated price; `kind` says of what: `tokens`, `image`, `audio_seconds`, `gpu_seconds`, `gpu_hours`, or a
    discount or interruption band in per cent. `catalog_id` is a model's Hub id or an accelerator's name.
    """

    kind: str
    provider: str
    product: str
    catalog_id: str = ""
    input_usd_per_million_tokens: Decimal | None = None
    output_usd_per_million_tokens: Decimal | None = None
    usd_per_second: Decimal | None = None
    usd_per_hour: Decimal | None = None
    usd_per_image: Decimal | None = None
    percent_low: Decimal | None = None
    percent_high: Decimal | None = None
    price_date: date | None = None
    source: str = ""
    note: str = ""

    @property
    def service(self) -> str:
        """The provider's service in words: "runpod serverless"."""
        return self.provider.replace("_", " ")

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> ManagedPrice:
        """Builds one price from a CSV row; raises `CatalogError` naming the product and what is wrong."""
        try:
            return cls(
                kind=row["kind"],
                provider=row["provider"],
                product=row["model"],
                catalog_id=row["catalog_id"],
                input_usd_per_million_tokens=amount_of(row["input_usd_per_mtok"]),
                output_usd_per_million_tokens=amount_of(row["output_usd_per_mtok"]),
                usd_per_second=amount_of(row["usd_per_second"]),
                usd_per_hour=amount_of(row["usd_per_hour"]),
                usd_per_image=amount_of(row["usd_per_image"]),
                percent_low=amount_of(row["percent_low"]),
                percent_high=amount_of(row["percent_high"]),
                price_date=date_of(row["as_of"]),
                source=row["source"],
                note=row["note"],
            )
        except (KeyError, ValueError, AttributeError, TypeError, InvalidOperation) as exc:
            raise CatalogError("managed_row_invalid", row=row.get("model") or "?", detail=str(exc)) from exc
