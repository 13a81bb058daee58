"""The most that fits on given hardware: largest micro-batch, longest context, most sequences (T6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rules.advice.judge import judge, sequences_at_once
from rules.advice.running import blocking, wants_of
from rules.advice.types import Limits
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.policy import Policy
from rules.workload import Given, TrainingWorkload, Workload

_MOST_BATCH = 4096
_MOST_CONTEXT = 2**21
_CONTEXT_STEP = 256


def limits(workload: Workload, model: ModelSpec, device: Accelerator, count: int, policy: Policy) -> Limits:
    """Each limit with everything else as in `workload`; None where even the smallest value does not fit.

    What is called tight fits: one more is what the verdict would refuse.
    """
    if blocking(device, wants_of(workload, model)) is not None:
        return Limits()

    def fits_with(**changes: int) -> bool:
        given = {name: Given(value, origin="assumed", reason="limit_search") for name, value in changes.items()}
        return judge(replace(workload, **given), model, device, count, policy).fits  # type: ignore[arg-type]

    ceiling = model.max_position if model.domain == "llm" and model.max_position else _MOST_CONTEXT
    if isinstance(workload, TrainingWorkload):
        length = None
        if workload.seq_len is not None:
            length = _largest(lambda n: fits_with(seq_len=n), ceiling, _CONTEXT_STEP)
        return Limits(micro_batch=_largest(lambda n: fits_with(micro_batch=n), _MOST_BATCH), context=length)
    if model.domain != "llm":
        return Limits(micro_batch=_largest(lambda n: fits_with(batch=n), _MOST_BATCH))
    now = judge(workload, model, device, count, policy)
    pool = now.footprint.kv_cache_tokens
    if pool is not None and workload.context is not None:
        if not now.fits:
            return Limits(context=_largest(lambda n: fits_with(context=n), ceiling, _CONTEXT_STEP))
        each = min(ceiling, int(pool) // sequences_at_once(workload) // _CONTEXT_STEP * _CONTEXT_STEP)
        return Limits(context=each or None, sequences=int(pool) // max(1, workload.context.value) or None)
    return Limits(
        context=_largest(lambda n: fits_with(context=n), ceiling, _CONTEXT_STEP),
        sequences=_largest(lambda n: fits_with(concurrency=n), _MOST_BATCH),
    )


def _largest(fits: Callable[[int], bool], ceiling: int, step: int = 1) -> int | None:
    """Largest multiple of `step` (at most `ceiling`) for which a monotone test holds, by doubling and bisection."""
    top = max(1, ceiling // step)
    if not fits(step):
        return None
    low, high = 1, 2
    while high <= top and fits(high * step):
        low, high = high, high * 2
    high = min(high, top + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle * step):
            low = middle
        else:
            high = middle
    return low * step
