"""How the figure moves if an assumption is changed: a short and a long context, one and eight at once, fewer bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rules.advice.judge import Judged, judge, outcome_of, sequences_at_once
from rules.advice.running import blocking, wants_of
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
_SMALLEST_MOVE_GIB = 0.05


def variants(
    workload: Workload, model: ModelSpec, policy: Policy, device: Accelerator | None, count: int, now: Judged
) -> tuple[Variant, ...]:
    """One variant for each assumed length, batch and serving format, judged on the device that the answer shows.

    `now` is what the answer shows; what leaves its figure as it is, is no variant.
    """
    if device is None:
        return ()
    found: list[Variant] = []
    now_gib = to_gib(now.demand.expected)
    for label, changes in _changes(workload, model, policy):
        changed = replace(workload, **changes)
        if blocking(device, wants_of(changed, model)) is not None:
            continue
        try:
            judged = judge(changed, model, device, count, policy)
        except UnsupportedWorkload:
            continue
        need_gib, outcome = to_gib(judged.demand.expected), outcome_of(judged, model, device, policy)
        if abs(need_gib - now_gib) >= _SMALLEST_MOVE_GIB:
            note = _short_cache(judged) if outcome == "tight" else None
            found.append(Variant(label, need_gib, outcome, note))
    return tuple(found)


def _short_cache(judged: Judged) -> Note | None:
    """How many of the sequences the engine's cache holds at the asked length, where that is fewer than all."""
    workload, pool = judged.placed.workload, judged.footprint.kv_cache_tokens
    if not judged.cache_is_short or pool is None or not isinstance(workload, InferenceWorkload):
        return None
    assert workload.context is not None
    holds = int(pool // workload.context.value)
    return Note("variant_cache_holds", {"holds": holds, "of": sequences_at_once(workload)})


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
