"""The policy: every threshold of the advice, read from `policy.toml`, single values overridden by a team's own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any

import tomli

from rules.records import dataclass


class PolicyError(ValueError):
    """A policy file that cannot be used; the text names the section, the key and what is wrong."""


@dataclass(frozen=True, slots=True)
class FitPolicy:
    """Shares of usable memory; `fragments_share_of_cache` is of what an allocator reserves beyond live tensors."""

    doubt_share: float
    doubt_below_share: float
    tight_above_share: float
    fails_above_share: float
    fragments_share_of_cache: float
    recommend_headroom_share: float


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Memory held by others on a device, in GiB."""

    desktop_reserve_gib: float


@dataclass(frozen=True, slots=True)
class QuickRulePolicy:
    """T2's buffer as a share of the weights, and the band of ratios (real sum over rule) that counts as near."""

    buffer_share: float
    near_from_ratio: float
    near_to_ratio: float


@dataclass(frozen=True, slots=True)
class CandidatePolicy:
    """Which devices and counts are considered, how many cards a machine takes, and how many options are shown."""

    device_counts: tuple[int, ...]
    oldest_release_year: int
    vendors: tuple[str, ...]
    not_sold_alone: tuple[str, ...]
    not_unasked: tuple[str, ...]
    reference: str
    options_shown: int
    most_consumer: int
    most_workstation: int
    most_enterprise: int
    fabric_gb_s: float
    most_without_fabric: int


@dataclass(frozen=True, slots=True)
class RankingPolicy:
    """What makes a choice worth showing beside the cheapest."""

    fewer_devices_worth: float
    most_times_the_cheapest: float
    real_gain_ratio: float


@dataclass(frozen=True, slots=True)
class CpuPolicy:
    """Where a CPU is offered (I1, I2); sizes in billions of active parameters."""

    interactive_active_params_b: float
    batch_active_params_b: float
    first_active_params_b: float
    max_concurrency: int
    usable_host_share: float
    reference: str


@dataclass(frozen=True, slots=True)
class DefaultsPolicy:
    """From where the table of defaults calls a model large and the sequences at once a crowd."""

    large_params_b: float
    crowd_from: int


@dataclass(frozen=True, slots=True)
class OfficePolicy:
    """Watts that an office circuit leaves for accelerators: `circuit_watts - host_watts`."""

    circuit_watts: float
    host_watts: float


@dataclass(frozen=True, slots=True)
class ConcurrencyPolicy:
    """How many registered users are active at once, and how many sequences a desktop serves from a file engine."""

    active_share_of_users: float
    file_engine_up_to: int


@dataclass(frozen=True, slots=True)
class TrafficPolicy:
    """How traffic that was told in one form is taken in another; hours are a week."""

    peak_over_mean: float
    prompt_tokens: int
    answer_tokens: int
    serving_hours_per_week: float
    training_hours_per_week: float


@dataclass(frozen=True, slots=True)
class CapacityPolicy:
    """Head-room of a service: shares of what the hardware can do at most that are planned on."""

    serving_share: float
    cpu_share: float
    most_replicas: int


@dataclass(frozen=True, slots=True)
class TeamConstraint:
    """A team's own constraint: `exclude` is an expression that is true for what must not be proposed."""

    id: str
    exclude: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PricePolicy:
    """Age in days past which a price is called old, and what a refresh may bring.

    A fresh price stays between two factors of the one before; a list that confirms less than `refresh_least_share` of
    the known offers of its providers is called partial.
    """

    stale_after_days: int
    spot_stale_after_days: int
    refresh_least_factor: float
    refresh_most_factor: float
    refresh_least_share: float


@dataclass(frozen=True, slots=True)
class RentalPolicy:
    """How rented time is counted; the work that reclaimed spot machines lose is an operator's assumption."""

    hours_per_month: float
    spot_lost_work_share: float
    marketplaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CurrencyPolicy:
    """Exchange rates of one day."""

    as_of: str
    usd_per_eur: float
    usd_per_gbp: float
    mxn_per_usd: float


@dataclass(frozen=True, slots=True)
class OwnershipPolicy:
    """Defaults of owning; three numbers are low, expected and high. Money is USD, power watts, life months.

    `power_*` are shares of a card's board power under load; `residual_year_*` are shares of the purchase price.
    """

    life_months: int
    cost_of_capital: tuple[float, ...]
    residual_year_1: tuple[float, ...]
    residual_year_2: tuple[float, ...]
    residual_year_3: tuple[float, ...]
    residual_year_4: tuple[float, ...]
    price_spread_share: float
    desktop_host_usd: tuple[float, ...]
    server_host_usd: tuple[float, ...]
    devices_per_desktop: int
    devices_per_server: int
    desktop_host_watts: tuple[float, ...]
    server_host_watts: tuple[float, ...]
    psu_efficiency: float
    power_desktop: tuple[float, ...]
    power_training: tuple[float, ...]
    power_serving: tuple[float, ...]
    pue_office: float
    pue_server_room: float
    colocation_usd_per_kw_month: tuple[float, ...]
    maintenance_share_per_year: tuple[float, ...]
    cloud_price_change_share: float
    hours_change_share: float


