"""Endpoints priced per token and machines billed per busy second, beside the cheapest machine rented for it (I10, I13).

An endpoint costs what its tokens cost; a dedicated machine costs its hours whatever it carries. So the one wins under
some load and the other above it, as far as the machine carries that much at all. Money is USD, loads are tokens a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rules.advice.demand import Demand
from rules.advice.headlines import machine_of
from rules.advice.market import hours_per_week
from rules.advice.team_rules import NUMBERS, TEXTS, broken
from rules.advice.types import Option
from rules.catalog.catalogue import Catalogue
from rules.catalog.managed import ManagedPrice
from rules.catalog.models import ModelSpec
from rules.cost.errors import CostError
from rules.cost.managed import TokenUse, break_even_tokens_per_day, break_even_utilisation, cheapest_endpoint
from rules.cost.unit_prices import effective_hourly
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass
from rules.units import HOURS_PER_WEEK, SECONDS_PER_DAY
from rules.workload import InferenceWorkload

_SECONDS_AN_HOUR = 3600
_LIKE_SIZE = 0.02  # a sister of the same maker, kind and size costs an endpoint the same to run


@dataclass(frozen=True, slots=True)
class _Dedicated:
    """The cheapest machine to rent that does the work, its share of the week in use and its USD an hour in use."""

    option: Option
    usd_per_hour: Decimal
    share_of_week: float

    @property
    def usd_per_day(self) -> Decimal:
        """Mean USD a day."""
        return self.usd_per_hour * 24 * Decimal(str(self.share_of_week))

    @property
    def requests_per_day(self) -> float | None:
        """The most requests a day at the planned head-room; None where no law says."""
        carried = self.option.capacity
        if carried is None or not carried.requests_s:
            return None
        return carried.requests_s * self.option.replicas * SECONDS_PER_DAY * self.share_of_week


def managed_note(
    workload: InferenceWorkload,
    model: ModelSpec,
    options: Sequence[Option],
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand,
) -> Note | None:
    """Which is cheaper, an endpoint or a rented machine, and from which load; None where nothing is priced.

    No price of a service names its region, so none satisfies a wanted place: that is what is then said.
    """
    limits = workload.constraints
    if limits.where == "on_premises" or limits.cpu_only or limits.purchase is not None:
        return None
    prices = tuple(p for p in catalogue.managed if _allowed(p, limits.providers, policy))
    rented = _dedicated(workload, options, policy)
    if rented is None:
        return None
    try:
        found = _endpoint(prices, model, catalogue, demand)
        if found is None:
            return None if limits.location else _by_the_second(prices, rented, demand)
        if limits.location:
            return Note("managed_without_region", {"provider": found.service, "place": limits.location}, "I13")
        return _compared(found, rented, demand, workload)
    except CostError:
        return None


def _allowed(price: ManagedPrice, providers: tuple[str, ...], policy: Policy) -> bool:
    if providers and price.provider not in providers:
        return False
    if not policy.constraints:
        return True
    facts: dict[str, str | float | None] = {
        **dict.fromkeys((*TEXTS, *NUMBERS), None),
        "kind": "managed",
        "where": "cloud",
        "provider": price.provider,
    }
    return not any(b.certain for b in broken(facts, policy.constraints))


def _dedicated(workload: InferenceWorkload, options: Sequence[Option], policy: Policy) -> _Dedicated | None:
    share = hours_per_week(workload, policy) / HOURS_PER_WEEK
    found = []
    for option in options:
        quote = option.cost.quote if option.cost else None
        misses = option.capacity is not None and option.capacity.meets is False
        if quote is not None and option.kind != "own" and option.outcome in ("fits", "tight", "cpu") and not misses:
            found.append(_Dedicated(option, effective_hourly(quote, policy.rental), share))
    return min(found, key=lambda each: each.usd_per_hour, default=None)


def _endpoint(
    prices: tuple[ManagedPrice, ...], model: ModelSpec, catalogue: Catalogue, demand: Demand
) -> ManagedPrice | None:
    """The cheapest endpoint of the model for the demand's mix, else of a sister of the same size."""
    mix = _mix(demand)
    own = cheapest_endpoint(prices, model.hf_id, mix)
    if own is not None:
        return own[0]
    if model.domain != "llm":
        return None
    maker = model.hf_id.partition("/")[0]
    ids = {p.catalog_id for p in prices if p.kind == "tokens" and p.catalog_id.partition("/")[0] == maker}
    sisters = [cheapest_endpoint(prices, each, mix) for each in sorted(ids) if _is_sister(each, model, catalogue)]
    known = [each for each in sisters if each is not None]
    return min(known, key=lambda each: each[1].usd_per_month or 0, default=(None,))[0]


