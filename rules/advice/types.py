"""What the advice is made of: verdict, memory plan, options, levers, limits and the trace of rules that fired.

All text is message ids with parameters (`Note`); memory is GiB (2**30 bytes) per device unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from rules.cost.types import BreakEven, Cost, OwnershipCost, RentalQuote
from rules.memory.footprint import Note, Param
from rules.records import dataclass
from rules.speed.types import Speed
from rules.workload import Workload

RULES_VERSION = "2026.11"

Outcome = Literal["fits", "tight", "oom", "cpu", "unknown"]


@dataclass(frozen=True, slots=True)
class GibRange:
    """Low, expected and high GiB."""

    low_gib: float
    expected_gib: float
    high_gib: float


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One line of the breakdown at the peak."""

    part: str
    gib: float
    why: str
    params: Mapping[str, Param] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of one device: the parts at the peak, each phase's peak, and the three figures that people read."""

    device: str | None
    devices: int
    parallelism: Note
    phase: str
    parts: tuple[PlanPart, ...]
    phases_gib: Mapping[str, float]
    allocated: GibRange
    reserved: GibRange
    shown_by_nvidia_smi: GibRange
    usable_gib: float | None
    kv_cache_tokens: float | None = None
    host_gib: float = 0.0


Limit = Literal["memory", "ttft", "tpot", "latency", "throughput", "scheduler"]


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """A server at one number of sequences in flight: tokens a second of all, seconds between and before tokens."""

    concurrency: float
    total_tok_s: float
    tpot_s: float
    ttft_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What one replica carries, and how many replicas the demand takes.

    `sequences` in flight and `requests_s` are the most within the targets, head-room of the policy taken off the rate.
    `sequences` is 0 where even one request misses a target. `meets` says whether the hardware of the option, all
    replicas together, carries what was asked; None where nothing was asked. `share` is the part of it in use then.
    """

    sequences: int
    limited_by: Limit
    requests_s: float
    answer_tok_s: float
    replicas_needed: int | None = None
    meets: bool | None = None
    share: float | None = None
    curve: tuple[LoadPoint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to run it: hardware, plan, whether it fits, how fast and for how much.

    `count` devices hold one copy or run, `replicas` such groups share the traffic. `speed` or `cost` are None where
    a law or a price is not known: no figure is invented. `blocked` is why the hardware cannot run it whatever its
    memory; the outcome is then oom.
    """

    hardware: str
    count: int
    kind: Literal["gpu", "cpu", "own"]
    tier: str
    parallelism: Note
    outcome: Outcome
    need: GibRange
    usable_gib: float
    headroom_gib: float
    reasons: tuple[Note, ...] = ()
    warnings: tuple[Note, ...] = ()
    speed: Speed | None = None
    cost: Cost | None = None
    capacity: Capacity | None = None
    replicas: int = 1
    rule: str = ""
    blocked: Note | None = None

    @property
    def devices(self) -> int:
        """All devices of all replicas."""
        return self.count * self.replicas


@dataclass(frozen=True, slots=True)
class Lever:
    """One change that saves memory on the fullest device. `outcome` is the verdict after it, `price` what it costs."""

    id: str
    saves_gib: float
    outcome: Outcome
    price: Note
    harm: int
    params: Mapping[str, Param] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that fits on the judged hardware, other things equal; None where it does not apply or nothing fits."""

    micro_batch: int | None = None
    context: int | None = None
    sequences: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """How the figure moves if an assumption is changed; `note` says why it is tight where the figure does not."""

    label: Note
    need_gib: float
    outcome: Outcome | None
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class QuickRule:
    """T2's rule of thumb beside the real sum; `why` says why they differ."""

    gib: float
    real_gib: float
    why: Note


@dataclass(frozen=True, slots=True)
class Assumption:
    """A field that was not said, the value taken and the reason's message id."""

    field: str
    value: Param | bool
    reason: str


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that fired: its id, the requirement it serves and the figures that made it fire."""

    rule: str
    requirement: str
    figures: Mapping[str, Param]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a figure rests on: a law with its share of error, or a published case near the question."""

    kind: Literal["law", "case", "measurement"]
    text: Note


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """The model as understood."""

    name: str
    how: str
    params_b: float
    active_params_b: float
    note: Note | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Hardware that a team's own constraint keeps out; `certain` is False where a fact that it needs is not known."""

    hardware: str
    count: int
    constraint: str
    reason: str
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RentOrBuy:
    """Renting against owning for the same work (T8). Hours are a week; owned hours differ where the card is faster.

    Rates are work a second of all devices (tokens, samples), None where no law gives them.
    """

    verdict: Note
    rent: RentalQuote
    own: OwnershipCost
    break_even: BreakEven
    rented_hours_per_week: float
    owned_hours_per_week: float
    hours_origin: Literal["stated", "assumed"]
    rented_rate: float | None = None
    owned_rate: float | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The whole answer. `verdict` is the one line to act on; everything else is its working.

    `headlines` has the line for a question of another kind: `time`, `capacity`, `cost`; and `load`, `binds` beside it.
    """

    outcome: Outcome
    verdict: Note
    because: tuple[PlanPart, ...]
    model: ModelSummary
    workload: Workload
    plan: MemoryPlan | None
    options: tuple[Option, ...] = ()
    levers: tuple[Lever, ...] = ()
    limits: Limits = Limits()
    variants: tuple[Variant, ...] = ()
    quick_rule: QuickRule | None = None
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[Note, ...] = ()
    fired: tuple[Fired, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    capacity: Capacity | None = None
    speed: Speed | None = None
    rent_or_buy: RentOrBuy | None = None
    headlines: Mapping[str, Note] = field(default_factory=dict)
    excluded: tuple[Excluded, ...] = ()
    price_warning: Note | None = None
    catalogue_date: str = ""
    rules_version: str = RULES_VERSION
