"""From tensors to what people read: the caching allocator's reserve, the CUDA context, communication buffers.

The few constants are fitted by `scripts/fit_training_memory.py` on published runs and live in `data/training_fit.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.memory.training.phases import Peak
from rules.memory.training.setup import Setup
from rules.units import GIB


@cache
def constants() -> dict[str, Any]:
    """The fitted constants."""
    data: dict[str, Any] = json.loads(
        files("rules.memory.data").joinpath("training_fit.json").read_text(encoding="utf-8")
    )
    return data


def reserved_bytes(s: Setup, peak: Peak, allocated: float) -> float:
    """What the caching allocator holds: the allocated peak and the fragments between its blocks."""
    shares = constants()["reserved"]
    moving = allocated - peak.resting
    share = shares["sharded"] if s.plan.sharded else shares["single"]
    return allocated + share * moving


def device_bytes(s: Setup, device: Accelerator | None, reserved: float) -> float:
    """What nvidia-smi shows: reserved, the CUDA context, and collectives' buffers where devices talk."""
    fit = constants()
    context = fit["context_gib"] * GIB
    if s.plan.distributed:
        context += fit["collectives_gib"] * GIB
    return reserved + context


def ranges(s: Setup) -> tuple[float, float]:
    """Shares below and above the expected figure that hold most published runs of this kind."""
    table = constants()["ranges"]
    key = "sharded" if s.plan.sharded else s.method
    low, high = table.get(key, table["default"])
    return float(low), float(high)