def _is_sister(hf_id: str, model: ModelSpec, catalogue: Catalogue) -> bool:
    other = catalogue.find_model(hf_id).spec
    pairs = ((other.params_total, model.params_total), (other.params_active, model.params_active))
    return all(abs(a - b) <= _LIKE_SIZE * b for a, b in pairs)


def _mix(demand: Demand, requests_per_day: float = 1.0) -> TokenUse:
    return TokenUse(
        input_per_day=requests_per_day * demand.prompt_tokens, output_per_day=requests_per_day * demand.answer_tokens
    )


def _compared(price: ManagedPrice, rented: _Dedicated, demand: Demand, workload: InferenceWorkload) -> Note:
    """The endpoint against the machine at the load that was told, or where the two meet."""
    from rules.cost.managed import usd_per_day

    each = demand.prompt_tokens + demand.answer_tokens
    mean_hour = rented.usd_per_hour * Decimal(str(rented.share_of_week))
    meets_at = float(break_even_tokens_per_day(mean_hour, price, _mix(demand)))
    most = rented.requests_per_day
    reachable = most is None or meets_at <= most * each
    params: dict[str, Param] = {
        "provider": price.service,
        "product": price.product,
        "usd_per_million": float(usd_per_day(price, _mix(demand, 1e6 / each))),
        "machine": machine_of(rented.option),
        "dedicated_month": float(rented.usd_per_day * 365 / 12),
        "break_even": _three_digits(meets_at),
    }
    if most is not None:
        params["most"] = _three_digits(most * each)
    if demand.mean_requests_s is None:
        return Note("managed_from_tokens" if reachable else "managed_at_any_load", params, "I10")
    requests = demand.mean_requests_s * SECONDS_PER_DAY * rented.share_of_week
    use = _mix(demand, requests)
    day = usd_per_day(price, use)
    daily = workload.traffic.tokens_per_day is not None or workload.traffic.requests_per_month is not None
    load = Note("load_tokens_a_day" if daily else "load_tokens_a_day_at_that_rate", {"tokens": float(use.total)})
    params |= {"load": load, "month": float(day * 365 / 12)}
    if day > rented.usd_per_day:
        return Note("managed_dearer", params, "I10")
    return Note("managed_cheaper" if reachable else "managed_cheaper_at_any_load", params, "I10")


def _three_digits(value: float) -> float:
    """An estimate as it deserves to be written."""
    return float(f"{value:.3g}")


def _by_the_second(prices: tuple[ManagedPrice, ...], rented: _Dedicated, demand: Demand) -> Note | None:
    """The same card billed while it works, where the load told leaves it idle for long enough; else None."""
    most = rented.requests_per_day
    if most is None or demand.mean_requests_s is None:
        return None
    known = [p for p in prices if p.kind == "gpu_seconds" and p.usd_per_second and p.catalog_id]
    same = [p for p in known if p.catalog_id == rented.option.hardware]
    price = min(same, key=lambda p: p.usd_per_second or 0, default=None)
    if price is None or price.usd_per_second is None:
        return None
    hourly = price.usd_per_second * _SECONDS_AN_HOUR * rented.option.devices
    share = break_even_utilisation(rented.usd_per_hour, hourly)
    busy = demand.mean_requests_s * SECONDS_PER_DAY * rented.share_of_week / most
    if share is None or busy >= float(share):
        return None
    params: dict[str, Param] = {
        "provider": price.service,
        "machine": machine_of(rented.option),
        "usd_per_hour": float(hourly),
        "dedicated_hour": float(rented.usd_per_hour),
        "share": 100 * float(share),
        "busy": 100 * busy,
    }
    return Note("serverless_pays", params, "I10")
