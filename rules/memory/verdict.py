"""Does it fit: the need of a footprint against what a program can use of the device.

Two questions, one comparison in bytes. A program that allocates what it needs (training, llama.cpp, transformers)
fails when its live tensors, the fragments between them and its context exceed the card: a caching allocator gives its
cache back before it fails, so only a share of what it reserves counts. An engine with a fixed pool (vLLM, SGLang)
refuses to start when the pool that its part of the card leaves cannot hold one sequence of the longest length asked;
its need is the card less what the pool has to spare.
"""

from __future__ import annotations

from typing import Literal

from rules.catalog.accelerators import Accelerator
from rules.memory.footprint import Footprint, Range
from rules.memory.usable import usable_bytes
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import TrainingWorkload, Workload

Outcome = Literal["fits", "tight", "oom"]


@dataclass(frozen=True, slots=True)
class Fit:
    """The verdict on the fullest device. `reasons` are message ids, the deciding one first.

    `headroom_bytes` is usable memory less the expected need: negative where it does not fit.
    """

    outcome: Outcome
    need: Range
    usable_bytes: float
    headroom_bytes: float
    reasons: tuple[str, ...]


def verdict(workload: Workload, footprint: Footprint, device: Accelerator, n_devices: int, policy: Policy) -> Fit:
    """Judges `footprint` on `n_devices` of `device`; the memory that the workload states for its hardware wins.

    fits: the expected need and a share of the doubt above it stay below `tight_above_share` of usable memory.
    oom: the expected need less a share of the doubt below it is above `fails_above_share`. tight: between the two.
    """
    usable = usable_for(workload, device, n_devices, policy)
    pooled = "kv_needed" in footprint.components
    # A forward pass alone leaves no fragments that matter: its scratch is freed before the next one.
    fragments = policy.fit.fragments_share_of_cache if isinstance(workload, TrainingWorkload) else 0.0
    need = _pool_need(footprint, usable) if pooled else _need(footprint, fragments)
    hopeful = need.expected - policy.fit.doubt_below_share * (need.expected - need.low)
    careful = need.expected + policy.fit.doubt_share * (need.high - need.expected)
    if hopeful > policy.fit.fails_above_share * usable:
        outcome: Outcome = "oom"
        reason = "fit_pool_holds_no_sequence" if pooled else "fit_need_above_usable"
    elif careful > policy.fit.tight_above_share * usable:
        outcome, reason = "tight", "fit_near_the_limit"
    else:
        outcome, reason = "fits", "fit_below_the_limit"
    return Fit(outcome, need, usable, usable - need.expected, (reason,))


def usable_for(workload: Workload, device: Accelerator, n_devices: int, policy: Policy) -> float:
    """Bytes that a program can use of one device, of the variant that the workload states.

    A lone consumer card is taken to drive the display; with several, the others do the work.
    """
    stated = next((hardware for hardware in workload.hardware if hardware.memory_gib), None)
    desktop = policy.memory.desktop_reserve_gib if n_devices == 1 else 0.0
    return usable_bytes(
        device,
        stated.memory_gib if stated else None,
        stated.name if stated else None,
        desktop_reserve_gib=desktop,
    )


def _need(footprint: Footprint, fragments: float) -> Range:
    outside = max(0.0, footprint.device.expected - footprint.reserved.expected)
    live, cached = footprint.allocated, footprint.reserved
    # Scratch memory that a run takes where it is free and does without where it is not.
    needed = live.expected - footprint.components.get("gives_way", 0.0)
    return Range(
        live.low + outside,
        needed + fragments * max(0.0, cached.expected - live.expected) + outside,
        max(live.high, cached.high) + outside,
    )


def _pool_need(footprint: Footprint, usable: float) -> Range:
    devices = footprint.components.get("devices", 1.0)
    spare = (footprint.components["kv"] - footprint.components["kv_least"]) / devices
    fixed = footprint.allocated
    return Range(
        usable - spare - max(0.0, fixed.expected - fixed.low),
        usable - spare,
        usable - spare + max(0.0, fixed.high - fixed.expected),
    )
