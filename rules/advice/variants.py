"""How the figure moves if an assumption is changed: a short and a long context, one and eight at once, fewer bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rules.advice.judge import judge
from rules.advice.types import Variant
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

_LONG = {"seq_len": 8192, "context": 32768}
_SEVERAL = 8


def variants(
    workload: Workload, model: ModelSpec, policy: Policy, device: Accelerator | None, count: int
) -> tuple[Variant, ...]:
    """One variant for each assumed length, batch and serving format, judged on the device that the answer shows."""
    if device is None:
        return ()
    found: list[Variant] = []
    for label, changes in _changes(workload, model, policy):
        try:
            judged = judge(replace(workload, **changes), model, device, count, policy)
        except UnsupportedWorkload:
            continue
        outcome = "tight" if judged.fits and judged.cache_is_short else judged.fit.outcome
        found.append(Variant(label, to_gib(judged.demand.expected), outcome))
    return tuple(found)


def _changes(workload: Workload, model: ModelSpec, policy: Policy) -> Iterator[tuple[Note, dict[str, Any]]]:
    yield from _precision(workload, model)
    batch = "micro_batch" if isinstance(workload, TrainingWorkload) else "concurrency"
    length = "seq_len" if isinstance(workload, TrainingWorkload) else "context"
    if _assumed(workload, length) and model.domain == "llm":
        most = model.max_position or _LONG[length]
        tokens = min(_LONG[length], most)
        if tokens > getattr(workload, length).value:
            yield Note("variant_length", {"tokens": tokens}), _set(**{length: tokens})
    if _assumed(workload, batch) and model.domain == "llm":
        at_once = getattr(workload, batch).value
        people = workload.traffic.users
        if people and isinstance(workload, InferenceWorkload):
            active = max(1, round(people * policy.concurrency.active_share_of_users))
            params: dict[str, Param] = {"users": people, "active": active}
            yield Note("variant_active_users", params), _set(concurrency=active)
        elif at_once < _SEVERAL:
            yield Note(f"variant_{batch}", {"count": _SEVERAL}), _set(**{batch: _SEVERAL})
    if isinstance(workload, InferenceWorkload) and model.domain == "llm" and _assumed(workload, "weights_format"):
        now = workload.weights_format.value if workload.weights_format else ""
        files = workload.engine is not None and workload.engine.value in ("llama.cpp", "ollama")
        for name in ("gguf:Q8_0", "gguf:Q4_K_M") if files else ("fp8", "awq"):
            if name != now:
                yield Note("variant_format", {"format": name}), _set(weights_format=name)


def _precision(workload: Workload, model: ModelSpec) -> Iterator[tuple[Note, dict[str, Any]]]:
    """Full training taken as pure 16-bit: what fp32 master weights would need."""
    if isinstance(workload, TrainingWorkload) and model.domain == "llm" and _assumed(workload, "mixed_precision"):
        yield Note("variant_fp32_master"), _set(mixed_precision=True, weights_dtype="fp32")


def _assumed(workload: Workload, name: str) -> bool:
    given = getattr(workload, name)
    return given is not None and given.origin == "assumed"


def _set(**values: Any) -> dict[str, Any]:
    return {name: Given(value, origin="assumed", reason="variant") for name, value in values.items()}
