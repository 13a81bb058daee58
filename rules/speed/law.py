"""The law of speed: one entry for every kind of workload, as `rules.memory.law` is for bytes."""

from __future__ import annotations

import math

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.speed.types import Figure, Speed
from rules.workload import TrainingWorkload, Workload


def speed(
    workload: Workload,
    model: ModelSpec,
    device: Accelerator | Cpu,
    count: int,
    host: tuple[Cpu, int] | None = None,
) -> Speed:
    """Speed of `workload` on `count` devices (sockets of a CPU); `host` is the CPU around accelerators, if it matters.

    Raises `UnsupportedWorkload` where a rate of the device or a figure of the model is not known.
    """
    found = _speed(workload, model, device, count, host)
    for name in found.__slots__:
        figure = getattr(found, name)
        if isinstance(figure, Figure) and not (figure.low > 0 and math.isfinite(figure.high)):
            raise UnsupportedWorkload("speed_sizes_out_of_range", model=model.hf_id)
    return found


def _speed(
    workload: Workload, model: ModelSpec, device: Accelerator | Cpu, count: int, host: tuple[Cpu, int] | None
) -> Speed:
    if isinstance(workload, TrainingWorkload):
        from rules.speed.training.law import training_speed

        return training_speed(workload, model, device, count)
    if model.domain == "llm":
        from rules.speed.llm.law import llm_speed

        return llm_speed(workload, model, device, count, host)
    from rules.speed.media.law import media_speed

    return media_speed(workload, model, device, count)
