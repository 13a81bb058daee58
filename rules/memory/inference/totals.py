"""Which total a published figure means: engine buffers, allocator, device or resident set."""

from __future__ import annotations

from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Range
from rules.memory.inference.engines import engine as engine_recipe

STATISTICS = ("engine_buffers", "allocated", "reserved", "device", "rss")
_SPELLINGS = {"nvidia-smi": "device", "total": "device", "vram": "device", "max_memory_allocated": "allocated"}


def inference_total_bytes(footprint: Footprint, statistic: str | None, engine: str | None = None) -> Range:
    """Bytes of the total that `statistic` names, over the devices that the footprint's components cover.

    None means the figure that users of the engine usually report. The range keeps the footprint's relative width.
    """
    kind = _SPELLINGS.get(statistic or "", statistic)
    if kind is None:
        kind = _usual(engine)
    parts = footprint.components
    allocated = parts.get("allocated", footprint.allocated.expected)
    if kind == "engine_buffers":
        expected = parts.get("engine_buffers", allocated)
    elif kind == "device":
        expected = parts.get("reserved", allocated) + parts.get("context", 0.0)
    elif kind == "reserved":
        expected = parts.get("reserved", allocated)
    elif kind == "rss":
        expected = max(footprint.cpu_bytes, allocated)
    else:
        expected = allocated
    base = footprint.allocated
    if base.expected <= 0:
        return Range(expected, expected, expected)
    return Range(expected * base.low / base.expected, expected, expected * base.high / base.expected)


def _usual(engine: str | None) -> str:
    try:
        return engine_recipe(engine).statistic
    except UnsupportedWorkload:
        return "device"
