"""Unit prices and currencies, to the cent."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.cost.currency import add, amount_of, convert
from rules.cost.errors import CostError
from rules.cost.types import Amount, Purchase, RentalQuote
from rules.cost.unit_prices import (
    cost_of,
    equal_work_hours,
    hours_per_month,
    per_million_tokens,
    per_request,
    per_run,
)
from rules.policy import default_policy
from rules.workload import Money

POLICY = default_policy()


def cents(value: Decimal | None) -> str:
    """Money as printed, to the cent."""
    assert value is not None
    return f"{value:.2f}"


def quote(usd_per_hour: str, purchase: Purchase = "on_demand", billing: str = "") -> RentalQuote:
    """One L4 for this price."""
    return RentalQuote(
        provider="p", instance="i", region="any", accelerator="L4", devices=1, instances=1, purchase=purchase,
        usd_per_hour=Decimal(usd_per_hour), price_date=date(2026, 11, 1), source="s", billing=billing,
    )  # fmt: skip


def test_month_of_forty_hours_a_week() -> None:
    """40 hours a week of a 0.44 L4: 173.81 hours and 76.48 USD a month."""
    assert cents(hours_per_month(40, POLICY.rental)) == "173.81"
    assert cents(cost_of(quote("0.44"), POLICY.rental, hours_per_week=40).usd_per_month) == "76.48"
    assert hours_per_month(168, POLICY.rental) == 730


def test_tokens_requests_and_runs() -> None:
    """3.60 an hour at 1,000 tokens/s: 1.00 a million, 7.20 for 7.2 M tokens; Manning: 2.50 at 2,950 an hour."""
    assert per_million_tokens(Decimal("3.60"), 1000) == 1
    assert per_run(Decimal("3.60"), 7_200_000, 1000) == Decimal("7.20")
    assert f"{per_request(Decimal('2.50'), 1):.6f}" == "0.000694"
    # 2.50 / 2,950 + 4.2 % x 0.004 = 0.000847 + 0.000168
    own = per_request(Decimal("2.50"), 2950 / 3600)
    assert f"{own + Decimal('0.042') * Decimal('0.004'):.6f}" == "0.001015"


def test_equal_work_needs_a_speed_above_the_price_ratio() -> None:
    """H100 at 2.90 against A100 at 1.64 for ten A100 hours: dearer at 1.7 times the speed, cheaper at 1.8."""
    a100 = Decimal("1.64") * 10
    assert Decimal("2.90") * equal_work_hours(Decimal(10), 1.7) > a100
    assert Decimal("2.90") * equal_work_hours(Decimal(10), 1.8) < a100


def test_spot_counts_repeated_work_and_says_so() -> None:
    """A spot hour of 1.00 costs 1.10 of useful time under the default assumption; the list price stays."""
    cost = cost_of(quote("1", "spot"), POLICY.rental, hours_per_week=168, tokens_s=1000 / 3.6)
    assert (cents(cost.usd_per_month), cost.usd_per_hour) == ("803.00", Decimal(1))
    assert cents(cost.usd_per_million_tokens) == "1.10"
    assert [n.message for n in cost.notes] == ["cost_spot_lost_work"]


def test_monthly_billing_pays_the_month() -> None:
    """A machine billed by the month costs 730 hours whatever the hours of use."""
    cost = cost_of(quote("1", billing="monthly"), POLICY.rental, hours_per_week=10)
    assert cost.usd_per_month == 730


@pytest.mark.parametrize("hours", [0, -1, 169, float("nan"), float("inf")])
def test_impossible_hours_are_refused(hours: float) -> None:
    """Hours a week are above zero and at most 168."""
    with pytest.raises(CostError):
        hours_per_month(hours, POLICY.rental)


@pytest.mark.parametrize("text", ["", "lots", "-5", "nan", "inf", "1e400", "1,000", "--", "１０b"])
def test_garbage_budgets_are_refused(text: str) -> None:
    """What is no amount of money is refused with a message."""
    with pytest.raises(CostError) as refused:
        amount_of(Money(amount=text))
    assert refused.value.note.message == "cost_amount_invalid"


def test_currencies_convert_at_the_dated_rate_and_never_mix() -> None:
    """100 EUR are 111.72 USD; USD and EUR do not add; an unknown currency has no rate."""
    assert convert(Amount(Decimal(100), "EUR"), "USD", POLICY.currency) == Amount(Decimal("111.72"), "USD")
    with pytest.raises(CostError, match="cost_currencies_mixed"):
        add(Amount(Decimal(1), "USD"), Amount(Decimal(1), "EUR"))
    with pytest.raises(CostError, match="cost_no_exchange_rate"):
        convert(Amount(Decimal(1), "JPY"), "USD", POLICY.currency)


@settings(max_examples=40, derandomize=True)
@given(st.decimals(0, 10**9, places=2), st.sampled_from(["EUR", "GBP", "MXN"]))
def test_conversion_there_and_back(value: Decimal, currency: str) -> None:
    """A sum converted to another currency and back is the same sum to the cent."""
    there = convert(Amount(value), currency, POLICY.currency)
    assert round(convert(there, "USD", POLICY.currency).value, 2) == value
