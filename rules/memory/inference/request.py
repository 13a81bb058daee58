"""An inference workload with every default filled in: what the engines' laws read.

Nobody states everything. Each default is a fact of the engine or of the model and is recorded as a `Note`, so that the
answer can say what it assumed.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.formats import (
    KvFormat,
    UnknownFormat,
    WeightFormat,
    gguf_for,
    kv_format,
    published_format,
    weight_format,
)
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.memory.inference.engines import Engine, engine
from rules.memory.usable import visible_bytes
from rules.records import dataclass
from rules.workload import InferenceWorkload

_NATIVE_FORMATS = {"fp8": "fp8", "mxfp4": "mxfp4", "int4": "int4-moe", "fp8+fp4": "fp8-fp4"}
_FALLBACK_ENGINE = "transformers"  # allocates what it needs, as most programs do
_LARGEST = 1 << 40  # beyond any context or batch; keeps sums of absurd inputs finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Sizes are tokens and sequences; `devices` is the number of accelerators, `card_bytes` what a program sees of one.

    `prompt` is the longest input of one forward pass, `context` the longest sequence. `cpu` is True where no
    accelerator runs the model. `summed` is the number of devices that the reported figures cover.
    """

    workload: InferenceWorkload
    model: ModelSpec
    device: Accelerator | None
    engine: Engine
    weights: WeightFormat
    kv: KvFormat
    context: int
    prompt: int
    sequences: int
    devices: int
    tp: int
    pp: int
    card_bytes: float
    cpu: bool
    card_known: bool
    summed: int
    notes: list[Note] = field(default_factory=list)

    def stated(self, name: str) -> Any:
        """The value of a workload field, None where nobody said it."""
        return _value(getattr(self.workload, name))


def _value(given: Any) -> Any:
    return None if given is None else given.value


def resolve(workload: InferenceWorkload, model: ModelSpec, device: Accelerator | None) -> Request:
    """Fills the defaults in; raises `UnsupportedWorkload` for formats that nobody here knows."""
    if not (model.layers and model.hidden and model.vocab):
        raise UnsupportedWorkload("model_without_architecture", model=model.hf_id)
    notes: list[Note] = []
    hardware = workload.hardware[0] if workload.hardware else None
    cpu = workload.constraints.cpu_only or bool(hardware and hardware.name.strip().lower().startswith("cpu"))
    name = _value(workload.engine)
    fmt = _weights(workload, model, name, notes)
    if name is None:
        name = "llama.cpp" if fmt.kind == "gguf" or cpu else "vllm"
        notes.append(Note("engine_assumed", {"engine": name}))
    try:
        chosen = engine(str(name), _text(_value(workload.engine_version)))
    except UnsupportedWorkload:
        chosen = engine(_FALLBACK_ENGINE)
        notes.append(Note("engine_unknown", {"engine": str(name), "taken_as": _FALLBACK_ENGINE}))
    kv = _cache(workload, fmt, notes)
    context, prompt = _lengths(workload, model, chosen, notes)
    sequences = positive_int(_value(workload.batch)) or positive_int(_value(workload.concurrency)) or 1
    devices = 1 if cpu else sum(max(1, h.count) for h in workload.hardware) if workload.hardware else 0
    tp, pp, devices = _degrees(workload, chosen, devices)
    summed = _value(workload.devices_summed)
    return Request(
        workload=workload,
        model=model,
        device=device,
        engine=chosen,
        weights=fmt,
        kv=kv,
        context=context,
        prompt=prompt,
        sequences=sequences,
        devices=devices,
        tp=tp,
        pp=pp,
        card_bytes=visible_bytes(device, _memory(hardware), hardware.name if hardware else None),
        cpu=cpu,
        card_known=device is not None or _memory(hardware) is not None,
        summed=devices if summed or (summed is None and chosen.logs_sum) else 1,
        notes=notes,
    )


