"""What owning a machine costs: purchase, residual value, energy, space, upkeep, people, and capital.

Total = price - residual + capital cost + months x running cost. Power at the wall = (devices x board power x load share
+ hosts) / supply efficiency; energy = power x hours x price x PUE. A host's price keeps no residual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import ceil
from typing import Literal

from rules.catalog.accelerators import Accelerator
from rules.catalog.ownership import OwnershipFact, OwnershipFacts
from rules.cost.currency import amount_of, convert, decimal_of
from rules.cost.errors import CostError
from rules.cost.types import AmountRange, CostLine, OwnershipCost
from rules.cost.unit_prices import hours_per_month, positive
from rules.memory.footprint import Note
from rules.policy import OwnershipPolicy, Policy
from rules.records import dataclass
from rules.workload import Money

Place = Literal["office", "server_room", "colocation"]
_ZERO = Decimal(0)
_NO_PARAMS: Mapping[str, str] = {}
# Complete servers of eight devices that have a price of their own.
_SERVERS = {
    "H100 80GB SXM5": "server_hgx_h100_8gpu",
    "H200 141GB SXM5": "server_hgx_h200_8gpu",
    "B200": "server_hgx_b200_8gpu",
}
_ASSUMED, _POLICY, _CATALOGUE = "operator assumption", "policy", "catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipWants:
    """How the machine is used and where it stands; None = the policy's or the catalogue's figure.

    `hours_per_week` are busy hours; the machine is off in the others. Prices are before tax: `price_paid_usd` is for
    everything, `usd_per_kwh` what the reader pays. `sunk`: owned already; its price does not count, the resale value
    forgone (`resale_now_usd`) does.
    """

    hours_per_week: float
    months: int | None = None
    place: Place = "office"
    training: bool = True
    country: str | None = None
    household: bool = False
    usd_per_kwh: Decimal | None = None
    price_paid_usd: Decimal | None = None
    sunk: bool = False
    resale_now_usd: Decimal | None = None
    admin_hours_per_month: Decimal | None = None
    admin_usd_per_hour: Decimal | None = None


def place_of(device: Accelerator) -> Place:
    """Where a device has to stand: a passive card or module in a server room, any other in an office."""
    return "server_room" if device.needs_server_chassis or device.tier == "datacenter" else "office"


def usd_per_kwh(price: Money | None, policy: Policy) -> Decimal | None:
    """The reader's price of electricity in USD, None where none is told; raises `CostError` for one of no use."""
    return convert(amount_of(price), "USD", policy.currency).value if price is not None else None


def ownership_cost(
    device: Accelerator, count: int, wants: OwnershipWants, facts: OwnershipFacts, policy: Policy
) -> OwnershipCost:
    """The cost of owning `count` devices with their hosts; raises `CostError` where the device has no known price,
    is only rented, or an input is not above zero.
    """
    own = policy.ownership
    months = wants.months or own.life_months
    if count < 1 or months < 1:
        raise CostError(Note("cost_not_positive", {"input": "devices", "value": str(count)}))
    hours = hours_per_month(wants.hours_per_week, policy.rental)
    bought = _purchase(device, count, wants, facts, own)
    price = _sum(line.amount for line in bought)
    kept = _residual(bought, months, own)
    capital = _capital(price, kept, months, own)
    energy, committed_kw, notes = _energy(device, count, hours, wants, facts, policy)
    running = [energy, *_space(committed_kw, wants, own), _upkeep(price, own)]
    if wants.admin_hours_per_month is not None and wants.admin_usd_per_hour is not None:
        people = wants.admin_hours_per_month * wants.admin_usd_per_hour
        running.append(_line("administration", _exactly(people), _ASSUMED))
    else:
        notes = (*notes, Note("cost_people_not_counted"))
    per_month = _sum(line.amount for line in running)
    total = AmountRange(
        max(price.low - kept.high, _ZERO) + capital.low + per_month.low * months,
        price.expected - kept.expected + capital.expected + per_month.expected * months,
        price.high - kept.low + capital.high + per_month.high * months,
    )
    lines = (*bought, _line("residual_value", kept, _POLICY), _line("capital", capital, _POLICY), *running)
    return OwnershipCost(
        accelerator=device.name,
        devices=count,
        months=months,
        purchase_price=price,
        residual_value=kept,
        per_month=per_month,
        total=total,
        lines=lines,
        sunk=wants.sunk,
        energy_usd_per_hour=energy.amount.expected / hours,
        notes=notes,
    )


def per_useful_hour(owned: OwnershipCost, useful_hours: float) -> AmountRange:
    """USD a device and useful hour: total / (devices x useful hours of each over the whole time)."""
    hours = positive("useful_hours", useful_hours) * owned.devices
    return AmountRange(owned.total.low / hours, owned.total.expected / hours, owned.total.high / hours)


