"""What the workload says, read once and checked: sizes, formats, engine, CPU or GPU, and what had to be assumed."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from rules.formats import UnknownFormat, WeightFormat, weight_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.memory.media.facts import Engine, engine
from rules.records import dataclass
from rules.workload import Given, InferenceWorkload, Workload

_HIGHEST = 10**9


def stated(given: Given[Any] | None) -> Any:
    """The value inside, or None."""
    return None if given is None else given.value


def whole(given: Given[Any] | None, what: str) -> int | None:
    """A whole number of at least 1, None where nothing was said; raises `UnsupportedWorkload` for anything else."""
    value = stated(given)
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError) as exc:
        raise UnsupportedWorkload("media_field_not_a_number", field=what, value=str(value)) from exc
    if not math.isfinite(number) or not 1 <= number <= _HIGHEST:
        raise UnsupportedWorkload("media_field_out_of_range", field=what, value=number)
    return int(number)


def words(given: Given[Any] | None) -> str | None:
    """Lower-case text, None where nothing (or an empty text) was said."""
    value = stated(given)
    text = "" if value is None else str(value).strip().lower()
    return text or None


def on_cpu(workload: Workload) -> bool:
    """True where the hardware is a CPU (named `cpu...`) or the constraints allow nothing else."""
    if workload.hardware:
        return workload.hardware[0].name.strip().lower().startswith("cpu")
    return workload.constraints.cpu_only


def read_format(name: str) -> WeightFormat:
    """The weights format of that name; raises `UnsupportedWorkload` where nobody knows it."""
    try:
        return weight_format(name)
    except UnknownFormat as exc:
        raise UnsupportedWorkload("media_unknown_format", format=name) from exc


@dataclass(slots=True)
class Asked:
    """An inference workload as the media laws read it. Lengths are tokens, `value_bytes` is one activation value."""

    engine: Engine
    cpu: bool
    weights: WeightFormat
    value_bytes: float
    batch: int
    beams: int
    eager: bool
    input_len: int | None
    output_len: int | None
    context: int | None
    image: int | None
    frames: int | None
    notes: list[Note] = field(default_factory=list)

    def assume(self, what: str, value: float | str, reason: str) -> None:
        """Records a default that was taken."""
        self.notes.append(Note("media_assumed", {"field": what, "value": value, "reason": reason}))


def read_inference(workload: InferenceWorkload, default_engine: str = "transformers") -> Asked:
    """Reads and checks the fields; defaults are 16-bit weights on a GPU, fp32 on a CPU, batch 1 (or the engine's)."""
    chosen = engine(words(workload.engine) or default_engine)
    cpu = on_cpu(workload)
    notes: list[Note] = []
    named = words(workload.weights_format)
    if named is None:
        named = "fp32" if cpu else "fp16"
        notes.append(
            Note("media_assumed", {"field": "weights_format", "value": named, "reason": "media_default_format"})
        )
    weights = read_format(named)
    if chosen.highest_bits and weights.linear_bits > chosen.highest_bits:
        weights = read_format("fp16")
        notes.append(Note("media_engine_stores_16_bits", {"engine": chosen.name}))
    full = weights.linear_bits > 16 or cpu
    attention = words(workload.attention_impl) or ""
    eager = chosen.eager if not attention else attention in ("eager", "math", "manual")
    if stated(workload.flash_attention) is True:
        eager = False
    batch = whole(workload.batch, "batch") or whole(workload.concurrency, "concurrency")
    if batch is None:
        users = workload.traffic.concurrency
        batch = users if isinstance(users, int) and users >= 1 else chosen.batch
        notes.append(Note("media_assumed", {"field": "batch", "value": batch, "reason": "media_default_batch"}))
    return Asked(
        engine=chosen,
        cpu=cpu,
        weights=weights,
        value_bytes=4.0 if full else 2.0,
        batch=min(batch, _HIGHEST),
        beams=chosen.beams,
        eager=eager,
        input_len=whole(workload.input_len, "input_len"),
        output_len=whole(workload.output_len, "output_len"),
        context=whole(workload.context, "context"),
        image=whole(workload.image_size, "image_size"),
        frames=whole(workload.frames, "frames"),
        notes=notes,
    )
