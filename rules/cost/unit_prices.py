"""What a unit of work costs on a machine of a known hourly price and speed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from rules.cost.currency import decimal_of
from rules.cost.errors import CostError
from rules.cost.types import Cost, RentalQuote
from rules.memory.footprint import Note
from rules.policy import RentalPolicy
from rules.units import HOURS_PER_WEEK

_SECONDS_PER_HOUR = Decimal(3600)
_MILLION = Decimal(1_000_000)


def positive(name: str, value: float | Decimal) -> Decimal:
    """The value as a decimal; raises `CostError` where it is not above zero and finite."""
    number = value if isinstance(value, Decimal) else decimal_of(value)
    if not (number.is_finite() and number > 0):
        raise CostError(Note("cost_not_positive", {"input": name, "value": str(value)}))
    return number


def weeks_per_month(policy: RentalPolicy) -> Decimal:
    """Weeks in the policy's month."""
    return decimal_of(policy.hours_per_month) / HOURS_PER_WEEK


def hours_per_month(hours_per_week: float, policy: RentalPolicy) -> Decimal:
    """Hours of use a month; a whole week's hours are the policy's month."""
    hours = positive("hours_per_week", hours_per_week)
    if hours > HOURS_PER_WEEK:
        raise CostError(Note("cost_more_hours_than_a_week", {"hours": str(hours_per_week)}))
    return hours * decimal_of(policy.hours_per_month) / HOURS_PER_WEEK


def run_hours(tokens: float, tokens_s: float) -> Decimal:
    """Hours of a run over `tokens` at `tokens_s` tokens a second."""
    return positive("tokens", tokens) / positive("tokens_s", tokens_s) / _SECONDS_PER_HOUR


def per_run(usd_per_hour: Decimal, tokens: float, tokens_s: float) -> Decimal:
    """USD for a run: price an hour x hours."""
    return usd_per_hour * run_hours(tokens, tokens_s)


def per_request(usd_per_hour: Decimal, requests_s: float) -> Decimal:
    """USD a request at `requests_s` requests a second."""
    return usd_per_hour / (positive("requests_s", requests_s) * _SECONDS_PER_HOUR)


def per_million_tokens(usd_per_hour: Decimal, tokens_s: float) -> Decimal:
    """USD a million tokens = USD/h / (tokens/s x 3,600 / 1,000,000)."""
    return usd_per_hour / (positive("tokens_s", tokens_s) * _SECONDS_PER_HOUR / _MILLION)


def equal_work_hours(hours: Decimal, speed_ratio: float | Decimal) -> Decimal:
    """Hours that a machine `speed_ratio` times as fast needs for the work of `hours`."""
    return hours / positive("speed_ratio", speed_ratio)


def effective_hourly(quote: RentalQuote, policy: RentalPolicy) -> Decimal:
    """USD per useful hour: a spot machine repeats the policy's share of lost work, others repeat none."""
    if quote.purchase != "spot":
        return quote.usd_per_hour
    return quote.usd_per_hour * (1 + decimal_of(policy.spot_lost_work_share))


def cost_of(
    quote: RentalQuote,
    policy: RentalPolicy,
    *,
    hours_per_week: float | None = None,
    tokens_s: float | None = None,
    run_tokens: float | None = None,
    requests_s: float | None = None,
) -> Cost:
    """The cost of a rented option, with every unit price that its speed allows.

    Spot prices count the repeated work; a note says so.
    """
    hourly = effective_hourly(quote, policy)
    hours = hours_per_month(hours_per_week, policy) if hours_per_week is not None else None
    notes = quote.notes
    if quote.billing == "monthly" and hours is not None:
        hours = decimal_of(policy.hours_per_month)
        notes = (*notes, Note("cost_billed_by_month"))
    if quote.purchase == "spot":
        notes = (*notes, Note("cost_spot_lost_work", {"percent": float(100 * policy.spot_lost_work_share)}))
    cost = Cost(
        purchase=quote.purchase,
        usd_per_hour=quote.usd_per_hour,
        hours_per_month=hours,
        usd_per_month=hourly * hours if hours is not None else None,
        price_date=quote.price_date,
        quote=quote,
        notes=notes,
    )
    if tokens_s is not None:
        cost = replace(cost, usd_per_million_tokens=per_million_tokens(hourly, tokens_s))
        if run_tokens is not None:
            cost = replace(cost, usd_per_run=per_run(hourly, run_tokens, tokens_s))
    if requests_s is not None:
        cost = replace(cost, usd_per_request=per_request(hourly, requests_s))
    return cost
