"""A purchase study: measure before buying, then compare renting and owning with the measured figures."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Literal

from rules.cost.break_even import break_even
from rules.cost.types import BreakEven, OwnershipCost
from rules.policy import Policy
from rules.records import dataclass
from rules.units import HOURS_PER_WEEK

STUDY_DAYS = 14  # two whole weeks: work has a weekly rhythm
State = Literal["planned", "measuring", "ready"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMeasurement:
    """One day on one machine: useful busy hours, and tokens a second where that was measured.

    `side` is which machine of the comparison it was taken on.
    """

    day: date
    machine: str
    side: Literal["rented", "owned"]
    busy_hours: float
    tokens_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseStudy:
    """What is compared and what must be measured first: at least `days` days of hours, and the rented speed.

    `assumed_*` serve until they are measured. The owned machine's speed is measured where the team can try one.
    """

    id: str
    owned: OwnershipCost
    rent_usd_per_hour: Decimal
    assumed_hours_per_week: float
    assumed_rented_tokens_s: float
    assumed_owned_tokens_s: float
    days: int = STUDY_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """The comparison with what is known so far; `missing` names what is still to be measured, `measured` what was."""

    state: State
    days_measured: int
    hours_per_week: float
    rented_tokens_s: float
    owned_tokens_s: float
    measured: tuple[str, ...]
    missing: tuple[str, ...]
    break_even: BreakEven


def recompute(study: PurchaseStudy, measurements: Sequence[StudyMeasurement], policy: Policy) -> StudyResult:
    """The advice with every measurement that has arrived; raises `CostError` where the figures allow no comparison.

    Hours a week are the mean over the measured days of the rented machines together, at most a full week; a speed is
    the median of its measurements. Without a busy hour measured the assumed hours stand.
    """
    rented = [m for m in measurements if m.side == "rented"]
    days = {m.day for m in rented}
    hours = sum(max(m.busy_hours, 0.0) for m in rented)
    rented_speed, owned_speed = _speed(measurements, "rented"), _speed(measurements, "owned")
    enough = len(days) >= study.days
    per_week = min(hours / len(days) * 7, HOURS_PER_WEEK) if hours > 0 else study.assumed_hours_per_week
    known = {"hours": enough, "rented_tokens_s": rented_speed is not None, "owned_tokens_s": owned_speed is not None}
    needed = ("hours", "rented_tokens_s")
    missing = tuple(name for name in needed if not known[name])
    state: State = "planned" if not measurements else "measuring" if missing else "ready"
    first, second = rented_speed or study.assumed_rented_tokens_s, owned_speed or study.assumed_owned_tokens_s
    return StudyResult(
        state=state,
        days_measured=len(days),
        hours_per_week=per_week,
        rented_tokens_s=first,
        owned_tokens_s=second,
        measured=tuple(name for name, is_known in known.items() if is_known),
        missing=missing,
        break_even=break_even(study.owned, study.rent_usd_per_hour, per_week, second / first, policy),
    )


def _speed(measurements: Sequence[StudyMeasurement], side: str) -> float | None:
    found = [m.tokens_s for m in measurements if m.side == side and m.tokens_s is not None and m.tokens_s > 0]
    return median(found) if found else None