@dataclass(frozen=True, slots=True)
class Policy:
    """All sections of the policy file."""

    fit: FitPolicy
    memory: MemoryPolicy
    quick_rule: QuickRulePolicy
    candidates: CandidatePolicy
    ranking: RankingPolicy
    cpu: CpuPolicy
    defaults: DefaultsPolicy
    office: OfficePolicy
    concurrency: ConcurrencyPolicy
    prices: PricePolicy
    traffic: TrafficPolicy
    capacity: CapacityPolicy
    rental: RentalPolicy
    currency: CurrencyPolicy
    ownership: OwnershipPolicy
    constraints: tuple[TeamConstraint, ...] = ()


_SECTIONS: dict[str, type] = {
    "fit": FitPolicy,
    "memory": MemoryPolicy,
    "quick_rule": QuickRulePolicy,
    "candidates": CandidatePolicy,
    "ranking": RankingPolicy,
    "cpu": CpuPolicy,
    "defaults": DefaultsPolicy,
    "office": OfficePolicy,
    "concurrency": ConcurrencyPolicy,
    "prices": PricePolicy,
    "traffic": TrafficPolicy,
    "capacity": CapacityPolicy,
    "rental": RentalPolicy,
    "currency": CurrencyPolicy,
    "ownership": OwnershipPolicy,
}
_CONSTRAINTS = "constraint"


_TEXTS = frozenset(("vendors", "not_sold_alone", "not_unasked", "reference", "as_of", "marketplaces"))


@cache
def default_policy() -> Policy:
    """The policy that ships with the product."""
    return policy_from(tomli.loads(resources.files("rules").joinpath("policy.toml").read_text("utf-8")))


def policy_from(data: Mapping[str, Any], base: Policy | None = None) -> Policy:
    """Builds a policy from parsed TOML; keys that `data` lacks come from `base`.

    Raises `PolicyError` for an unknown section or key, a value of the wrong type or a negative number.
    """
    unknown = set(data) - set(_SECTIONS) - {_CONSTRAINTS}
    if unknown:
        raise PolicyError(f"[{sorted(unknown)[0]}] is not a section of the policy")
    sections: dict[str, Any] = {}
    for name, kind in _SECTIONS.items():
        given = data.get(name, {})
        inherited = getattr(base, name) if base else None
        sections[name] = _section(name, kind, given, inherited)
    own = _constraints(data.get(_CONSTRAINTS, []))
    inherited_rules = base.constraints if base else ()
    return Policy(**sections, constraints=(*inherited_rules, *own))


def _constraints(rows: Any) -> tuple[TeamConstraint, ...]:
    if not isinstance(rows, list):
        raise PolicyError("[[constraint]] must be a list of tables")
    found = []
    for row in rows:
        known = isinstance(row, Mapping) and {"id", "exclude"} <= set(row) <= {"id", "exclude", "reason"}
        if not known or not all(isinstance(value, str) and value for value in row.values()):
            raise PolicyError("[[constraint]] needs the texts id and exclude, and may have a reason")
        found.append(TeamConstraint(**row))
    return tuple(found)


def _section(name: str, kind: type, given: Any, inherited: Any) -> Any:
    if not isinstance(given, Mapping):
        raise PolicyError(f"[{name}] must be a table")
    known = {f.name for f in fields(kind)}
    for key in given:
        if key not in known:
            raise PolicyError(f"[{name}] {key} is not a setting; known: {', '.join(sorted(known))}")
    values: dict[str, Any] = {}
    for key in known:
        if key in given:
            values[key] = _checked(name, key, given[key])
        elif inherited is not None:
            values[key] = getattr(inherited, key)
        else:
            raise PolicyError(f"[{name}] {key} is missing")
    return kind(**values)


def _checked(section: str, key: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_checked(section, key, item) for item in value)
    if key in _TEXTS:
        if not isinstance(value, str):
            raise PolicyError(f"[{section}] {key} must be text, not {value!r}")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise PolicyError(f"[{section}] {key} must be a number of at least 0, not {value!r}")
    return value
