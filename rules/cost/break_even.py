"""When owning pays back against renting, for equal work.

With K = price - discounted residual of the life's end, s = rent a month - own running cost a month and i the monthly
cost of capital, s x (1 - (1 + i)^-m) / i = K gives the months m (discounted payback). At the end of the life the same
equation, solved for the hours, gives the break-even hours.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from rules.cost.currency import decimal_of
from rules.cost.ownership import annuity, monthly_rate
from rules.cost.types import BreakEven, CostLine, CurvePoint, OwnershipCost
from rules.cost.unit_prices import equal_work_hours, hours_per_month, positive
from rules.memory.footprint import Note
from rules.policy import Policy
from rules.records import dataclass
from rules.units import HOURS_PER_WEEK

_ZERO, _ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The bare figures of one comparison: USD, rented hours a month, months, and the cost of capital a month.

    `speed_ratio` is the owned machine's speed over the rented one's.
    """

    rent_usd_per_hour: Decimal
    rent_hours: Decimal
    speed_ratio: Decimal
    price: Decimal
    residual: Decimal
    fixed_per_month: Decimal
    energy_per_hour: Decimal
    rate: Decimal
    life_months: int

    @property
    def rent(self) -> Decimal:
        """Rent a month."""
        return self.rent_usd_per_hour * self.rent_hours

    @property
    def own_running(self) -> Decimal:
        """Own running cost a month, without capital."""
        return self.fixed_per_month + self.energy_per_hour * equal_work_hours(self.rent_hours, self.speed_ratio)

    @property
    def tied_up(self) -> Decimal:
        """Price less the residual value, discounted from the end of the life."""
        return self.price - self.residual / (1 + self.rate) ** self.life_months

    @property
    def own(self) -> Decimal:
        """Own cost a month with the capital spread over the life."""
        return annuity(self.tied_up, self.rate, self.life_months) + self.own_running

    def paid_back_after(self) -> Decimal | None:
        """Months until owning has cost no more than renting; None where it never does."""
        saving, tied_up, rate = self.rent - self.own_running, self.tied_up, self.rate
        if tied_up <= 0:
            return _ZERO if saving >= 0 else None
        if saving <= 0:
            return None
        if not rate:
            return tied_up / saving
        share = rate * tied_up / saving
        return -(1 - share).ln() / (1 + rate).ln() if share < 1 else None

    def hours_that_pay(self, most_own_hours: Decimal) -> Decimal | None:
        """Rented hours a month from which owning is cheaper over the life; None beyond what the machine can work."""
        gain = self.rent_usd_per_hour - self.energy_per_hour / self.speed_ratio
        if gain <= 0:
            return None
        hours = (annuity(self.tied_up, self.rate, self.life_months) + self.fixed_per_month) / gain
        hours = max(hours, _ZERO)
        return hours if hours / self.speed_ratio <= most_own_hours else None

    def until(self, month: int) -> tuple[Decimal, Decimal]:
        """Rent and own cost up to a month, in money of the first day."""
        factor = (1 - (1 + self.rate) ** -month) / self.rate if self.rate else Decimal(month)
        return self.rent * factor, self.tied_up + self.own_running * factor


def break_even(
    owned: OwnershipCost, rent_usd_per_hour: Decimal, hours_per_week: float, speed_ratio: float, policy: Policy
) -> BreakEven:
    """Owning against a rented machine that does the work in `hours_per_week`.

    `rent_usd_per_hour` is per useful hour (see `effective_hourly`). Raises `CostError` for inputs that are not above
    zero. Where the owned machine is too slow for the work, renting is cheaper and a note says why.
    """
    month = decimal_of(policy.rental.hours_per_month)
    case = _comparison(owned, positive("rent", rent_usd_per_hour), hours_per_week, speed_ratio, policy)
    most_hours = case.hours_that_pay(month)
    own_hours = equal_work_hours(case.rent_hours, case.speed_ratio)
    too_slow = own_hours > month
    months = None if too_slow else case.paid_back_after()
    gap = case.own - case.rent
    cheaper = "rent" if too_slow or gap > 0 else "own" if gap < 0 else "equal"
    notes = (Note("cost_own_machine_too_slow", {"hours": float(round(own_hours))}),) if too_slow else ()
    return BreakEven(
        rent_usd_per_month=case.rent,
        own_usd_per_month=case.own,
        months=months if months is not None and months <= case.life_months else None,
        hours_per_week=most_hours * HOURS_PER_WEEK / month if most_hours is not None else None,
        cheaper=cheaper,  # type: ignore[arg-type]
        horizon_months=case.life_months,
        sensitivity=_tornado(case, owned, policy),
        months_at_any_length=months,
        curve=_curve(case, owned, policy),
        notes=notes,
    )


