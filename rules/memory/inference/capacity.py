"""How far a set-up goes: the longest context, the most sequences, the bytes a token of cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.formats import KvFormat, UnknownFormat
from rules.formats import kv_format as read_kv_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.inference.engines import engine as engine_recipe
from rules.memory.inference.kv import cache_shape
from rules.memory.inference.law import inference_footprint
from rules.memory.usable import usable_bytes
from rules.workload import Given, Hardware, InferenceWorkload

_MOST_SEQUENCES = 1 << 16
_LONGEST = 1 << 24


def kv_bytes_per_token(
    model: ModelSpec, kv_format: str | KvFormat | None = None, engine: str | None = None, tp: int = 1
) -> float:
    """Cache bytes that one more token of one sequence takes on one device, while no window is full.

    Raises `UnsupportedWorkload` for an unknown format or engine.
    """
    try:
        kv = kv_format if isinstance(kv_format, KvFormat) else read_kv_format(kv_format or "fp16")
    except UnknownFormat as exc:
        raise UnsupportedWorkload("unknown_kv_format", format=str(kv_format)) from exc
    expanded = bool(model.mla) and engine_recipe(engine).latent == "expanded"
    return cache_shape(model, kv, tp=max(1, tp), latent="expanded" if expanded else "latent").per_token


def max_context(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator,
    count: int = 1,
    *,
    desktop_reserve_gib: float = 0.0,
) -> int:
    """Tokens of the longest context that fits on `count` devices for the sequences asked; 0 where nothing fits.

    Bounded by the model's longest position.
    """
    limit = min(model.max_position or _LONGEST, _LONGEST)

    def fits(tokens: int) -> bool:
        asked = replace(_on(workload, device, count), context=Given(tokens), input_len=None, output_len=None)
        return _fits(inference_footprint(asked, model, device), asked, device, desktop_reserve_gib)

    return _largest(fits, limit)


def max_sequences(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator,
    count: int = 1,
    *,
    desktop_reserve_gib: float = 0.0,
) -> int:
    """Sequences of the asked context that fit at once on `count` devices; 0 where not even one does.

    Engines with a pool queue what does not fit, so this is how many run together.
    """
    asked = _on(workload, device, count)
    first = inference_footprint(replace(asked, batch=Given(1)), model, device)
    needed = first.components.get("kv_needed")
    if needed is not None:
        room = first.components["kv"]
        return max(0, min(_MOST_SEQUENCES, int(room // needed))) if needed > 0 else _MOST_SEQUENCES

    def fits(sequences: int) -> bool:
        more = replace(asked, batch=Given(sequences))
        return _fits(inference_footprint(more, model, device), more, device, desktop_reserve_gib)

    return _largest(fits, _MOST_SEQUENCES)


def _on(workload: InferenceWorkload, device: Accelerator, count: int) -> InferenceWorkload:
    """The workload on `count` of `device`; degrees stated for other hardware are dropped."""
    stated = workload.hardware[0] if workload.hardware else None
    if stated is not None and stated.count == count and len(workload.hardware) == 1:
        return workload
    hardware = Hardware(name=device.name, count=count, memory_gib=stated.memory_gib if stated else None)
    return replace(workload, hardware=(hardware,), tp=None, pp=None)


def _fits(found: Footprint, workload: InferenceWorkload, device: Accelerator, desktop_reserve_gib: float) -> bool:
    needed = found.components.get("kv_needed")
    if needed is not None:
        sequences = workload.batch or workload.concurrency
        return found.components["kv"] >= needed * max(1, sequences.value if sequences else 1)
    hardware = workload.hardware[0]
    usable = usable_bytes(device, hardware.memory_gib, hardware.name, desktop_reserve_gib=desktop_reserve_gib)
    # A caching allocator gives its cache back before it fails: what lives and the context decide.
    live = found.allocated.expected + found.device.expected - found.reserved.expected
    return live <= usable


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest whole number up to `limit` for which `fits` holds, taking it to fail above the first failure."""
    if not fits(1):
        return 0
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
