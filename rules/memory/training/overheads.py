"""From tensors to what people read: the caching allocator's reserve, the CUDA context, communication buffers.

The few constants are fitted by `scripts/fit_training_memory.py` on published runs and live in `data/training_fit.json`.
Reserved is allocated plus a share of what comes and goes in a step (fragments between blocks of unlike sizes), by
whether states are sharded and whether batches vary in length, plus a share of weights quantised while loading (holes
that the 16-bit originals leave).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.memory.training.phases import Peak
from rules.memory.training.setup import Setup
from rules.records import dataclass
from rules.units import GIB


@dataclass(frozen=True, slots=True)
class Fragments:
    """What the reserve depends on: the kind of run, and bytes that move and bytes quantised at load."""

    kind: str  # fixed | varied | sharded
    moving: float
    quantised: float


@cache
def constants() -> dict[str, Any]:
    """The fitted constants."""
    data: dict[str, Any] = json.loads(
        files("rules.memory.data").joinpath("training_fit.json").read_text(encoding="utf-8")
    )
    return data


def fragments(s: Setup, peak: Peak) -> Fragments:
    """The features of a run that the allocator's reserve is fitted on."""
    kind = "sharded" if s.plan.sharded else "fixed" if s.packed else "varied"
    quantised = peak.parts.get("weights", 0.0) if s.format.prepared_fp32 and s.quant_bytes else 0.0
    return Fragments(kind, max(0.0, peak.total - peak.resting), quantised)


def reserved_bytes(s: Setup, peak: Peak) -> float:
    """What the caching allocator holds at the allocated peak."""
    fit = constants()
    features = fragments(s, peak)
    share = float(fit["moving_share"][features.kind])
    return peak.total + share * features.moving + float(fit["load_share"]) * features.quantised


def device_bytes(s: Setup, device: Accelerator | None, reserved: float) -> float:
    """What nvidia-smi shows: reserved, the CUDA context, and collectives' buffers where devices talk."""
    fit = constants()
    table: dict[str, float] = fit["context_gib"]
    context = table.get(device.architecture, table["default"]) if device else table["default"]
    if s.plan.distributed:
        context += float(fit["collectives_gib"])
    return reserved + float(context) * GIB


def ranges(s: Setup) -> tuple[float, float]:
    """Shares below and above the expected figure that hold most published runs of this kind."""
    table: dict[str, list[float]] = constants()["ranges"]
    low, high = table.get(group(s), table["default"])
    return float(low), float(high)


def group(s: Setup) -> str:
    """The kind of run whose residuals give the range."""
    if s.plan.sharded:
        return "sharded"
    return "full" if s.trained else "quantised" if s.quant_bytes else "adapters"
