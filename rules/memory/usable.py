"""What a program can use of a device's memory.

The catalogue's `memory_gib` is the nvidia-smi total; a program sees less (driver reserve), macOS lends the GPU a share
of the machine, and every process has a context of its own. Figures with their observations: `data/usable.toml`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

import tomli

from rules.catalog.accelerators import Accelerator
from rules.units import GIB

_TYPICAL_DATACENTER_GIB = 80.0


@cache
def _data() -> dict[str, Any]:
    return tomli.loads(resources.files("rules.memory").joinpath("data/usable.toml").read_text("utf-8"))


def visible_bytes(device: Accelerator | None, memory_gib: float | None = None, name: str | None = None) -> float:
    """Bytes that the runtime reports as the device's total.

    `memory_gib` is what the user stated: a marketed size is turned into what programs see, an odd figure (79.18) is
    taken as seen. `name` is the user's words for the device; a machine size in it tells a Mac's share from its total.
    """
    if _unified(device, name):
        return _unified_bytes(device, memory_gib, name)
    if memory_gib and memory_gib != round(memory_gib) and not _is_total(device, memory_gib):
        return memory_gib * GIB
    total = memory_gib or _TYPICAL_DATACENTER_GIB
    if device is not None:
        near = memory_gib is None or abs(memory_gib / device.memory_gb_marketed - 1) < 0.07
        total = device.memory_gib if near else total
    return max(0.0, total - _reserve_gib(device, total)) * GIB


def usable_bytes(
    device: Accelerator | None,
    memory_gib: float | None = None,
    name: str | None = None,
    *,
    desktop_reserve_gib: float = 0.0,
) -> float:
    """Bytes left for one program: what it sees less what a display session holds on a consumer card.

    The process's own context is part of its footprint (`context_bytes`), not taken off here.
    """
    seen = visible_bytes(device, memory_gib, name)
    on_desk = device is not None and device.tier == "consumer"
    return max(0.0, seen - (desktop_reserve_gib * GIB if on_desk else 0.0))


def context_bytes(device: Accelerator | None, *, torch: bool, devices: int = 1) -> float:
    """Bytes a process holds on each device beside its buffers: context, kernels and communicators."""
    data = _data()["context_gib"]
    table = data["torch" if torch else "native"]
    own = table.get(device.vendor if device is not None else "other", table["other"])
    return (float(own) + (float(data["communicator"]) if torch and devices > 1 and own else 0.0)) * GIB


def _is_total(device: Accelerator | None, memory_gib: float) -> bool:
    return device is not None and abs(memory_gib - device.memory_gib) < 0.02


def _reserve_gib(device: Accelerator | None, total_gib: float) -> float:
    data = _data()
    if device is None:
        return min(float(data["reserve_gib"]["nvidia"]), 0.03 * total_gib)
    for word, reserve in data["reserve_by_name_gib"].items():
        if device.name.startswith(word):
            return float(reserve)
    reserve = float(data["reserve_gib"].get(device.vendor, data["reserve_gib"]["other"]))
    # Small cards on a desktop operating system report their whole memory.
    return reserve if total_gib > 8.5 else 0.0


def _unified(device: Accelerator | None, name: str | None) -> bool:
    if device is not None:
        return device.unified_memory
    return bool(re.search(r"\b(apple|mac(book)?|m[1-9]( |$|-))", (name or "").lower()))


def _unified_bytes(device: Accelerator | None, memory_gib: float | None, name: str | None) -> float:
    data = _data()["unified"]
    in_name = re.search(r"(\d+)\s?GB", name or "", re.IGNORECASE)
    machine = float(in_name.group(1)) if in_name else memory_gib
    if memory_gib and in_name and memory_gib < machine - 0.5:  # type: ignore[operator]
        return memory_gib * GIB  # already the share that the system lends
    total = machine or (device.memory_gib if device else _TYPICAL_DATACENTER_GIB)
    if device is not None and device.vendor != "apple":
        return total * float(data["other_share"]) * GIB
    share = data["small_share"] if total < data["small_below_gib"] else data["share"]
    return total * float(share) * GIB
