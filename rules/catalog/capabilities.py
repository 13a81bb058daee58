"""What a device can do for a workload's number formats and kernels, and what an office allows.

`assess` is pure and cheap: it looks the architecture up in `data/capabilities.toml` and returns findings. "exclude"
means that the option cannot run or cannot stand there, "rewrite" that it runs in another way than asked (and the
finding says how), "warn" that it runs with something to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, Literal

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.names import DATA
from rules.records import dataclass

Verdict = Literal["exclude", "rewrite", "warn"]
Support = Literal["native", "weights", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """Features that a workload asks of a device; None or False = not asked.

    `office` asks whether `count` devices may stand in an office on one circuit of `circuit_watts` (continuous watts,
    of which `host_watts` go to the rest of the machine).
    """

    compute_dtype: str | None = None
    weights_format: str | None = None
    flash_attention: bool = False
    training: bool = False
    fast_links: bool = False
    count: int = 1
    office: bool = False
    circuit_watts: float | None = None
    host_watts: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about a device: `message` is a message id that `params` fill, `requirement` the need it serves."""

    message: str
    verdict: Verdict
    params: Mapping[str, str | float | int] = field(default_factory=dict)
    requirement: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Features of one architecture; `flash` is the newest FlashAttention generation (0 = none)."""

    name: str
    fp16: Support = "native"
    bf16: Support = "native"
    fp8: Support = "no"
    fp4: Support = "no"
    int8: Support = "native"
    flash: int = 2
    min_cuda: str | None = None
    min_torch: str | None = None
    last_cuda: str | None = None
    runs_current_torch: bool = True


@cache
def _tables() -> Mapping[str, Any]:
    import tomli

    return tomli.loads((DATA / "capabilities.toml").read_text(encoding="utf-8"))


@cache
def _by_architecture() -> Mapping[tuple[str, str], Capability]:
    found: dict[tuple[str, str], Capability] = {}
    for row in _tables()["architecture"]:
        plain = {k: v for k, v in row.items() if k not in ("vendor", "compute")}
        for compute in row.get("compute", [""]):
            found[(row["vendor"], compute)] = Capability(**plain)
    return found


def capability_of(device: Accelerator) -> Capability:
    """The features of a device's architecture; an unknown NVIDIA chip is taken as the newest one below it."""
    table = _by_architecture()
    found = table.get((device.vendor, device.compute_capability)) or table.get((device.vendor, ""))
    if found is not None:
        return found
    if device.vendor == "nvidia" and (number := _number(device.compute_capability)) is not None:
        below = [(float(c), cap) for (vendor, c), cap in table.items() if vendor == "nvidia" and float(c) <= number]
        if below:
            return max(below, key=lambda pair: pair[0])[1]
    return Capability(name=device.architecture or device.vendor)


def assess(device: Accelerator, wants: Wants) -> tuple[Finding, ...]:
    """Findings about one device for what is wanted, the excluding ones first."""
    capability = capability_of(device)
    findings = [
        *_toolkit(device, capability, wants),
        *_compute(device, capability, wants),
        *_weights(device, capability, wants),
        *_attention(device, capability, wants),
        *_place(device, wants),
    ]
    return tuple(sorted(findings, key=lambda f: ("exclude", "rewrite", "warn").index(f.verdict)))


def _toolkit(device: Accelerator, capability: Capability, wants: Wants) -> list[Finding]:
    found = []
    if not capability.runs_current_torch and not _is_gguf(wants.weights_format):
        found.append(Finding("capability_dropped", "exclude", _params(device, last_cuda=capability.last_cuda or "")))
    elif capability.last_cuda:
        found.append(Finding("capability_old_toolkit", "warn", _params(device, last_cuda=capability.last_cuda)))
    elif capability.min_cuda and float(capability.min_cuda) >= 12.8:
        params = _params(device, min_cuda=capability.min_cuda, min_torch=capability.min_torch or "")
        found.append(Finding("capability_new_toolkit", "warn", params))
    stack = _tables()["stack"].get(device.vendor)
    if wants.training and stack and not stack["trains_unchanged"]:
        found.append(Finding("capability_training_stack", "warn", _params(device, stack=stack["name"])))
    return found