def _family(name: str) -> str | None:
    try:
        return engine(name).family
    except UnsupportedWorkload:
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _memory(hardware: Any) -> float | None:
    memory = hardware.memory_gib if hardware else None
    return float(memory) if memory and memory > 0 and math.isfinite(memory) else None


def positive_int(value: Any) -> int | None:
    """A positive whole number, or None for anything else."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(number, _LARGEST) if number > 0 else None


def share_of_one(value: Any) -> float | None:
    """A share in (0, 1], or None for anything else; 90 is read as 90 %."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if 1 < number <= 100:
        number /= 100
    return number if 0 < number <= 1 else None


def _weights(workload: InferenceWorkload, model: ModelSpec, name: Any, notes: list[Note]) -> WeightFormat:
    stated = _value(workload.weights_format)
    if stated is None:
        from_engine = str(name or "").lower()
        if name is not None and _family(str(name)) == "ggml":
            chosen = "gguf:MXFP4_MOE" if model.native_quant == "mxfp4" else "gguf:Q4_K_M"
        elif model.native_quant in _NATIVE_FORMATS:
            chosen = _NATIVE_FORMATS[model.native_quant]
        elif "exllama" in from_engine:
            chosen = "exl2:4.0"
        elif "awq" in from_engine:
            chosen = "awq"
        else:
            chosen = "fp16" if model.native_dtype in ("fp16", "float16") else "bf16"
        notes.append(Note("weights_format_assumed", {"format": chosen}))
        return weight_format(chosen)
    text = str(stated).strip().lower()
    try:
        fmt = weight_format(published_format(text, model.hf_model_type, model.layers))
        return gguf_for(fmt) if name is not None and _family(str(name)) == "ggml" else fmt
    except UnknownFormat as exc:
        raise UnsupportedWorkload("unknown_weights_format", format=str(stated)) from exc


def _cache(workload: InferenceWorkload, fmt: WeightFormat, notes: list[Note]) -> KvFormat:
    stated = _value(workload.kv_dtype)
    if stated is None:
        notes.append(Note("kv_format_assumed", {"format": "fp16"}))
        return kv_format("fp16")
    try:
        return kv_format(str(stated))
    except UnknownFormat as exc:
        raise UnsupportedWorkload("unknown_kv_format", format=str(stated)) from exc


def _lengths(workload: InferenceWorkload, model: ModelSpec, chosen: Engine, notes: list[Note]) -> tuple[int, int]:
    inputs, outputs = positive_int(_value(workload.input_len)), positive_int(_value(workload.output_len))
    context = positive_int(_value(workload.context))
    if context is None and (inputs or outputs) and chosen.family == "eager" and chosen.tokens:
        context = (inputs or 0) + (outputs or 0)
    if context is None:
        longest = model.max_position or 4096
        default = {"ggml": chosen.context, "eager": chosen.tokens or longest, "paged": longest}[chosen.family]
        context = min(default, longest)
        if chosen.family != "paged":
            context = max(context, (inputs or 0) + (outputs or 0))
        notes.append(Note("context_assumed", {"tokens": context}))
    if inputs is None:
        inputs = max(1, context - outputs) if outputs else context
    return context, min(inputs, context) or 1


def _degrees(workload: InferenceWorkload, chosen: Engine, devices: int) -> tuple[int, int, int]:
    """Tensor and pipeline degrees and devices; engines with a pool use every card by tensor parallelism."""
    tp, pp = positive_int(_value(workload.tp)), positive_int(_value(workload.pp))
    count = devices or (tp or 1) * (pp or 1)
    if chosen.family == "paged":
        tp = tp or max(1, count // (pp or 1))
        pp = pp or 1
        return tp, pp, max(count, tp * pp)
    tensor = str(_value(workload.split_mode) or "").lower() in ("tensor", "row", "graph")
    if tensor or (tp or 1) > 1:
        return max(tp or 1, count if tensor else 1), 1, max(count, tp or 1)
    return 1, max(pp or 1, count), max(count, pp or 1)
