"""CPU as an option: where memory, instruction set and load allow it (I1, I2, I9). No speed is claimed here."""

from __future__ import annotations

from dataclasses import replace

from rules.advice.plan_view import gib_range
from rules.advice.types import Option
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note
from rules.memory.law import footprint
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import Hardware, InferenceWorkload

# Ordinary host memory sizes in GiB; the option names the smallest that holds the need.
_HOST_SIZES_GIB = (4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1536)


def cpu_allowed(workload: InferenceWorkload, model: ModelSpec, policy: Policy) -> bool:
    """True where policy lets a CPU serve this model at this load."""
    if model.domain == "classical":
        return True
    if model.domain == "diffusion":
        return workload.constraints.cpu_only
    at_once = max(
        workload.concurrency.value if workload.concurrency else 1,
        workload.traffic.concurrency or 0,
    )
    if workload.constraints.cpu_only:
        return True
    active_b = model.params_active / 1e9
    return at_once <= policy.cpu.max_concurrency and active_b <= policy.cpu.interactive_active_params_b


def cpu_footprint(workload: InferenceWorkload, model: ModelSpec) -> Footprint:
    """Host memory of the workload on a CPU."""
    on_cpu = replace(workload, hardware=(Hardware(name="cpu", count=1),), tp=None, pp=None)
    return footprint(on_cpu, model, None)


def cpu_option(workload: InferenceWorkload, model: ModelSpec, cpu: Cpu, policy: Policy) -> Option | None:
    """The option on `cpu`, or None where policy or the laws rule it out."""
    if not cpu_allowed(workload, model, policy):
        return None
    try:
        need = cpu_footprint(workload, model).device
    except UnsupportedWorkload:
        return None
    host_gib = next(
        (size for size in _HOST_SIZES_GIB if to_gib(need.high) <= size * policy.cpu.usable_host_share), None
    )
    if host_gib is None:
        return None
    usable_gib = host_gib * policy.cpu.usable_host_share
    return Option(
        hardware=cpu.name,
        count=1,
        kind="cpu",
        tier="cpu",
        parallelism="single",
        outcome="fits",
        need=gib_range(need),
        usable_gib=usable_gib,
        headroom_gib=usable_gib - to_gib(need.expected),
        reasons=(Note("option_cpu_memory", {"host_gib": host_gib}, "I1"), cpu_feature_note(cpu)),
    )


def cpu_feature_note(cpu: Cpu) -> Note:
    """What the CPU's instruction set means for inference (I9)."""
    if cpu.amx:
        return Note("cpu_has_amx", {"cpu": cpu.name}, "I9")
    if cpu.avx512_bf16 or cpu.avx512_vnni:
        return Note("cpu_has_avx512_fast", {"cpu": cpu.name}, "I9")
    if cpu.avx512:
        return Note("cpu_has_avx512", {"cpu": cpu.name}, "I9")
    return Note("cpu_lacks_avx512", {"cpu": cpu.name}, "I9")
