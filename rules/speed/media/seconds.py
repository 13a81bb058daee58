"""Seconds of a pass: operations at a share of the peak, bytes at a share of the bandwidth, a fixed cost a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rules.speed.machine import Machine
from rules.speed.media.work import Work, tables

# Constants before any fit: shares of peaks and of bandwidth, operations a byte of activations, seconds a kernel.
PRIORS: Mapping[str, float] = {
    "share_gpu": 0.65,
    "share_gpu_convolution": 0.5,
    "share_gpu_int8": 0.5,
    "share_cpu": 0.2,
    "share_amx": 0.3,
    "bandwidth": 0.6,
    "intensity_cnn": 50.0,
    "intensity_unet": 150.0,
    "intensity_encoder": 600.0,
    "intensity_dit": 600.0,
    "kernel_eager_s": 4e-5,
    "kernel_compiled_s": 3e-5,
    "kernel_tuned_s": 8e-6,
    "hbm_loss": 1.2,
    "compiled_gain": 1.3,
    "tuned_gain": 1.6,
    "request_eager_s": 2e-3,
    "request_compiled_s": 4e-4,
    "request_tuned_s": 1e-4,
}
DEFAULT_SPREAD = 0.6


@cache
def fitted() -> dict[str, Any]:
    """The file that scripts/fit_media_speed.py writes."""
    text = resources.files("rules.speed").joinpath("data/media_speed.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def mode_of(engine: str, compiled: bool) -> str:
    """How the engine runs a graph: "eager", "compiled" or "tuned"."""
    rows = tables()["engines"]
    if any(word in engine for word in rows["tuned"]):
        return "tuned"
    return "compiled" if compiled or any(word in engine for word in rows["compiled"]) else "eager"


def share_of(kind: str, machine: Machine, bits: float, k: Mapping[str, float]) -> float:
    """The share of the arithmetic peak that large products reach."""
    if machine.memory == "cpu":
        return k["share_amx"] if machine.features == "amx" and bits <= 16 else k["share_cpu"]
    if bits <= 8:
        return k["share_gpu_int8"]
    return k["share_gpu_convolution" if kind in ("cnn", "unet") else "share_gpu"]


def pass_seconds(
    work: Work, batch: float, machine: Machine, bits: float, mode: str, k: Mapping[str, float]
) -> dict[str, float]:
    """Seconds of one pass over `batch` samples by what they go to: compute, bandwidth, overhead."""
    width = 32 if bits > 16 else 16 if bits > 8 else 8
    gain = {"eager": 1.0, "compiled": k["compiled_gain"], "tuned": k["tuned_gain"]}[mode]
    value = max(1.0, width / 16)
    # int8 and CPU shares come from compiled graphs only, so their gain is inside the share.
    own = 1.0 if machine.memory == "cpu" else gain
    compute = work.operations * batch / (machine.peak(width) * share_of(work.kind, machine, bits, k))
    traffic = work.weights * bits / 8 + work.extra_bytes * batch
    if machine.memory != "cpu":
        traffic += work.operations * batch / (k[f"intensity_{work.kind}"] * own) * value * (0.5 if width == 8 else 1.0)
        compute = compute if width == 8 else compute / own**0.5
        if machine.memory == "hbm" and width > 8:
            # Kernels of these sizes fill less of a large accelerator than of a card with few, fast units.
            compute, traffic = compute * k["hbm_loss"], traffic * k["hbm_loss"]
    return {
        "compute": compute,
        "bandwidth": traffic / (machine.bandwidth * k["bandwidth"]),
        "overhead": work.kernels * k[f"kernel_{mode}_s"],
    }


def total(parts: Mapping[str, float]) -> float:
    """Launches overlap with the device's work; arithmetic and traffic of a pass add up."""
    return max(parts["compute"] + parts["bandwidth"], parts["overhead"]) + 0.2 * min(
        parts["compute"] + parts["bandwidth"], parts["overhead"]
    )
