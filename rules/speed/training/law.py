"""The law of training speed: tokens a second of a device, step time, MFU, and how long a data set takes.

`training_speed` resolves the workload as the memory law does, so that both speak of the same run. Raises
`UnsupportedWorkload` for models that are not trained on tokens and for devices whose rates nobody knows.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.memory.training.law import settled
from rules.memory.training.setup import Setup
from rules.speed.machine import machine_of
from rules.speed.training.constants import constants, fitted, given
from rules.speed.training.seconds import Seconds, seconds
from rules.speed.training.work import Work, work_of
from rules.speed.types import Binds, Figure, Roofline, TrainingSpeed
from rules.workload import Given, Hardware, TrainingWorkload

_DOMAINS = ("llm", "encoder", "seq2seq")
_MOST_SECONDS = 1e15
_PASSES_A_STAGE = 4.0  # micro-batches of a pipeline of which nobody says how many: a bubble of a fifth


def training_speed(
    workload: TrainingWorkload, model: ModelSpec, device: Accelerator | Cpu, count: int = 1
) -> TrainingSpeed:
    """Speed of the run on `count` devices (sockets of a CPU).

    Seconds and tokens a second with ranges from the residuals of the fit; a CPU's figures follow from its peaks by
    assumed shares and have a wide range. Raises `UnsupportedWorkload`.
    """
    work, setup = run_of(workload, model, device, count)
    cpu = isinstance(device, Cpu)
    parts = seconds(work, cpu_constants() if cpu else constants())
    devices = setup.plan.devices
    rate = parts.tokens / work.split / parts.step
    spread = _spread(work, cpu)
    notes = [Note("speed_cpu_training_assumed")] if cpu else []
    notes += [Note("speed_unpacked_samples")] if not setup.packed else []
    samples = rate * devices / max(1.0, parts.tokens / (work.accumulation * setup.batch)) / setup.plan.sequence_split
    mfu = work.useful_ops * work.accumulation / parts.step / work.peak * _real(work, parts)
    whole, epochs = _data_set(workload, setup)
    epoch_s = _time(whole / (rate * devices), spread) if whole else None
    host = given()["host"]
    total = rate * devices
    notes.append(
        Note(
            "speed_host_data_path",
            {
                "tokens_per_s": total,
                "megabytes_per_s": total * host["id_bytes_per_token"] / 1e6,
                "text_megabytes_per_s": total * host["text_bytes_per_token"] / 1e6,
                "cores": max(1, math.ceil(total / host["tokens_per_core"])),
                "tokens_per_core": host["tokens_per_core"],
            },
            "T13",
        )
    )
    return TrainingSpeed(
        devices=devices,
        tokens_per_s_per_device=Figure.about(rate, spread),
        step_s=Figure.about(parts.step, spread),
        samples_per_s=Figure.about(samples, spread),
        mfu=_capped(mfu, spread),
        epoch_s=epoch_s,
        total_s=_time(whole * epochs / (rate * devices), spread) if whole else None,
        host_tokens_per_s=total,
        roofline=(_roofline(work, parts),),
        source="formula" if cpu else "fitted",
        notes=tuple(notes),
    )


def run_of(
    workload: TrainingWorkload, model: ModelSpec, device: Accelerator | Cpu, count: int = 1
) -> tuple[Work, Setup]:
    """The work of a run and its resolved settings."""
    if model.domain not in _DOMAINS:
        raise UnsupportedWorkload("speed_training_not_tokens", model=model.hf_id)
    cpu = isinstance(device, Cpu)
    devices = 1 if cpu else max(1, count)
    if sum(hardware.count for hardware in workload.hardware) != devices:
        workload = replace(workload, hardware=(Hardware(name=device.name, count=devices),))
    machine = machine_of(device, max(1, count)) if cpu else machine_of(device)
    setup = settled(workload, model, None if isinstance(device, Cpu) else device)
    compute = _text(workload.compute_dtype) or ""
    if cpu and not ("16" in compute and machine.peak(16) > machine.fp32):
        compute, setup.compute_bytes = "fp32", 4.0
    accelerator = None if isinstance(device, Cpu) else device
    framework = _text(workload.framework) or ""
    capped = not setup.packed and workload.dataset_samples is None  # samples that are counted have the length told
    return work_of(setup, machine, accelerator, compute, framework, _accumulation(workload, setup), capped), setup


def cpu_constants() -> dict[str, float]:
    """The constants of the law for a CPU: assumed shares of its peaks."""
    cpu = given()["cpu"]
    fixed = {"share": cpu["compute_share"], "narrow": 0.0, "experts": 1.0}
    return {**constants(), **fixed, "traffic": constants()["traffic"] / cpu["bandwidth_share"]}


def group_of(work: Work) -> str:
    """The group whose residuals give the range."""
    if work.machine.memory != "hbm":
        return "graphics_card"
    if work.expert_ops:
        return "experts"
    return "alone" if work.split == 1 and not work.sharded_sent and not work.step_sent else "spread"


def _spread(work: Work, cpu: bool) -> float:
    if cpu:
        return float(given()["cpu"]["spread"])
    spreads = fitted()["spread"]
    return float(spreads.get(group_of(work), spreads["other"]))


def _accumulation(workload: TrainingWorkload, setup: Setup) -> float:
    stated = _number(workload.grad_accum)
    if stated:
        return max(1.0, stated)
    whole = _number(workload.global_batch)
    if whole:
        return max(1.0, whole / (setup.plan.dp * setup.batch))
    return _PASSES_A_STAGE * setup.plan.pp if setup.plan.pp > 1 else 1.0


def _data_set(workload: TrainingWorkload, setup: Setup) -> tuple[float, float]:
    """Real tokens of one epoch (0 where no data set is named) and how many epochs."""
    tokens, samples = _number(workload.dataset_tokens), _number(workload.dataset_samples)
    if tokens is None and samples is not None:
        tokens = samples * setup.length * setup.plan.sequence_split
    return tokens or 0.0, _number(workload.epochs) or 1.0


def _real(work: Work, parts: Seconds) -> float:
    return min(1.0, parts.tokens / (work.tokens * work.accumulation))


def _capped(mfu: float, spread: float) -> Figure:
    figure = Figure.about(mfu, spread)
    return Figure(figure.low, min(1.0, figure.expected), min(1.0, figure.high))


def _time(value: float, spread: float) -> Figure:
    return Figure.about(min(value, _MOST_SECONDS), spread)


def _roofline(work: Work, parts: Seconds) -> Roofline:
    sent = parts.shards + parts.layers_sent
    told: dict[Binds, float] = {
        "compute": parts.compute,
        "bandwidth": parts.bandwidth,
        "interconnect": sent,
        "overhead": parts.launches,
    }
    binds = max(told, key=lambda name: told[name])
    return Roofline("training_pass", binds, {str(name): value for name, value in told.items()})


def _number(given_value: Given[int] | Given[float] | None) -> float | None:
    value = given_value.value if given_value is not None else None
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


def _text(given_value: Given[str] | None) -> str | None:
    return str(given_value.value).lower() if given_value is not None else None
