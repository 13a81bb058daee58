"""Predicts what a published speed case measured, through the laws of speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Range
from rules.speed.types import Figure, InferenceSpeed, TrainingSpeed
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

if TYPE_CHECKING:
    from bot.estimate import Estimator

# Keys of a case, the figure that each is, and what a unit of it is in seconds or rates a second.
_INFERENCE: Mapping[str, tuple[str, float]] = {
    "decode_tok_s": ("decode_tok_s", 1.0),
    "prefill_tok_s": ("prefill_tok_s", 1.0),
    "total_tok_s": ("total_tok_s", 1.0),
    "requests_s": ("requests_s", 1.0),
    "samples_s": ("samples_s", 1.0),
    "steps_s": ("steps_s", 1.0),
    "realtime_factor": ("realtime_factor", 1.0),
    "ttft_ms": ("ttft_burst_s", 1e-3),
    "tpot_ms": ("tpot_s", 1e-3),
    "latency_ms": ("latency_s", 1e-3),
    "encoder_ms": ("encoder_s", 1e-3),
}
_OF_ALL = ("total_tok_s", "requests_s")


def speed_predictions(estimator: Estimator, workload: Workload) -> dict[str, Range]:
    """Figures by the names of the case format.

    Raises `CatalogError` for an unknown model, `UnsupportedWorkload` where no device is named or no law applies.
    """
    from bot.estimate import host_cpu, placed
    from rules.speed.law import speed

    workload, model, device, count = placed(estimator, workload)
    if device is None:
        raise UnsupportedWorkload("speed_device_unknown", device=workload.hardware[0].name if workload.hardware else "")
    if isinstance(workload, TrainingWorkload):
        found = speed(workload, model, device, count)
        assert isinstance(found, TrainingSpeed)
        return _training(found)
    host = host_cpu(estimator, workload)
    one = speed(workload, model, device, count, host)
    assert isinstance(one, InferenceSpeed)
    told = _inference(one)
    if model.domain == "llm":
        told |= _together(workload, told)
        if workload.concurrency is None and workload.batch is None:
            full = speed(_driven(workload, model, device, count, host), model, device, count, host)
            assert isinstance(full, InferenceSpeed)
            told |= {key: value for key, value in _inference(full).items() if key in _OF_ALL}
    return told


def _driven(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator | Cpu,
    count: int,
    host: tuple[Cpu, int] | None,
) -> InferenceWorkload:
    """The workload with as many sequences as the engine runs at most: how throughput is measured."""
    from rules.speed.llm.law import sequences_held
    from rules.speed.llm.request import resolve

    request = resolve(workload, model, device, count, host)
    most = int(sequences_held(request, device, workload) * request.replicas)
    return replace(workload, concurrency=Given(most, "assumed", "default_most_sequences"))


def _inference(found: InferenceSpeed) -> dict[str, Range]:
    told = {}
    for key, (name, unit) in _INFERENCE.items():
        figure: Figure | None = getattr(found, name)
        if figure is not None:
            told[key] = Range(figure.low / unit, figure.expected / unit, figure.high / unit)
    return told


def _together(workload: InferenceWorkload, told: Mapping[str, Range]) -> dict[str, Range]:
    """Rates that count a whole request: its tokens over its latency."""
    latency = told.get("latency_ms")
    if latency is None or workload.output_len is None:
        return {}
    at_once = workload.concurrency or workload.batch
    together = max(1, at_once.value) if at_once else 1
    answers = max(1, workload.output_len.value) * together
    prompts = max(0, workload.input_len.value if workload.input_len else 0) * together

    def rate(tokens: float) -> Range:
        return Range(*(tokens / ms * 1e3 for ms in (latency.high, latency.expected, latency.low)))

    return {"gen_tok_s_incl_prefill": rate(answers), "prompt_plus_gen_tok_s": rate(answers + prompts)}


def _training(found: TrainingSpeed) -> dict[str, Range]:
    figures = {
        "tokens_per_s_per_gpu": found.tokens_per_s_per_device,
        "samples_per_s": found.samples_per_s,
        "step_s": found.step_s,
        "mfu": found.mfu,
    }
    return {key: Range(f.low, f.expected, f.high) for key, f in figures.items() if f is not None}
