"""From phases to a footprint: the phase that peaks, what the allocator caches, and what the process holds besides.

On a GPU `allocated` is the sum of live tensors at the peak, `reserved` adds what the caching allocator keeps, `device`
adds the context. On a CPU there is one figure, the resident set: the process heap keeps what earlier phases used, so
the phases' temporary parts add up (unless they are gigabytes, which go back to the system); interpreter and libraries
belong to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from rules.memory.footprint import Footprint, Note, Part, Range
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """Parts alive at one phase's peak; `cached_bytes` is what the allocator holds on top by then."""

    name: str
    parts: tuple[Part, ...]
    cached_bytes: float = 0.0

    @property
    def bytes(self) -> float:
        """Live bytes of the phase."""
        return sum(part.bytes for part in self.parts)


@dataclass(frozen=True, slots=True)
class Spread:
    """Shares below and above the expected figure that published runs of the domain scatter by."""

    below: float
    above: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """What holds the tensors: `runtime_bytes` of context or interpreter, host bytes, and the spread of the domain.

    `heap_keeps` is false where a CPU run's tensors are so large that the heap gives them back between phases.
    `gives_way` are bytes of the peak that a run does without where memory is short.
    """

    cpu: bool
    runtime_bytes: float
    spread: Spread
    host_bytes: float = 0.0
    heap_keeps: bool = True
    gives_way: float = 0.0
    notes: Sequence[Note] = field(default=())


def kept(parts: Sequence[Part]) -> list[Part]:
    """Parts that hold anything."""
    return [part for part in parts if part.bytes > 0]


def assemble(
    resident: Sequence[Part], phases: Sequence[Phase], holder: Holder, components: Mapping[str, float]
) -> Footprint:
    """Footprint of `resident` parts plus the phase that needs most beside them."""
    if holder.cpu:
        return _on_cpu(resident, phases, holder, components)
    base = sum(part.bytes for part in resident)
    peak = max(phases, key=lambda phase: phase.bytes)
    parts = tuple(kept([*resident, *peak.parts]))
    allocated = base + peak.bytes
    reserved = max(base + phase.bytes + phase.cached_bytes for phase in phases)
    temporary = allocated - base
    low, high = holder.spread.below, holder.spread.above

    def around(value: float) -> Range:
        moving = max(temporary, value - base)
        least = min(value - low * moving - 0.01 * base, value - holder.gives_way)
        return Range(least, value, value + high * moving + 0.02 * base)

    return Footprint(
        phase=peak.name,
        parts=parts,
        phases={phase.name: base + phase.bytes for phase in phases},
        allocated=around(allocated),
        reserved=around(reserved),
        device=around(reserved + holder.runtime_bytes),
        components={**components, **({"gives_way": holder.gives_way} if holder.gives_way else {})},
        cpu_bytes=holder.host_bytes,
        notes=tuple(holder.notes),
    )


def _on_cpu(
    resident: Sequence[Part], phases: Sequence[Phase], holder: Holder, components: Mapping[str, float]
) -> Footprint:
    runtime = Part("runtime", holder.runtime_bytes, "media_runtime_cpu")
    peak = max(phases, key=lambda phase: phase.bytes)
    every = [part for phase in (phases if holder.heap_keeps else [peak]) for part in phase.parts]
    parts = tuple(kept([runtime, *resident, *every]))
    total = sum(part.bytes for part in parts)
    figure = Range.around(total, holder.spread.below, holder.spread.above)
    return Footprint(
        phase=peak.name,
        parts=parts,
        phases={"all": total},
        allocated=figure,
        reserved=figure,
        device=figure,
        components=dict(components),
        cpu_bytes=total + holder.host_bytes,
        notes=tuple(holder.notes),
    )
