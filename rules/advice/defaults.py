"""One table of defaults with reasons: what the advice takes where the question is silent (`data/defaults.toml`).

The engine and the weights format are chosen here too, because they depend on each other and on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import tomli

from rules.advice.types import Assumption
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.formats import UnknownFormat, weight_format
from rules.policy import Policy
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

_DETECTOR_FAMILIES = ("YOLO",)


@cache
def _table() -> dict[str, Any]:
    text = resources.files("rules.advice").joinpath("data/defaults.toml").read_text("utf-8")
    return tomli.loads(text)


def fill_training(
    workload: TrainingWorkload, model: ModelSpec, policy: Policy
) -> tuple[TrainingWorkload, tuple[Assumption, ...]]:
    """The workload with every silent field of the table filled; what was taken comes back beside it."""
    changes, assumed = _from_table("training", workload, model, policy)
    _within_window("seq_len", changes, assumed, model)
    return replace(workload, **changes), tuple(assumed)


def fill_inference(
    workload: InferenceWorkload, model: ModelSpec, policy: Policy, device: Accelerator | None, cpu: bool = False
) -> tuple[InferenceWorkload, tuple[Assumption, ...]]:
    """As `fill_training`; the device (None = not said) decides the engine where none is stated."""
    first: dict[str, Any] = {}
    assumed: list[Assumption] = []
    if workload.concurrency is None and workload.batch is None and model.domain == "llm":
        at_once = workload.traffic.concurrency or workload.traffic.users
        if at_once:
            origin = "stated" if workload.traffic.concurrency else "assumed"
            first["concurrency"] = Given(at_once, origin=origin, reason="default_users_at_once")  # type: ignore[arg-type]
            if origin == "assumed":
                assumed.append(Assumption("concurrency", at_once, "default_users_at_once"))
    if first:
        workload = replace(workload, **first)
    fmt, fmt_assumed = _weights_format(workload, model, policy, device, cpu)
    engine, engine_assumed = _engine(workload, model, policy, device, fmt, cpu)
    workload = replace(workload, weights_format=fmt, engine=engine)
    changes, more = _from_table("inference", workload, model, policy)
    _within_window("context", changes, more, model)
    if workload.input_len and workload.context is None:
        length = workload.input_len.value + (workload.output_len.value if workload.output_len else 512)
        changes["context"] = Given(length, origin="assumed", reason="default_context_from_prompt")
        more = [a for a in more if a.field != "context"]
        more.append(Assumption("context", length, "default_context_from_prompt"))
    filled = replace(workload, **changes)
    return filled, (*assumed, *fmt_assumed, *engine_assumed, *more)


def _within_window(name: str, changes: dict[str, Any], assumed: list[Assumption], model: ModelSpec) -> None:
    """An assumed length never exceeds the positions that the model knows."""
    if name not in changes or not model.max_position or changes[name].value <= model.max_position:
        return
    reason = changes[name].reason
    changes[name] = Given(model.max_position, origin="assumed", reason=reason)
    assumed[:] = [Assumption(name, model.max_position, reason) if a.field == name else a for a in assumed]


def _from_table(
    task: str, workload: Workload, model: ModelSpec, policy: Policy
) -> tuple[dict[str, Any], list[Assumption]]:
    facts: dict[str, Any] = {
        "domain": model.domain,
        "large": model.params_total >= policy.defaults.large_params_b * 1e9,
        "detector": model.family.startswith(_DETECTOR_FAMILIES),
        "crowd": isinstance(workload, InferenceWorkload) and _is_crowd(workload, policy),
        "several": sum(hardware.count for hardware in workload.hardware) > 1,
    }
    changes: dict[str, Any] = {}
    assumed: list[Assumption] = []
    for row in _table()[task]:
        name = row["field"]
        if name in changes or getattr(workload, name) is not None:
            continue
        if name == "concurrency" and getattr(workload, "batch", None) is not None:
            continue
        if _holds(row.get("when", {}), workload, facts, changes):
            changes[name] = Given(row["value"], origin="assumed", reason=row["reason"])
            assumed.append(Assumption(name, row["value"], row["reason"]))
    return changes, assumed


def _is_crowd(workload: InferenceWorkload, policy: Policy) -> bool:
    at_once = workload.concurrency.value if workload.concurrency is not None else 1
    return at_once >= policy.defaults.crowd_from


def _holds(when: Mapping[str, Any], workload: Workload, facts: Mapping[str, Any], filled: Mapping[str, Any]) -> bool:
    for key, allowed in when.items():
        if key in facts:
            value = facts[key]
        else:
            given = filled.get(key) or getattr(workload, key, None)
            value = given.value if given is not None else "nothing"
        if value not in allowed:
            return False
    return True


_GENERIC_BITS = {"int4": "4", "4bit": "4", "q4": "4", "int8": "8", "8bit": "8", "q8": "8"}
_GGUF_OF_BITS = {"4": "gguf:Q4_K_M", "8": "gguf:Q8_0"}
_SERVER_OF_BITS = {"4": "awq", "8": "int8"}
_FALLBACK_OF_BITS = {"4": "awq", "8": "fp8"}


def _weights_format(
    workload: InferenceWorkload, model: ModelSpec, policy: Policy, device: Accelerator | None, cpu: bool
) -> tuple[Given[str] | None, tuple[Assumption, ...]]:
    """Resolves "4 bits" to the format that the engine of that machine would load; silent = as published."""
    given = workload.weights_format
    local = cpu or (device is not None and (device.unified_memory or device.tier == "consumer"))
    engine = workload.engine.value.lower() if workload.engine else ""
    if given is not None and given.value.lower() in _GENERIC_BITS and model.domain == "llm":
        bits = _GENERIC_BITS[given.value.lower()]
        as_file = "llama" in engine or engine == "ollama" or (not engine and local)
        value = (_GGUF_OF_BITS if as_file else _SERVER_OF_BITS)[bits]
        reason = "default_format_of_bits"
        return Given(value, origin="assumed", reason=reason), (Assumption("weights_format", value, reason),)
    if given is not None:
        return given, ()
    if model.domain == "llm" and not engine and device is None and _at_home(workload, policy):
        return (
            Given("gguf:Q4_K_M", origin="assumed", reason="default_format_at_home"),
            (Assumption("weights_format", "gguf:Q4_K_M", "default_format_at_home"),),
        )
    value = model.native_quant or (model.native_dtype if model.domain != "llm" else "bf16")
    if model.domain == "llm" and ("llama.cpp" in engine or engine == "ollama"):
        value = "gguf:Q4_K_M" if engine == "ollama" else "gguf:F16"
    reason = "default_format_native" if model.native_quant else "default_format_16_bit"
    return Given(value, origin="assumed", reason=reason), (Assumption("weights_format", value, reason),)


def _at_home(workload: InferenceWorkload, policy: Policy) -> bool:
    """True for a few people on a machine of their own, who run files in 4 bits where nothing else is said."""
    return workload.constraints.where == "on_premises" and not _is_crowd(workload, policy)


def smaller_formats(workload: InferenceWorkload) -> tuple[str, ...]:
    """Formats to fall back to, in order, where nobody stated one and 16 bits do not fit."""
    engine = workload.engine.value.lower() if workload.engine else ""
    bits = ("8", "4")
    return tuple((_GGUF_OF_BITS if engine in ("llama.cpp", "ollama") else _FALLBACK_OF_BITS)[b] for b in bits)


def _engine(
    workload: InferenceWorkload,
    model: ModelSpec,
    policy: Policy,
    device: Accelerator | None,
    weights_format: Given[str] | None,
    cpu: bool,
) -> tuple[Given[str] | None, tuple[Assumption, ...]]:
    if workload.engine is not None:
        return workload.engine, ()
    fmt = weights_format.value if weights_format else ""
    if model.domain == "llm":
        if cpu or _is_file(fmt) or _local(workload, policy, device, weights_format):
            value, reason = "llama.cpp", "default_engine_llama_cpp"
        else:
            value, reason = "vllm", "default_engine_vllm"
    elif model.domain == "diffusion":
        value, reason = "diffusers", "default_engine_diffusers"
    elif model.domain == "audio":
        value, reason = "faster-whisper", "default_engine_whisper"
    else:
        value, reason = "transformers", "default_engine_transformers"
    return Given(value, origin="assumed", reason=reason), (Assumption("engine", value, reason),)


def _local(
    workload: InferenceWorkload, policy: Policy, device: Accelerator | None, weights_format: Given[str] | None
) -> bool:
    """True for a few people on a desktop card or a unified-memory machine, with no server format asked for."""
    if device is None:
        return False
    if device.unified_memory and device.vendor != "nvidia":
        return True
    stated = weights_format is not None and weights_format.origin == "stated"
    at_once = workload.concurrency.value if workload.concurrency else 1
    desk = device.tier in ("consumer", "integrated")
    return desk and not stated and at_once <= policy.concurrency.file_engine_up_to


def _is_file(fmt: str) -> bool:
    """True for GGUF names, which the llama.cpp family loads."""
    try:
        return weight_format(fmt).mix is not None
    except UnknownFormat:
        return False
