"""Candidates over the whole catalogue: per tier the smallest sensible choice that fits, at most a handful shown.

The need hardly depends on the card, so it is computed once per device count on a reference card and compared with
every card's memory in plain numbers; only what is shown is judged exactly. Speed and price will rank further once
their laws exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rules.advice.judge import Judged, judge
from rules.advice.plan_view import gib_range
from rules.advice.tiers import considerations, tier_of
from rules.advice.types import Option
from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Finding, Wants, assess
from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Range
from rules.memory.usable import usable_bytes
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import InferenceWorkload, TrainingWorkload, Workload


@dataclass(frozen=True, slots=True)
class Proposal:
    """An option with what it was judged on."""

    option: Option
    device: Accelerator
    judged: Judged


_TIERS = ("consumer", "workstation", "enterprise")
# Largest sensible number of cards in one machine of a tier.
_MOST_DEVICES = {"consumer": 2, "workstation": 4, "enterprise": 16}
_MOST_UNIFIED = 1
_MAC_ENGINES = ("llama.cpp", "ollama", "mlx")


@dataclass(frozen=True, slots=True)
class _Candidate:
    device: Accelerator
    count: int
    tier: str

    @property
    def total_gb(self) -> float:
        return self.device.memory_gb_marketed * self.count

    @property
    def order(self) -> tuple[float, ...]:
        """Fewer devices, then the smaller card, then the cheaper list price, then the newer card."""
        price = self.device.list_price_usd
        return (
            self.count,
            self.device.memory_gb_marketed,
            price if price is not None else float("inf"),
            -(self.device.release_year or 0),
        )


def recommended(
    workload: Workload,
    model: ModelSpec,
    accelerators: Iterable[Accelerator],
    needs: Mapping[int, Range],
    policy: Policy,
    wants: Wants,
) -> tuple[Proposal, ...]:
    """Proposals of the three tiers, best first in each; `needs` maps a device count to the need on a reference card."""
    on_mac = isinstance(workload, InferenceWorkload) and _engine(workload) in _MAC_ENGINES
    pool = [c for c in _candidates(accelerators, needs, policy, on_mac) if not _excluded(c.device, wants)]
    found: list[Proposal] = []
    for tier in _TIERS:
        ranked = sorted((c for c in pool if c.tier == tier), key=lambda c: c.order)
        found.extend(_of_tier(tier, ranked, workload, model, policy, wants))
    return tuple(found)


def reference_needs(workload: Workload, model: ModelSpec, reference: Accelerator, policy: Policy) -> dict[int, Range]:
    """Need on the fullest of 1, 2, 4… devices of a large reference card; stops where more devices do not help."""
    needs: dict[int, Range] = {}
    for count in policy.candidates.device_counts:
        try:
            replicas = judge(workload, model, reference, count, policy)
            shared = judge(workload, model, reference, count, policy, shard=True) if count > 1 else replicas
        except UnsupportedWorkload:
            break
        needs[count] = min((replicas.demand, shared.demand), key=lambda need: need.expected)
    return needs


def _candidates(
    accelerators: Iterable[Accelerator], needs: Mapping[int, Range], policy: Policy, runs_on_mac: bool
) -> Iterator[_Candidate]:
    keep = policy.fit.tight_above_share - policy.fit.recommend_headroom_share
    for device in accelerators:
        if (device.release_year or 0) < policy.candidates.oldest_release_year or device.form_factor == "laptop":
            continue
        if device.vendor not in policy.candidates.vendors or device.form_factor in policy.candidates.not_sold_alone:
            continue
        if device.name in policy.candidates.not_unasked or (device.vendor == "apple" and not runs_on_mac):
            continue
        tier = tier_of(device)
        most = _MOST_UNIFIED if device.unified_memory else _MOST_DEVICES[tier]
        for count, need in needs.items():
            reserve_gib = policy.memory.desktop_reserve_gib if count == 1 else 0.0
            if count <= most and need.expected <= keep * usable_bytes(device, desktop_reserve_gib=reserve_gib):
                yield _Candidate(device, count, tier)
                break


def _of_tier(
    tier: str, ranked: list[_Candidate], workload: Workload, model: ModelSpec, policy: Policy, wants: Wants
) -> Iterator[Proposal]:
    """The smallest that fits and, where it is another card, the one with the most bandwidth of a like size."""
    first = _first_that_fits(ranked, workload, model, policy)
    if first is None:
        return
    candidate, judged = first
    reason = Note("option_smallest_that_fits", {"tier": tier}, "T5")
    yield proposal(candidate.device, judged, policy, (reason,), wants)
    roomier = [
        c
        for c in ranked
        if c.count <= candidate.count
        and candidate.total_gb < c.total_gb <= 2 * candidate.total_gb
        and c.device.bandwidth_gb_s > candidate.device.bandwidth_gb_s
    ]
    roomier.sort(key=lambda c: -c.device.bandwidth_gb_s)
    second = _first_that_fits(roomier, workload, model, policy)
    if second is not None:
        candidate, judged = second
        reason = Note("option_more_room_and_bandwidth", {"rate_gb_s": candidate.device.bandwidth_gb_s}, "T4")
        yield proposal(candidate.device, judged, policy, (reason,), wants)


def _first_that_fits(
    ranked: list[_Candidate], workload: Workload, model: ModelSpec, policy: Policy
) -> tuple[_Candidate, Judged] | None:
    for candidate in ranked[:8]:
        judged = judge(workload, model, candidate.device, candidate.count, policy)
        if judged.fit.outcome == "fits" and not judged.cache_is_short:
            return candidate, judged
    return None


def proposal(
    device: Accelerator,
    judged: Judged,
    policy: Policy,
    reasons: tuple[Note, ...],
    wants: Wants,
    host: str | None = None,
) -> Proposal:
    """The shown form of a judged placement; `host` names a machine that the team owns."""
    fit, count = judged.fit, judged.placed.workload.hardware[0].count
    shown = Option(
        hardware=f"{host} ({device.name})" if host else device.name,
        count=count,
        kind="own" if host else "gpu",
        tier=tier_of(device),
        parallelism=judged.placed.plan,
        outcome="tight" if judged.fits and judged.cache_is_short else fit.outcome,
        need=gib_range(judged.demand),
        usable_gib=to_gib(fit.usable_bytes),
        headroom_gib=to_gib(fit.usable_bytes - judged.demand.expected),
        reasons=reasons,
        warnings=(
            *judged.placed.notes,
            *considerations(device, count, policy),
            *(_note(found) for found in assess(device, wants)),
        ),
    )
    return Proposal(shown, device, judged)


def owned(
    workload: Workload, model: ModelSpec, catalogue: Catalogue, policy: Policy, wants: Wants
) -> Iterator[Proposal]:
    """The team's own hosts that hold it, on as few of a host's devices as will do."""
    for host in catalogue.owned:
        device = catalogue.find_accelerator(host.gpu)
        for count in (n for n in range(1, host.n_gpus + 1) if host.n_gpus % n == 0):
            judged = judge(workload, model, device, count, policy)
            if judged.fits and not judged.cache_is_short:
                yield proposal(device, judged, policy, (Note("option_owned", {"host": host.host}),), wants, host.host)
                break


def _note(finding: Finding) -> Note:
    return Note(finding.message, finding.params, finding.requirement)


def _engine(workload: InferenceWorkload) -> str:
    return workload.engine.value.lower() if workload.engine else ""


def _excluded(device: Accelerator, wants: Wants) -> bool:
    return any(f.verdict == "exclude" for f in assess(device, wants))


def wants_of(workload: Workload) -> Wants:
    """The hardware features that the workload's number formats and kernels ask for."""
    if isinstance(workload, TrainingWorkload):
        compute = workload.compute_dtype.value if workload.compute_dtype else "bf16"
        attention = workload.attention.value if workload.attention else "flash"
        return Wants(compute_dtype=compute, flash_attention=attention == "flash", training=True)
    fmt = workload.weights_format.value if workload.weights_format else "bf16"
    return Wants(compute_dtype="bf16", weights_format=fmt, flash_attention=False, training=False)
