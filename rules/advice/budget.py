"""A stated budget as ceilings in USD: an hour, a month, or once."""

from __future__ import annotations

from decimal import Decimal

from rules.cost.currency import amount_of, convert
from rules.cost.errors import CostError
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import Money


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The budget in USD by what it is paid for; None = no limit."""

    per_hour: Decimal | None = None
    per_month: Decimal | None = None
    once: Decimal | None = None

    def allows(self, *, usd_per_hour: Decimal | None, once: Decimal | None, hours_per_month: Decimal) -> bool:
        """False where the price is known and above the limit, or of a kind that the budget does not pay for."""
        if usd_per_hour is not None:
            if self.once is not None:
                return False
            if self.per_hour is not None:
                return usd_per_hour <= self.per_hour
            if self.per_month is not None:
                return usd_per_hour * hours_per_month <= self.per_month
            return True
        if self.per_hour is not None or self.per_month is not None:
            return False
        return self.once is None or (once is not None and once <= self.once)


def budget_of(budget: Money | None, policy: Policy) -> Ceiling:
    """The ceiling of a stated budget; none where it is not stated or cannot be read."""
    if budget is None:
        return Ceiling()
    try:
        usd = convert(amount_of(budget), "USD", policy.currency).value
    except CostError:
        return Ceiling()
    if budget.per == "hour":
        return Ceiling(per_hour=usd)
    if budget.per == "month":
        return Ceiling(per_month=usd)
    if budget.per == "year":
        return Ceiling(per_month=usd / 12)
    return Ceiling(once=usd) if budget.per == "once" else Ceiling()
