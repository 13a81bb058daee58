"""The memory plan as people see it: GiB, largest part first, the three figures side by side."""

from __future__ import annotations

from dataclasses import replace

from rules.advice.judge import Judged
from rules.advice.placement import SINGLE
from rules.advice.types import GibRange, MemoryPlan, PlanPart
from rules.memory.footprint import Footprint, Note, Range
from rules.units import to_gib


def gib_range(need: Range) -> GibRange:
    """Bytes to GiB, end by end."""
    return GibRange(to_gib(need.low), to_gib(need.expected), to_gib(need.high))


def plan_of(judged: Judged) -> MemoryPlan:
    """The plan of a placement that was judged on its device."""
    hardware = judged.placed.workload.hardware[0]
    usable_gib = to_gib(judged.fit.usable_bytes)
    return _plan(judged.footprint, hardware.name, hardware.count, judged.placed.plan, usable_gib)


def cpu_plan(need: Footprint, cpu_name: str) -> MemoryPlan:
    """The plan on a CPU host, whose memory is the host's: engines that run there leave the device empty."""
    host = Range(need.cpu_bytes, need.cpu_bytes, need.cpu_bytes)
    return _plan(replace(need, device=max(need.device, host, key=_expected)), cpu_name, 1, SINGLE, None)


def _expected(need: Range) -> float:
    return need.expected


def _plan(need: Footprint, device: str, devices: int, parallelism: Note, usable_gib: float | None) -> MemoryPlan:
    return MemoryPlan(
        device=device,
        devices=devices,
        parallelism=parallelism,
        phase=need.phase,
        parts=parts_of(need),
        phases_gib={name: to_gib(value) for name, value in need.phases.items()},
        allocated=gib_range(need.allocated),
        reserved=gib_range(need.reserved),
        shown_by_nvidia_smi=gib_range(need.device),
        usable_gib=usable_gib,
        kv_cache_tokens=need.kv_cache_tokens,
        host_gib=to_gib(need.cpu_bytes),
    )


def parts_of(need: Footprint) -> tuple[PlanPart, ...]:
    """The parts at the peak, largest first."""
    parts = (PlanPart(p.name, to_gib(p.bytes), p.why, p.params) for p in need.parts if p.bytes > 0)
    return tuple(sorted(parts, key=lambda part: -part.gib))
