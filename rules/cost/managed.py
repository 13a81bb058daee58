"""Managed and serverless services, and the load above which a dedicated machine is cheaper."""

from __future__ import annotations

from decimal import Decimal

from rules.catalog.managed import ManagedPrice
from rules.cost.errors import CostError
from rules.cost.types import Cost
from rules.cost.unit_prices import positive
from rules.memory.footprint import Note
from rules.records import dataclass

_MILLION = Decimal(1_000_000)
_HOURS_PER_DAY = Decimal(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUse:
    """Tokens a day that go in and come out."""

    input_per_day: float
    output_per_day: float

    @property
    def total(self) -> Decimal:
        """Tokens a day, both ways; raises `CostError` for a negative figure or none at all."""
        if self.input_per_day < 0 or self.output_per_day < 0:
            raise CostError(Note("cost_not_positive", {"input": "tokens", "value": str(self)}))
        return positive("tokens", self.input_per_day + self.output_per_day)


def usd_per_day(price: ManagedPrice, use: TokenUse) -> Decimal:
    """USD a day of an endpoint priced per million tokens in and out; raises `CostError` for any other price."""
    total = use.total
    if price.input_usd_per_million_tokens is None or price.output_usd_per_million_tokens is None:
        raise CostError(Note("cost_no_token_price", {"product": price.product}))
    share_in = Decimal(str(use.input_per_day)) / total
    blended = share_in * price.input_usd_per_million_tokens + (1 - share_in) * price.output_usd_per_million_tokens
    return total / _MILLION * blended


def cheapest_endpoint(
    prices: tuple[ManagedPrice, ...], model_id: str, use: TokenUse
) -> tuple[ManagedPrice, Cost] | None:
    """The cheapest endpoint of a model (Hub id) for this mix, with its cost; None where none is known."""
    served = [
        (usd_per_day(price, use), price)
        for price in prices
        if price.kind == "tokens"
        and price.catalog_id == model_id
        and price.input_usd_per_million_tokens is not None
        and price.output_usd_per_million_tokens is not None
    ]
    if not served:
        return None
    day, price = min(served, key=lambda item: (item[0], item[1].provider, item[1].note))
    cost = Cost(
        purchase="managed",
        usd_per_month=day * 365 / 12,
        usd_per_million_tokens=day / use.total * _MILLION,
        price_date=price.price_date,
        notes=(Note("cost_managed_endpoint", {"provider": price.provider, "product": price.product}),),
    )
    return price, cost


def break_even_tokens_per_day(machine_usd_per_hour: Decimal, price: ManagedPrice, use: TokenUse) -> Decimal:
    """Tokens a day, in the mix of `use`, from which a machine that is on all day costs less than the endpoint."""
    per_token = usd_per_day(price, use) / use.total
    return positive("machine", machine_usd_per_hour) * _HOURS_PER_DAY / positive("token price", per_token)


def serverless_usd(
    usd_per_second: Decimal, busy_seconds: float, cold_starts: int = 0, start_seconds: float = 0
) -> Decimal:
    """USD of a service that is billed while it runs; a cold start is billed for its seconds."""
    if busy_seconds < 0 or cold_starts < 0 or start_seconds < 0:
        raise CostError(Note("cost_not_positive", {"input": "seconds", "value": str(busy_seconds)}))
    return usd_per_second * (Decimal(str(busy_seconds)) + cold_starts * Decimal(str(start_seconds)))


def break_even_utilisation(dedicated_usd_per_hour: Decimal, serverless_usd_per_hour: Decimal) -> Decimal | None:
    """Share of hours busy above which a dedicated machine costs less than seconds; None where it never does."""
    share = positive("dedicated", dedicated_usd_per_hour) / positive("serverless", serverless_usd_per_hour)
    return share if share <= 1 else None


def committed_break_even_utilisation(discount_percent: Decimal) -> Decimal:
    """A commitment at a discount pays only above this utilisation: 1 - discount."""
    if not 0 <= discount_percent <= 100:
        raise CostError(Note("cost_not_positive", {"input": "discount", "value": str(discount_percent)}))
    return 1 - discount_percent / 100


def replicas_usd(
    usd_per_hour: Decimal, hours: Decimal, least: int, extra: int = 0, extra_hours: Decimal = Decimal(0)
) -> Decimal:
    """USD of an endpoint with replicas: rate x (hours x least replicas + scale-up hours x extra replicas)."""
    if least < 0 or extra < 0 or hours < 0 or extra_hours < 0:
        raise CostError(Note("cost_not_positive", {"input": "replicas", "value": str(least)}))
    return usd_per_hour * (hours * least + extra_hours * extra)
