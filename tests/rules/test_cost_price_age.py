"""Old prices are warned of once, the worst of them."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from rules.cost.price_age import stale
from rules.cost.types import Purchase, RentalQuote
from rules.policy import default_policy

TODAY = date(2026, 12, 1)
POLICY = default_policy().prices


def quote(days: int | None, purchase: Purchase = "on_demand") -> RentalQuote:
    """A quote of a price this many days old."""
    return RentalQuote(
        provider=f"p{days}", instance="i", region="any", accelerator="L4", devices=1, instances=1, purchase=purchase,
        usd_per_hour=Decimal(1), price_date=None if days is None else TODAY - timedelta(days=days), source="s",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("quotes", "message", "provider"),
    [
        ([], None, None),
        ([quote(45)], None, None),
        ([quote(46)], "prices_stale", "p46"),
        ([quote(7, "spot")], None, None),
        ([quote(8, "spot")], "prices_stale_spot", "p8"),
        ([quote(50), quote(46), quote(60)], "prices_stale", "p60"),
        ([quote(60), quote(14, "spot")], "prices_stale_spot", "p14"),
        ([quote(200), quote(14, "spot")], "prices_stale", "p200"),
        ([quote(None)], "prices_undated", "pNone"),
        ([quote(None), quote(60)], "prices_stale", "p60"),
        ([quote(-1)], None, None),
    ],
)
def test_one_warning_for_the_worst(quotes: list[RentalQuote], message: str | None, provider: str | None) -> None:
    """A price within its age is not mentioned; of several past theirs the one furthest past it is."""
    note = stale(quotes, TODAY, POLICY)
    assert (note.message if note else None) == message
    assert (note.params["provider"] if note else None) == provider
