"""Levers: the changes that make it fit, ordered by least harm, each with the GiB it saves and what it costs.

A lever is a function from workload to changed workload (None = does not apply) in one of two tables; its saving is
computed by the law, never stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rules.advice.judge import Judged, judge, outcome_of
from rules.advice.running import blocking, wants_of
from rules.advice.types import Lever
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.formats import UnknownFormat, kv_format, weight_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass
from rules.units import to_gib
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

_SMALLEST_SAVING_GIB = 0.05
_EIGHT_BITS = 9.0  # with the scales of blocks
_ADAPTERS = ("lora", "qlora", "dora")


@dataclass(frozen=True, slots=True)
class _Move:
    id: str
    harm: int  # 0 = free, 1 = slower, 2 = slight quality risk, 3 = another method or more hardware
    change: Callable[[Any, ModelSpec], dict[str, Any] | None]


def _set(**values: Any) -> dict[str, Any]:
    return {name: Given(value, origin="assumed", reason="lever") for name, value in values.items()}


def _shown(value: Any) -> Param:
    return value if type(value) in (int, float) else str(value)


def _value(given: Given[Any] | None, default: Any) -> Any:
    return given.value if given is not None else default


def _weight_bits(name: str) -> float:
    try:
        return weight_format(name).linear_bits
    except UnknownFormat:
        return 16.0


def _kv_bits(name: str) -> float:
    try:
        return max(kv_format(name).key_bits, kv_format(name).value_bits)
    except UnknownFormat:
        return 16.0


def _fused_loss(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    return None if _value(w.fused_loss, False) or model.domain != "llm" else _set(fused_loss=True)


def _flash(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    return _set(attention="flash") if _value(w.attention, "flash") == "eager" else None


def _fused_optimizer(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    full = _value(w.method, "full") not in _ADAPTERS
    return _set(optimizer="adamw_fused") if full and _value(w.optimizer, "adamw") == "adamw" else None


def _checkpointing(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    return None if _value(w.checkpointing, "none") == "full" else _set(checkpointing="full")


def _micro_batch_one(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    return _set(micro_batch=1) if _value(w.micro_batch, 1) > 1 else None


def _eight_bit_optimizer(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    full = _value(w.method, "full") not in _ADAPTERS
    return (
        _set(optimizer="adamw_8bit")
        if full and _value(w.optimizer, "adamw").startswith("adamw") and ("8bit" not in _value(w.optimizer, "adamw"))
        else None
    )


def _half_length(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    length = _value(w.seq_len, 0)
    return _set(seq_len=length // 2) if length >= 1024 else None


def _offload_optimizer(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    full = _value(w.method, "full") not in _ADAPTERS
    return _set(offload="optimizer_cpu") if full and _value(w.offload, "none") == "none" else None


def _to_lora(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if _value(w.method, "full") != "full":
        return None
    return _set(method="lora", lora_rank=16, lora_targets="all_linear", weights_dtype="bf16", mixed_precision=False)


def _to_qlora(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if _value(w.method, "full") not in ("full", "lora", "dora") or model.domain != "llm":
        return None
    return _set(
        method="qlora",
        weights_dtype="nf4",
        lora_rank=_value(w.lora_rank, 16),
        lora_targets=_value(w.lora_targets, "all_linear"),
        optimizer="paged_adamw_8bit",
        mixed_precision=False,
    )


def _kv_8_bit(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if _kv_bits(_value(w.kv_dtype, "fp16")) <= 9 or model.domain != "llm":
        return None
    return _set(kv_dtype="q8_0" if _value(w.engine, "vllm") in ("llama.cpp", "ollama") else "fp8")


def _weights(bits: int) -> Callable[[InferenceWorkload, ModelSpec], dict[str, Any] | None]:
    def change(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
        if model.domain != "llm" or _weight_bits(_value(w.weights_format, "bf16")) <= bits + 2:
            return None
        files = _value(w.engine, "vllm") in ("llama.cpp", "ollama")
        names = {8: "gguf:Q8_0", 4: "gguf:Q4_K_M"} if files else {8: "fp8", 4: "awq"}
        return _set(weights_format=names[bits])

    return change


def _half_context(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    length = _value(w.context, 0)
    return _set(context=length // 2) if length >= 2048 and model.domain == "llm" else None


def _one_sequence(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    at_once = _value(w.concurrency, 1)
    return _set(concurrency=max(1, at_once // 2)) if at_once > 1 else None


def _batch_one(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    return _set(batch=1) if _value(w.batch, 1) > 1 and model.domain != "llm" else None


def _vae_slicing(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    sliced = _value(w.vae_slicing, False) or _value(w.batch, 1) == 1
    return None if model.domain != "diffusion" or sliced else _set(vae_slicing=True)


def _model_offload(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if model.domain != "diffusion" or _value(w.offload, "none") != "none":
        return None
    return _set(offload="model_cpu")


def _sequential_offload(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if model.domain != "diffusion" or _value(w.offload, "none") == "sequential_cpu":
        return None
    return _set(offload="sequential_cpu")


def _denoiser_8_bit(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if model.domain != "diffusion" or _weight_bits(_value(w.weights_format, "bf16")) <= _EIGHT_BITS:
        return None
    return _set(weights_format="fp8", text_encoder_format="fp8")


def _text_encoder_8_bit(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    small = _weight_bits(_value(w.weights_format, "bf16")) <= _EIGHT_BITS
    if model.domain != "diffusion" or not small or w.text_encoder_format is not None:
        return None
    return _set(text_encoder_format="fp8")


def _fill_the_card(w: InferenceWorkload, model: ModelSpec) -> dict[str, Any] | None:
    paged = _value(w.engine, "") in ("vllm", "tgi", "lmdeploy")
    if not paged or model.domain != "llm" or _value(w.gpu_memory_utilization, 0.9) >= 0.95:
        return None
    return _set(gpu_memory_utilization=0.95, max_batched_tokens=1024)


def _offload_parameters(w: TrainingWorkload, model: ModelSpec) -> dict[str, Any] | None:
    if _value(w.offload, "none") != "none" or model.domain != "llm":
        return None
    return _set(offload="params_cpu+optimizer_cpu")


_TRAINING = (
    _Move("fused_loss", 0, _fused_loss),
    _Move("flash_attention", 0, _flash),
    _Move("fused_optimizer", 0, _fused_optimizer),
    _Move("checkpointing", 1, _checkpointing),
    _Move("micro_batch_one", 1, _micro_batch_one),
    _Move("eight_bit_optimizer", 2, _eight_bit_optimizer),
    _Move("offload_optimizer", 2, _offload_optimizer),
    _Move("offload_parameters", 2, _offload_parameters),
    _Move("half_length", 2, _half_length),
    _Move("to_lora", 3, _to_lora),
    _Move("to_qlora", 3, _to_qlora),
)
_INFERENCE = (
    _Move("vae_slicing", 0, _vae_slicing),
    _Move("fill_the_card", 1, _fill_the_card),
    _Move("kv_8_bit", 1, _kv_8_bit),
    _Move("batch_one", 1, _batch_one),
    _Move("weights_8_bit", 1, _weights(8)),
    _Move("denoiser_8_bit", 1, _denoiser_8_bit),
    _Move("text_encoder_8_bit", 1, _text_encoder_8_bit),
    _Move("model_offload", 2, _model_offload),
    _Move("sequential_offload", 2, _sequential_offload),
    _Move("half_context", 2, _half_context),
    _Move("fewer_sequences", 2, _one_sequence),
    _Move("weights_4_bit", 2, _weights(4)),
)


def levers(
    workload: Workload, model: ModelSpec, device: Accelerator, count: int, policy: Policy, now: Judged
) -> tuple[Lever, ...]:
    """Every lever that saves memory here, least harm first, then largest saving; one more device comes last."""
    table = _TRAINING if isinstance(workload, TrainingWorkload) else _INFERENCE
    found = [lever for move in table if (lever := _pull(move, workload, model, device, count, policy, now))]
    found.sort(key=lambda lever: (lever.harm, -lever.saves_gib))
    found.extend(_more_devices(workload, model, device, count, policy, now))
    return tuple(found)


def _pull(
    move: _Move, workload: Workload, model: ModelSpec, device: Accelerator, count: int, policy: Policy, now: Judged
) -> Lever | None:
    changes = move.change(workload, model)
    if changes is None:
        return None
    changed = replace(workload, **changes)
    if blocking(device, wants_of(changed, model)) is not None:
        return None
    try:
        after = judge(changed, model, device, count, policy)
    except UnsupportedWorkload:
        return None
    saved_gib = to_gib(now.demand.expected - after.demand.expected)
    if saved_gib < _SMALLEST_SAVING_GIB:
        return None
    params: dict[str, Param] = {name: _shown(given.value) for name, given in changes.items()}
    outcome = outcome_of(after, model, device, policy)
    return Lever(move.id, saved_gib, outcome, Note(f"lever_price_{move.id}"), move.harm, params)


def _more_devices(
    workload: Workload, model: ModelSpec, device: Accelerator, count: int, policy: Policy, now: Judged
) -> Iterator[Lever]:
    for more in (n for n in policy.candidates.device_counts if n > count):
        try:
            after = judge(workload, model, device, more, policy)
        except UnsupportedWorkload:
            return
        saved_gib = to_gib(now.demand.expected - after.demand.expected)
        outcome = outcome_of(after, model, device, policy)
        if saved_gib >= _SMALLEST_SAVING_GIB and outcome != "oom":
            params: dict[str, Param] = {"count": more, "device": device.name, "plan": after.placed.plan}
            yield Lever("more_devices", saved_gib, outcome, Note("lever_price_more_devices"), 3, params)
            return