def _compute(device: Accelerator, capability: Capability, wants: Wants) -> list[Finding]:
    dtype = (wants.compute_dtype or "").lower()
    if dtype in ("bf16", "bfloat16") and capability.bf16 != "native":
        other = "fp16" if capability.fp16 == "native" else "fp32"
        message = "capability_bf16_training" if wants.training else "capability_bf16"
        return [Finding(message, "rewrite", _params(device, instead=other), "T1")]
    if dtype in ("fp16", "float16") and capability.fp16 != "native":
        return [Finding("capability_fp16_slow", "warn", _params(device))]
    if dtype.startswith("fp8") and capability.fp8 != "native":
        return [Finding("capability_fp8_compute", "exclude", _params(device), "T1")]
    return []


def _weights(device: Accelerator, capability: Capability, wants: Wants) -> list[Finding]:
    rule = _format_row(wants.weights_format or "")
    if rule is None:
        return []
    params = _params(device, format=wants.weights_format or "")
    vendors = rule.get("vendors")
    if vendors and device.vendor not in vendors:
        return [Finding("capability_format_no_kernel", "exclude", params)]
    compute = _number(device.compute_capability) if device.vendor == "nvidia" else None
    if compute is not None and compute < rule.get("min_compute", 0.0):
        return [Finding("capability_format_too_old", "exclude", params)]
    support = getattr(capability, rule["feature"]) if "feature" in rule else "native"
    if support == "no":
        return [Finding("capability_format_too_old", "exclude", params)]
    if support == "weights":
        return [Finding("capability_format_weights_only", "rewrite", params, "T1")]
    return []


def _format_row(name: str) -> Mapping[str, Any] | None:
    row: Mapping[str, Any] | None = _tables()["format"].get(name.lower().partition(":")[0].partition("-")[0])
    return row


def formats_instead(weights_format: str) -> tuple[str, ...]:
    """Formats of about as many bits to take where this one has no kernels, in order; files of 4 bits for the rest."""
    row = _format_row(weights_format)
    return tuple(row.get("instead", ())) if row is not None else ("gguf:Q4_K_M",)


def _attention(device: Accelerator, capability: Capability, wants: Wants) -> list[Finding]:
    if not wants.flash_attention or capability.flash >= 2:
        return []
    if capability.flash == 1:
        return [Finding("capability_flash_1_only", "rewrite", _params(device))]
    return [Finding("capability_no_flash", "rewrite", _params(device))]


def _place(device: Accelerator, wants: Wants) -> list[Finding]:
    found = []
    if wants.fast_links and wants.count > 1 and not device.nvlink_gb_s:
        found.append(Finding("capability_no_nvlink", "warn", _params(device, count=wants.count), "T3"))
    if not wants.office:
        return found
    if device.tier == "cloud_only":
        found.append(Finding("capability_cloud_only", "exclude", _params(device), "T5"))
    elif device.needs_server_chassis:
        found.append(Finding("capability_needs_rack", "exclude", _params(device), "T5"))
    if wants.circuit_watts and device.tdp_w:
        watts = wants.count * device.tdp_w + wants.host_watts
        if watts > wants.circuit_watts:
            params = _params(device, count=wants.count, watts=round(watts), limit=round(wants.circuit_watts))
            found.append(Finding("capability_circuit_power", "exclude", params, "T5"))
    return found


def assess_cpu(cpu: Cpu, wants: Wants) -> tuple[Finding, ...]:
    """Findings about running on this CPU: vector units for the arithmetic, and bf16 where it is asked for."""
    if cpu.vendor not in ("intel", "amd"):
        return ()
    if not cpu.avx2:
        return (Finding("cpu_no_avx2", "exclude", {"cpu": cpu.name}, "I9"),)
    found = []
    if not cpu.avx512:
        found.append(Finding("cpu_no_avx512", "warn", {"cpu": cpu.name}, "I9"))
    if (wants.compute_dtype or "").lower() in ("bf16", "bfloat16") and not cpu.bf16:
        found.append(Finding("cpu_no_bf16", "rewrite", {"cpu": cpu.name, "instead": "fp32"}, "I9"))
    return tuple(found)


def _is_gguf(fmt: str | None) -> bool:
    return bool(fmt) and str(fmt).lower().startswith(("gguf", "ggml"))


def _params(device: Accelerator, **more: str | float | int) -> dict[str, str | float | int]:
    return {"device": device.name, **more}


def _number(compute: str) -> float | None:
    try:
        return float(compute)
    except ValueError:
        return None
