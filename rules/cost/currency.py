"""Currencies: amounts are converted at the policy's dated rate and never added across currencies."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from rules.cost.errors import CostError
from rules.cost.types import Amount
from rules.memory.footprint import Note
from rules.policy import CurrencyPolicy
from rules.workload import Money

_MOST = Decimal(10) ** 15


def decimal_of(value: float) -> Decimal:
    """The decimal that a number is written as (0.1 is one tenth)."""
    return Decimal(str(value))


def usd_per_unit(currency: str, policy: CurrencyPolicy) -> Decimal:
    """USD for one unit of a currency (ISO 4217); raises `CostError` where the policy has no rate."""
    rates = {
        "USD": Decimal(1),
        "EUR": decimal_of(policy.usd_per_eur),
        "GBP": decimal_of(policy.usd_per_gbp),
        "MXN": 1 / decimal_of(policy.mxn_per_usd) if policy.mxn_per_usd else Decimal(0),
    }
    rate = rates.get(currency.upper())
    if not rate:
        raise CostError(Note("cost_no_exchange_rate", {"currency": currency}))
    return rate


def convert(amount: Amount, currency: str, policy: CurrencyPolicy) -> Amount:
    """The same sum in another currency; unchanged where it is in that currency already."""
    if amount.currency == currency:
        return amount
    usd = amount.value * usd_per_unit(amount.currency, policy)
    return Amount(usd / usd_per_unit(currency, policy), currency)


def add(first: Amount, second: Amount) -> Amount:
    """The sum of two amounts of one currency; raises `CostError` for two currencies."""
    if first.currency != second.currency:
        raise CostError(Note("cost_currencies_mixed", {"one": first.currency, "other": second.currency}))
    return Amount(first.value + second.value, first.currency)


def amount_of(money: Money) -> Amount:
    """A user's amount; raises `CostError` where it is no number, negative, or beyond any budget."""
    try:
        value = Decimal(money.amount.strip())
    except (InvalidOperation, AttributeError, TypeError, ValueError):
        value = Decimal(-1)
    if not (value.is_finite() and 0 <= value < _MOST):
        raise CostError(Note("cost_amount_invalid", {"amount": str(money.amount)[:40]}))
    return Amount(value, money.currency.upper())
