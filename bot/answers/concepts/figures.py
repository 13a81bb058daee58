"""The user's own figures in an explanation: each function gives a note, or None where the question lacks what it needs.

All are computed by the laws or read from the catalogue. GiB are 2**30 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rules.advice.judge import judge
from rules.advice.types import Advice
from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Support, capability_of
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.formats import UnknownFormat, kv_format, weight_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Param
from rules.memory.inference.kv import cache_shape
from rules.memory.inference.weights import weight_bytes
from rules.memory.usable import usable_bytes, visible_bytes
from rules.policy import Policy
from rules.records import dataclass
from rules.units import GIB, to_gib
from rules.workload import Given, InferenceWorkload, TrainingWorkload

_USUAL_FILE = "gguf:Q4_K_M"
_STATES_BYTES = 16  # fp32 weights, gradients and two moments, a parameter
_WEIGHTS_BYTES = 4
_GRADIENTS_BYTES = 4
_KIB = 1024
_DEFAULT_SHARE = 0.9  # what vLLM takes of a card where nobody says otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of the question: its model, its device and how many, its CPU, and the advice on it if there is."""

    policy: Policy
    model: ModelSpec | None = None
    device: Accelerator | None = None
    count: int = 1
    cpu: Cpu | None = None
    advice: Advice | None = None
    tp: int | None = None

    @property
    def length(self) -> int:
        """Tokens a sequence: stated or assumed by the advice; 8,192 where there is none."""
        workload = self.advice.workload if self.advice else None
        given = getattr(workload, "context", None) or getattr(workload, "seq_len", None)
        return int(given.value) if given is not None else 8192


def _file_size(facts: Facts) -> Note | None:
    model = facts.model
    if model is None or model.domain != "llm":
        return None
    four = to_gib(weight_bytes(model, weight_format(_USUAL_FILE)).total)
    params: dict[str, Param] = {
        "model": model.display_name,
        "half_gb": model.params_total / 2 / 1e9,
        "file_gb": four * GIB / 1e9,
        "file_gib": four,
        "bf16_gib": to_gib(model.params_total * 2),
    }
    return Note("figure_file_size", params)


def _training_states(facts: Facts) -> Note | None:
    model = facts.model
    if model is None:
        return None
    params: dict[str, Param] = {
        "model": model.display_name,
        "weights_gib": to_gib(model.params_total * 2),
        "states_gib": to_gib(model.params_total * _STATES_BYTES),
    }
    return Note("figure_training_states", params)


def _zero_stages(facts: Facts) -> Note | None:
    model, n = facts.model, facts.count
    if model is None or n < 2:
        return None
    p = model.params_total
    moments = _STATES_BYTES - _WEIGHTS_BYTES - _GRADIENTS_BYTES
    params: dict[str, Param] = {
        "model": model.display_name,
        "count": n,
        "ddp_gib": to_gib(p * _STATES_BYTES),
        "zero1_gib": to_gib(p * (_WEIGHTS_BYTES + _GRADIENTS_BYTES + moments / n)),
        "zero2_gib": to_gib(p * (_WEIGHTS_BYTES + (_GRADIENTS_BYTES + moments) / n)),
        "zero3_gib": to_gib(p * _STATES_BYTES / n),
    }
    return Note("figure_zero_stages", params)


def _pooled(facts: Facts) -> Note | None:
    if facts.device is None or facts.count < 2:
        return None
    each = to_gib(usable_bytes(facts.device))
    return Note("figure_pooled", {"count": facts.count, "device": facts.device.name, "each_gib": each})


def _links(facts: Facts) -> Note | None:
    device = facts.device
    if device is None:
        return None
    if device.nvlink_gb_s:
        return Note("figure_link_nvlink", {"device": device.name, "rate_gb_s": device.nvlink_gb_s})
    return Note("figure_link_pcie", {"device": device.name, "pcie": device.pcie})


def _heads(facts: Facts, divides: bool) -> Note | None:
    model, n = facts.model, facts.tp or facts.count
    if model is None or not model.heads or n < 2 or (model.heads % n == 0) is not divides:
        return None
    name = "figure_heads_divide" if divides else "figure_heads_do_not_divide"
    return Note(name, {"model": model.display_name, "heads": model.heads, "n_devices": n})


def _experts(facts: Facts) -> Note | None:
    model = facts.model
    if model is None or model.moe is None:
        return None
    params: dict[str, Param] = {
        "model": model.display_name,
        "total_b": model.params_total / 1e9,
        "active_b": model.params_active / 1e9,
        "file_gib": to_gib(weight_bytes(model, weight_format(_USUAL_FILE)).total),
    }
    return Note("figure_experts", params)


