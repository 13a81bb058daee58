"""What the cost rules return. Money is `Decimal` with its currency beside it; hours and months are plain numbers.

Every amount is before tax unless its name says otherwise. None = unknown, and stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Literal

from rules.memory.footprint import Note
from rules.records import dataclass

Purchase = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "serverless", "managed", "owned"]


@dataclass(frozen=True, slots=True)
class Amount:
    """A sum of money in one currency (ISO 4217)."""

    value: Decimal
    currency: str = "USD"


@dataclass(frozen=True, slots=True)
class AmountRange:
    """Low, expected and high of one sum; one currency."""

    low: Decimal
    expected: Decimal
    high: Decimal
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalQuote:
    """A cloud offer for a number of whole instances. `usd_per_hour` is for all of them."""

    provider: str
    instance: str
    region: str
    accelerator: str
    devices: int
    instances: int
    purchase: Purchase
    usd_per_hour: Decimal
    price_date: date | None
    source: str
    billing: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """One line of a sum, with where its inputs come from ("catalogue", "policy", "operator assumption")."""

    item: str
    amount: AmountRange
    origin: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipCost:
    """Owning `devices` cards and their host for `months`: capital first, then the running lines a month.

    `energy_usd_per_hour` is the part of `per_month` that grows with the busy hours.
    """

    accelerator: str
    devices: int
    months: int
    purchase_price: AmountRange
    residual_value: AmountRange
    per_month: AmountRange
    total: AmountRange
    lines: tuple[CostLine, ...]
    sunk: bool = False
    energy_usd_per_hour: Decimal = Decimal(0)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """Rent and own cost in USD up to a month, in money of the first day, each with its band."""

    month: int
    rent: Decimal
    rent_low: Decimal
    rent_high: Decimal
    own: Decimal
    own_low: Decimal
    own_high: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Owning against renting for equal work. None where the two never cross in the machine's useful life.

    `months` is inside that life; `months_at_any_length` is the same figure where it is beyond. `sensitivity` has what
    is moved and the owner's USD a month less the renter's at its low and high end, widest first. In `curve`
    the residual of the life's end is taken off the own cost from the first day.
    """

    rent_usd_per_month: Decimal
    own_usd_per_month: Decimal
    months: Decimal | None
    hours_per_week: Decimal | None
    cheaper: Literal["rent", "own", "equal"]
    horizon_months: int
    sensitivity: tuple[tuple[str, Decimal | None, Decimal | None], ...] = ()
    months_at_any_length: Decimal | None = None
    curve: tuple[CurvePoint, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one option costs; `usd_per_month` is at the hours of the workload, unit prices need its speed."""

    purchase: Purchase
    usd_per_hour: Decimal | None = None
    hours_per_month: Decimal | None = None
    usd_per_month: Decimal | None = None
    usd_per_run: Decimal | None = None
    usd_per_request: Decimal | None = None
    usd_per_million_tokens: Decimal | None = None
    list_price_usd: Decimal | None = None
    street_price_usd: Decimal | None = None
    price_date: date | None = None
    quote: RentalQuote | None = None
    ownership: OwnershipCost | None = None
    notes: tuple[Note, ...] = ()