def _comparison(
    owned: OwnershipCost, rent: Decimal, hours_per_week: float, speed_ratio: float, policy: Policy
) -> Comparison:
    energy = _line(owned, "energy")
    running = owned.per_month.expected - (energy.amount.expected if energy else _ZERO)
    return Comparison(
        rent_usd_per_hour=rent,
        rent_hours=hours_per_month(hours_per_week, policy.rental),
        speed_ratio=positive("speed_ratio", speed_ratio),
        price=owned.purchase_price.expected,
        residual=owned.residual_value.expected,
        fixed_per_month=running,
        energy_per_hour=owned.energy_usd_per_hour,
        rate=monthly_rate(decimal_of(policy.ownership.cost_of_capital[1])),
        life_months=owned.months,
    )


def _tornado(
    case: Comparison, owned: OwnershipCost, policy: Policy
) -> tuple[tuple[str, Decimal | None, Decimal | None], ...]:
    """Own less rent a month with one input at its low and its high end, widest first."""
    cloud = decimal_of(policy.ownership.cloud_price_change_share)
    use = decimal_of(policy.ownership.hours_change_share)
    ends: dict[str, tuple[Comparison, Comparison]] = {
        "hours": (_hours(case, 1 - use), _hours(case, 1 + use)),
        "cloud_price": (_rent(case, 1 - cloud), _rent(case, 1 + cloud)),
        "residual_value": (
            replace(case, residual=owned.residual_value.low),
            replace(case, residual=owned.residual_value.high),
        ),
        "purchase_price": (
            replace(case, price=owned.purchase_price.low),
            replace(case, price=owned.purchase_price.high),
        ),
    }
    energy = _line(owned, "energy")
    if energy is not None and energy.amount.expected:
        each = case.energy_per_hour / energy.amount.expected
        ends["electricity"] = (
            replace(case, energy_per_hour=each * energy.amount.low),
            replace(case, energy_per_hour=each * energy.amount.high),
        )
    found = [(name, low.own - low.rent, high.own - high.rent) for name, (low, high) in ends.items()]
    found.sort(key=lambda item: -abs(item[2] - item[1]))
    return tuple(found)


def _hours(case: Comparison, times: Decimal) -> Comparison:
    return replace(case, rent_hours=case.rent_hours * times)


def _rent(case: Comparison, times: Decimal) -> Comparison:
    return replace(case, rent_usd_per_hour=case.rent_usd_per_hour * times)


def _curve(case: Comparison, owned: OwnershipCost, policy: Policy) -> tuple[CurvePoint, ...]:
    """A point every three months; the bands are the residual's range for owning and the price's change for renting."""
    cloud = decimal_of(policy.ownership.cloud_price_change_share)
    best, worst = (replace(case, residual=end) for end in (owned.residual_value.high, owned.residual_value.low))
    points = []
    for month in range(0, case.life_months + 1, 3):
        rent, own = case.until(month)
        points.append(
            CurvePoint(
                month=month,
                rent=rent,
                rent_low=rent * (_ONE - cloud),
                rent_high=rent * (_ONE + cloud),
                own=own,
                own_low=best.until(month)[1],
                own_high=worst.until(month)[1],
            )
        )
    return tuple(points)


def _line(owned: OwnershipCost, item: str) -> CostLine | None:
    return next((line for line in owned.lines if line.item == item), None)