def _share_of_card(facts: Facts) -> Note | None:
    advice, device = facts.advice, facts.device
    if advice is None or device is None or advice.plan is None or advice.plan.kv_cache_tokens is None:
        return None
    weights = sum(part.gib for part in advice.plan.parts if part.part == "weights")
    params: dict[str, Param] = {
        "device": device.name,
        "share_gib": _DEFAULT_SHARE * to_gib(visible_bytes(device)),
        "weights_gib": weights,
        "model": advice.model.name,
        "tokens": int(advice.plan.kv_cache_tokens),
    }
    return Note("figure_share_of_card", params)


def _logits(facts: Facts) -> Note | None:
    model = facts.model
    if model is None or not model.vocab or model.domain != "llm":
        return None
    one = to_gib(facts.length * model.vocab * 4)
    params: dict[str, Param] = {"model": model.display_name, "tokens": facts.length, "vocab": model.vocab, "gib": one}
    return Note("figure_logits", params)


def _unified(facts: Facts) -> Note | None:
    device = facts.device
    if device is None or not device.unified_memory:
        return None
    total_gb, usable_gib = device.memory_gb_marketed, to_gib(usable_bytes(device))
    return Note("figure_unified", {"device": device.name, "total_gb": total_gb, "usable_gib": usable_gib})


_FP8: Mapping[Support, str] = {"native": "figure_fp8_native", "weights": "figure_fp8_weights", "no": "figure_fp8_no"}


def _fp8(facts: Facts) -> Note | None:
    if facts.device is None:
        return None
    return Note(_FP8[capability_of(facts.device).fp8], {"device": facts.device.name})


def _bf16(facts: Facts) -> Note | None:
    if facts.device is None:
        return None
    native = capability_of(facts.device).bf16 == "native"
    return Note("figure_bf16_native" if native else "figure_bf16_no", {"device": facts.device.name})


def _micro_batch(facts: Facts) -> Note | None:
    """GiB that one more sample at once costs, and the most that fit."""
    advice, device, model = facts.advice, facts.device, facts.model
    if advice is None or device is None or model is None or not isinstance(advice.workload, TrainingWorkload):
        return None
    try:
        one, two = (
            judge(replace(advice.workload, micro_batch=Given(n)), model, device, facts.count, facts.policy).demand
            for n in (1, 2)
        )
    except UnsupportedWorkload:
        return None
    params: dict[str, Param] = {
        "model": model.display_name,
        "tokens": facts.length,
        "more_gib": to_gib(two.expected - one.expected),
        "device": device.name,
        "most": advice.limits.micro_batch or 0,
    }
    return Note("figure_micro_batch" if advice.limits.micro_batch else "figure_micro_batch_none", params)


def _cache(facts: Facts) -> Note | None:
    model = facts.model
    trains = facts.advice is not None and isinstance(facts.advice.workload, TrainingWorkload)
    if model is None or model.domain != "llm" or trains:
        return None
    shape = cache_shape(model, kv_format("fp16"))
    params: dict[str, Param] = {
        "model": model.display_name,
        "kib": shape.per_token / _KIB,
        "tokens": facts.length,
        "gib": to_gib(shape.sequence_bytes(facts.length, shape.window or None)),
    }
    return Note("figure_cache", params)


def _read_per_token(facts: Facts) -> Note | None:
    model, device = facts.model, facts.device
    if model is None or device is None or model.domain != "llm":
        return None
    workload = facts.advice.workload if facts.advice else None
    given = workload.weights_format if isinstance(workload, InferenceWorkload) else None
    name = given.value if given else "bf16"
    try:
        total = weight_bytes(model, weight_format(name)).total
    except UnknownFormat:
        return None
    params: dict[str, Param] = {
        "model": model.display_name,
        "read_gib": to_gib(total * model.params_active / model.params_total),
        "device": device.name,
        "rate_gb_s": device.bandwidth_gb_s,
        "format": name,
    }
    return Note("figure_read_per_token", params)


def _quick_rule(facts: Facts) -> Note | None:
    rule = facts.advice.quick_rule if facts.advice else None
    if rule is None:
        return None
    return Note("figure_quick_rule", {"gib": rule.gib, "real_gib": rule.real_gib})


def _vector_units(facts: Facts) -> Note | None:
    cpu = facts.cpu
    if cpu is None:
        return None
    if cpu.amx:
        return Note("figure_cpu_amx", {"cpu": cpu.name})
    return Note("figure_cpu_avx512" if cpu.avx512 else "figure_cpu_no_avx512", {"cpu": cpu.name})


FIGURES: Mapping[str, Callable[[Facts], Note | None]] = {
    "file_size": _file_size,
    "training_states": _training_states,
    "zero_stages": _zero_stages,
    "pooled": _pooled,
    "links": _links,
    "heads_divide": lambda facts: _heads(facts, True),
    "heads_do_not_divide": lambda facts: _heads(facts, False),
    "experts": _experts,
    "share_of_card": _share_of_card,
    "logits": _logits,
    "unified": _unified,
    "fp8": _fp8,
    "bf16": _bf16,
    "micro_batch": _micro_batch,
    "cache": _cache,
    "read_per_token": _read_per_token,
    "quick_rule": _quick_rule,
    "vector_units": _vector_units,
}
