"""The training law: peak memory of one step on the fullest device, as the maximum over its phases.

Phases are load, forward (up to the loss), loss, backward and optimizer step; each is a sum of parts that live at the
same time. Allocated is what tensors hold, reserved what the caching allocator holds for them, device what nvidia-smi
shows (reserved, CUDA context, communication buffers).
"""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Note, Param, Part, Range
from rules.memory.parallel import plan_problems
from rules.memory.training.overheads import device_bytes, ranges, reserved_bytes
from rules.memory.training.phases import Peak, stage_peaks
from rules.memory.training.setup import Setup, resolve
from rules.workload import TrainingWorkload


def training_footprint(workload: TrainingWorkload, model: ModelSpec, device: Accelerator | None) -> Footprint:
    """Memory of one training step of a text model on the fullest device.

    Raises `UnsupportedWorkload` where the model has no layers or widths to compute with.
    """
    setup = settled(workload, model, device)
    peaks = [peak for stage in stage_peaks(setup) for peak in stage]
    return _footprint(setup, peaks, model, device)


def settled(workload: TrainingWorkload, model: ModelSpec, device: Accelerator | None) -> Setup:
    """The setup of a run with the checkpointing that a bare "on" means: selective where that fits, else full."""
    setup = resolve(workload, model)
    if setup.checkpointing != "selective_or_full":
        return setup
    setup.checkpointing = "selective"
    capacity = _capacity(workload, device)
    if capacity is not None and reserved_bytes(setup, fullest(setup)) > capacity:
        setup.checkpointing = "full"
    setup.assumed.append(
        Note("training_assumed", {"field": "checkpointing", "value": setup.checkpointing, "why": "lightest_that_fits"})
    )
    return setup


def fullest(setup: Setup) -> Peak:
    """The candidate with the most bytes: the peak of the step."""
    return max((peak for stage in stage_peaks(setup) for peak in stage), key=lambda peak: peak.total)


def _capacity(workload: TrainingWorkload, device: Accelerator | None) -> float | None:
    for hardware in workload.hardware:
        if hardware.memory_gib:
            return hardware.memory_gib * 2**30
    return device.memory_bytes if device else None


def _footprint(s: Setup, peaks: list[Peak], model: ModelSpec, device: Accelerator | None) -> Footprint:
    top = max(peaks, key=lambda p: p.total)
    phases: dict[str, float] = {}
    for peak in peaks:
        phases[peak.phase] = max(phases.get(peak.phase, 0.0), peak.total)
    allocated = top.total
    reserved = reserved_bytes(s, top)
    whole = device_bytes(s, device, reserved)
    below, above = ranges(s)
    notes = [*s.assumed, *plan_problems(s.plan, model)]
    return Footprint(
        phase=top.phase,
        parts=_parts(top, s),
        phases=phases,
        allocated=Range.around(allocated, below, above),
        reserved=Range.around(reserved, below, above),
        device=Range.around(whole, below, above),
        components={"weights": top.parts.get("weights", 0.0)},
        cpu_bytes=top.cpu,
        notes=tuple(notes),
    )


def _parts(peak: Peak, s: Setup) -> tuple[Part, ...]:
    params: dict[str, Param] = {
        "tokens": s.tokens,
        "layers": s.shape.layers,
        "vocab": s.shape.vocab,
        "optimizer": s.optimizer.name,
        "format": s.format.name,
        "rank": s.adapters.rank,
        "devices": s.plan.devices,
    }
    return tuple(
        Part(f"training_part_{name}", value, f"training_why_{name}", params)
        for name, value in peak.parts.items()
        if value > 0
    )