def residual_share(months: int, own: OwnershipPolicy) -> tuple[Decimal, Decimal, Decimal]:
    """Low, expected and high share of the price that is left: linear between years, after the fourth at its rate."""
    years = [
        (Decimal(1),) * 3,
        *(_three(y) for y in (own.residual_year_1, own.residual_year_2, own.residual_year_3, own.residual_year_4)),
    ]
    year, month = divmod(months, 12)
    if year >= 4:
        beyond = Decimal(months - 48) / 12
        low, mid, high = (
            years[4][i] * (years[4][i] / years[3][i]) ** beyond if years[3][i] else _ZERO for i in range(3)
        )
        return low, mid, high
    part = Decimal(month) / 12
    low, mid, high = (years[year][i] + (years[year + 1][i] - years[year][i]) * part for i in range(3))
    return low, mid, high


def annuity(principal: Decimal, rate_per_month: Decimal, months: int) -> Decimal:
    """The equal payment a month that repays `principal`: r / (1 - (1 + r)^-n), or 1/n where r is 0."""
    if not rate_per_month:
        return principal / months
    return principal * rate_per_month / (1 - (1 + rate_per_month) ** -months)


def monthly_rate(per_year: Decimal) -> Decimal:
    """The rate a month that compounds to `per_year`."""
    return (1 + per_year) ** (Decimal(1) / 12) - 1


def _purchase(
    device: Accelerator, count: int, wants: OwnershipWants, facts: OwnershipFacts, own: OwnershipPolicy
) -> list[CostLine]:
    if wants.sunk:
        return [_line("resale_forgone", _exactly(_not_negative(wants.resale_now_usd or _ZERO)), _ASSUMED)]
    if wants.price_paid_usd is not None:
        return [_line("devices", _exactly(_not_negative(wants.price_paid_usd)), "stated")]
    server = facts.find(_SERVERS[device.name]) if device.name in _SERVERS else None
    if server is not None:
        return [_line("server", _scaled(_of(server), ceil(count / own.devices_per_server)), _CATALOGUE, _from(server))]
    price = device.street_price_usd or device.list_price_usd
    if not price or device.tier == "cloud_only":
        raise CostError(Note("cost_no_purchase_price", {"device": device.name}))
    each, spread = decimal_of(price), decimal_of(own.price_spread_share)
    kind = "street" if device.street_price_usd else "list"
    low = each * (1 - spread) if device.street_price_usd else each
    bought = _scaled(AmountRange(low, each, each * (1 + spread)), count)
    lines = [_line("devices", bought, _CATALOGUE, {"price": kind, "date": device.price_date or ""})]
    if device.tier != "integrated":
        lines.append(_host(device, count, own))
    return lines


def _host(device: Accelerator, count: int, own: OwnershipPolicy) -> CostLine:
    if device.needs_server_chassis or count > own.devices_per_desktop:
        each = AmountRange(*_three(own.server_host_usd))
        whole = device.form_factor == "SXM"  # a PCIe card pays its share of a server that holds others
        share = Decimal(ceil(count / own.devices_per_server)) if whole else Decimal(count) / own.devices_per_server
        return _line("host", _scaled(each, share), _ASSUMED, {"share": str(share)})
    origin = _POLICY if count == 1 else _ASSUMED  # the sourced host holds one device
    return _line("host", AmountRange(*_three(own.desktop_host_usd)), origin)


def _residual(bought: list[CostLine], months: int, own: OwnershipPolicy) -> AmountRange:
    price = _sum(line.amount for line in bought if line.item != "host")
    low, mid, high = (price.expected * share for share in residual_share(months, own))
    return AmountRange(min(low, mid, price.low), mid, max(mid, min(high, price.low)))


def _capital(price: AmountRange, kept: AmountRange, months: int, own: OwnershipPolicy) -> AmountRange:
    def interest(paid: Decimal, left: Decimal, per_year: Decimal) -> Decimal:
        rate = monthly_rate(per_year)
        return max(annuity(paid - left / (1 + rate) ** months, rate, months) * months - (paid - left), _ZERO)

    low, mid, high = _three(own.cost_of_capital)
    return AmountRange(
        interest(price.low, kept.high, low),
        interest(price.expected, kept.expected, mid),
        interest(price.high, kept.low, high),
    )


