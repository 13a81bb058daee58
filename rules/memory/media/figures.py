"""Which of a footprint's figures a published total means."""

from __future__ import annotations

from rules.memory.footprint import Footprint, Range
from rules.memory.media.facts import engine

_FIGURES = ("allocated", "reserved", "device", "rss")


def media_total_bytes(footprint: Footprint, statistic: str | None, engine_name: str | None) -> Range:
    """The range that answers `statistic`; where nobody says which, the figure that reports of the engine print.

    `engine_buffers` has no counterpart outside llama.cpp and means the live tensors here.
    """
    wanted = (statistic or "").lower()
    if wanted in ("nvidia-smi", "nvml"):
        wanted = "device"
    if wanted == "engine_buffers":
        wanted = "allocated"
    if wanted not in _FIGURES:
        wanted = engine(engine_name).statistic
    if wanted == "allocated":
        return footprint.allocated
    return footprint.reserved if wanted == "reserved" else footprint.device
