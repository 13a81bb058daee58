"""CPU as an option: where memory, instruction set and load allow it (I1, I2, I9). No speed is claimed here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.advice.placement import SINGLE
from rules.advice.plan_view import gib_range
from rules.advice.types import Option
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Range
from rules.memory.law import footprint
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import Given, Hardware, InferenceWorkload

# What people run language models in on a CPU, where nothing else is said.
_CPU_FORMAT = "gguf:Q4_K_M"
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


def on_cpu(workload: InferenceWorkload, model: ModelSpec) -> InferenceWorkload:
    """The workload as a CPU would run it: files of llama.cpp for language models, nothing split."""
    changes: dict[str, Any] = {"hardware": (Hardware(name="cpu", count=1),), "tp": None, "pp": None}
    if model.domain == "llm":
        changes["engine"] = Given("llama.cpp", origin="assumed", reason="default_engine_llama_cpp")
        if workload.weights_format is None or workload.weights_format.origin == "assumed":
            changes["weights_format"] = Given(_CPU_FORMAT, origin="assumed", reason="default_format_on_cpu")
    return replace(workload, **changes)


def cpu_footprint(workload: InferenceWorkload, model: ModelSpec) -> Footprint:
    """Host memory of the workload on a CPU."""
    return footprint(on_cpu(workload, model), model, None)


def cpu_option(workload: InferenceWorkload, model: ModelSpec, cpu: Cpu, policy: Policy) -> Option | None:
    """The option on `cpu`, or None where policy or the laws rule it out."""
    if not cpu_allowed(workload, model, policy):
        return None
    try:
        found = cpu_footprint(workload, model)
    except UnsupportedWorkload:
        return None
    need = max(found.device, Range(found.cpu_bytes, found.cpu_bytes, found.cpu_bytes), key=lambda r: r.expected)
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
        parallelism=SINGLE,
        outcome="fits",
        need=gib_range(need),
        usable_gib=usable_gib,
        headroom_gib=usable_gib - to_gib(need.expected),
        reasons=(_memory_note(workload, model, host_gib), cpu_feature_note(cpu)),
    )


def _memory_note(workload: InferenceWorkload, model: ModelSpec, host_gib: int) -> Note:
    fmt = on_cpu(workload, model).weights_format
    if fmt is None or model.domain != "llm":
        return Note("option_cpu_memory", {"host_gib": host_gib}, "I1")
    return Note("option_cpu_memory_format", {"host_gib": host_gib, "format": fmt.value}, "I1")


def cpu_feature_note(cpu: Cpu) -> Note:
    """What the CPU's instruction set means for inference (I9)."""
    if cpu.amx:
        return Note("cpu_has_amx", {"cpu": cpu.name}, "I9")
    if cpu.avx512_bf16 or cpu.avx512_vnni:
        return Note("cpu_has_avx512_fast", {"cpu": cpu.name}, "I9")
    if cpu.avx512:
        return Note("cpu_has_avx512", {"cpu": cpu.name}, "I9")
    return Note("cpu_lacks_avx512", {"cpu": cpu.name}, "I9")