def _energy(
    device: Accelerator, count: int, hours: Decimal, wants: OwnershipWants, facts: OwnershipFacts, policy: Policy
) -> tuple[CostLine, Decimal, tuple[Note, ...]]:
    """The energy line, the committed kW at full load, and what was assumed of the price."""
    own = policy.ownership
    if not device.tdp_w:
        raise CostError(Note("cost_no_power", {"device": device.name}))
    watts, efficiency = decimal_of(device.tdp_w), decimal_of(own.psu_efficiency)
    server = device.needs_server_chassis or count > own.devices_per_desktop
    hosts = ceil(count / own.devices_per_server) if server else 1
    full = own.server_host_watts if server else own.desktop_host_watts
    per_host: tuple[Decimal, ...] = (_ZERO,) * 3 if device.tier == "integrated" else _three(full)
    if server and count < own.devices_per_server:  # the published host serves eight devices
        per_host = tuple(w * count / own.devices_per_server for w in per_host)
    shares = (
        _three(own.power_training if wants.training else own.power_serving) if server else _three(own.power_desktop)
    )
    kw = [
        (count * watts * share + hosts * host) / efficiency / 1000 for share, host in zip(shares, per_host, strict=True)
    ]
    prices, line_origin, params, notes = _kwh(wants, facts)
    pue = decimal_of({"office": own.pue_office, "server_room": own.pue_server_room, "colocation": 0.0}[wants.place])
    low, mid, high = (hours * power * price * pue for power, price in zip(kw, prices, strict=True))
    committed = (count * watts + hosts * per_host[2]) / efficiency / 1000
    line = _line("energy", AmountRange(low, mid, high), line_origin, {**params, "kw": f"{kw[1]:.3f}", "pue": str(pue)})
    return line, committed, notes


def _kwh(
    wants: OwnershipWants, facts: OwnershipFacts
) -> tuple[tuple[Decimal, ...], str, dict[str, str], tuple[Note, ...]]:
    if wants.usd_per_kwh is not None:
        return (_not_negative(wants.usd_per_kwh),) * 3, "stated", {}, ()
    buyer = "household" if wants.household else "business"
    found = facts.electricity(buyer, wants.country)
    if found is None:
        fallback = facts.electricity(buyer, None)
        if fallback is None:
            raise CostError(Note("cost_no_electricity_price", {"country": wants.country or "US"}))
        note = Note("cost_electricity_of_another_country", {"country": wants.country or "", "used": fallback.region})
        return _prices(fallback, _ZERO), _ASSUMED, _from(fallback), (note,)
    vat = _ZERO
    notes: tuple[Note, ...] = ()
    if wants.household and found.region != "US":  # household prices of Europe contain tax
        rate = facts.find("vat_standard", region=wants.country)
        vat = rate.typical if rate is not None and rate.typical is not None else _ZERO
        notes = (Note("cost_electricity_net_of_vat" if vat else "cost_electricity_with_vat"),)
    return _prices(found, vat), _CATALOGUE, _from(found), notes


def _prices(fact: OwnershipFact, vat: Decimal) -> tuple[Decimal, ...]:
    known = _of(fact)
    return tuple(value / (1 + vat) for value in (known.low, known.expected, known.high))


def _space(committed_kw: Decimal, wants: OwnershipWants, own: OwnershipPolicy) -> list[CostLine]:
    if wants.place != "colocation":
        return []
    rate = AmountRange(*_three(own.colocation_usd_per_kw_month))
    return [_line("colocation", _scaled(rate, committed_kw), _POLICY, {"kw": f"{committed_kw:.3f}"})]


def _upkeep(price: AmountRange, own: OwnershipPolicy) -> CostLine:
    low, mid, high = _three(own.maintenance_share_per_year)
    paid = AmountRange(price.low * low / 12, price.expected * mid / 12, price.high * high / 12)
    return _line("maintenance", paid, _ASSUMED)


def _line(item: str, amount: AmountRange, origin: str, params: Mapping[str, str] = _NO_PARAMS) -> CostLine:
    return CostLine(item=item, amount=amount, origin=origin, params=params)


def _of(fact: OwnershipFact) -> AmountRange:
    mid = fact.typical if fact.typical is not None else _ZERO
    return AmountRange(fact.low if fact.low is not None else mid, mid, fact.high if fact.high is not None else mid)


def _from(fact: OwnershipFact) -> dict[str, str]:
    return {"region": fact.region, "date": fact.as_of, "source": fact.source}


def _three(values: tuple[float, ...]) -> tuple[Decimal, Decimal, Decimal]:
    low, mid, high = values
    return decimal_of(low), decimal_of(mid), decimal_of(high)


def _exactly(value: Decimal) -> AmountRange:
    return AmountRange(value, value, value)


def _scaled(amount: AmountRange, times: int | Decimal) -> AmountRange:
    return AmountRange(amount.low * times, amount.expected * times, amount.high * times)


def _sum(amounts: Iterable[AmountRange]) -> AmountRange:
    low = mid = high = _ZERO
    for amount in amounts:
        low, mid, high = low + amount.low, mid + amount.expected, high + amount.high
    return AmountRange(low, mid, high)


def _not_negative(value: Decimal) -> Decimal:
    if not (value.is_finite() and value >= 0):
        raise CostError(Note("cost_amount_invalid", {"amount": str(value)}))
    return value
