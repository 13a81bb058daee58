"""The result of a memory law: parts, phases and the three figures people read (allocated, reserved, device).

Plain frozen dataclasses, cheap enough to rank thousands of candidates; `rules.memory.plan` turns the few that are
shown into pydantic models. All figures are bytes on the fullest device of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from rules.records import dataclass

Param: TypeAlias = "str | float | int | Note"


@dataclass(frozen=True, slots=True)
class Range:
    """Low, expected and high bytes; low <= expected <= high."""

    low: float
    expected: float
    high: float

    @classmethod
    def around(cls, expected: float, below: float, above: float) -> Range:
        """`below` and `above` are shares of the expected value (0.1 = 10 %)."""
        return cls(expected * (1 - below), expected, expected * (1 + above))

    def plus(self, other: Range) -> Range:
        """Sum of two ranges, end by end."""
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the breakdown, present at the peak. `name` and `why` are message ids; `params` fill `why`."""

    name: str
    bytes: float
    why: str
    params: Mapping[str, Param] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """An assumption, correction or warning that a law made; `message` is a message id, said with `params`.

    A parameter may be a note itself: a phrase inside the sentence.
    """

    message: str
    params: Mapping[str, Param] = field(default_factory=dict)
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory on the fullest device.

    `parts` add up to `allocated.expected` (the phase that peaks). `reserved` is what a caching allocator holds,
    `device` what nvidia-smi shows (reserved + context + communication buffers). `phases` maps each phase to its
    allocated peak. `kv_cache_tokens` is the pool of a paged engine, `cpu_bytes` what lies in host memory.
    `components` has the figures that engines log by name: `weights`, `kv`, `compute_buffer`, in bytes.
    """

    phase: str
    parts: tuple[Part, ...]
    phases: Mapping[str, float]
    allocated: Range
    reserved: Range
    device: Range
    components: Mapping[str, float] = field(default_factory=dict)
    kv_cache_tokens: float | None = None
    cpu_bytes: float = 0.0
    notes: tuple[Note, ...] = ()
