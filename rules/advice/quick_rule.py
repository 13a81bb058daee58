"""T2's rule of thumb, parameters x bytes a parameter plus a buffer, beside the real sum, with the reason they differ.

The rule is near for plain inference and for adapters. It misleads where something else than the weights is large:
optimizer states of full training, long samples, the cache, the other models of a pipeline, or a runtime that dwarfs a
small model. The largest part that is no weight names the reason.
"""

from __future__ import annotations

from rules.advice.types import QuickRule
from rules.catalog.models import ModelSpec
from rules.formats import UnknownFormat, weight_format
from rules.memory.footprint import Footprint, Note
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import TrainingWorkload, Workload

_ADAPTERS = ("lora", "qlora", "dora")

# Words of part names, by the reason that they make; the first that occurs in a name decides.
_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("quick_rule_states", ("optimizer", "states", "temporaries", "grad", "master", "16bit_copies", "buckets")),
    ("quick_rule_logits", ("logit", "loss")),
    ("quick_rule_kv_cache", ("kv", "cache")),
    ("quick_rule_pipeline", ("text_encoder", "vae", "frozen")),
    ("quick_rule_runtime", ("runtime", "context", "non_torch", "cuda_graphs", "fixed")),
)
_OTHERWISE = "quick_rule_activations"
_NO_WEIGHTS = ("copies", "upcast", "before_quantising", "text_encoder", "vae")


def quick_rule(workload: Workload, model: ModelSpec, footprint: Footprint | None, policy: Policy) -> QuickRule | None:
    """The rule's figure and the real one, both on the fullest device; None where nothing was computed.

    Where a plan splits the weights over devices the rule's figure is split alike, so that the two compare.
    """
    if footprint is None or model.params_total <= 0:
        return None
    weights = model.params_total * _bytes_per_param(workload, model)
    held = sum(part.bytes for part in footprint.parts if _is_weight(part.name))
    split = max(1, round(weights / held)) if held > 0 else 1
    rule_gib = to_gib(weights * (1 + policy.quick_rule.buffer_share)) / split
    real_gib = to_gib(_need_bytes(footprint))
    ratio = real_gib / rule_gib
    params = {"ratio": round(ratio, 2), "quick_gib": round(rule_gib, 1), "real_gib": round(real_gib, 1)}
    return QuickRule(rule_gib, real_gib, Note(_reason(workload, footprint, policy, ratio, held), params, "T2"))


def _reason(workload: Workload, footprint: Footprint, policy: Policy, ratio: float, held: float) -> str:
    training = isinstance(workload, TrainingWorkload)
    if policy.quick_rule.near_from_ratio <= ratio <= policy.quick_rule.near_to_ratio:
        return "quick_rule_near_training" if training else "quick_rule_near_inference"
    if ratio < 1:
        return "quick_rule_offloaded" if held <= 0 else "quick_rule_overstates"
    groups: dict[str, float] = {}
    for part in footprint.parts:
        if not _is_weight(part.name):
            group = _group(part.name)
            groups[group] = groups.get(group, 0.0) + part.bytes
    outside = footprint.device.expected - footprint.reserved.expected
    groups["quick_rule_runtime"] = groups.get("quick_rule_runtime", 0.0) + max(0.0, outside)
    reason = max(groups, key=lambda name: groups[name])
    if reason == "quick_rule_states":
        method = workload.method.value if training and workload.method else "full"  # type: ignore[union-attr]
        return "quick_rule_states_adapters" if method in _ADAPTERS else "quick_rule_full_training"
    return reason


def _group(name: str) -> str:
    return next((reason for reason, words in _REASONS if any(word in name for word in words)), _OTHERWISE)


def _is_weight(name: str) -> bool:
    return "weights" in name and not any(word in name for word in _NO_WEIGHTS)


def _need_bytes(footprint: Footprint) -> float:
    """What the device must have; of an engine with a pool, only the cache that was asked for."""
    parts = footprint.components
    spare = (parts["kv"] - parts["kv_needed"]) / parts.get("devices", 1.0) if "kv_needed" in parts else 0.0
    return (footprint.device.expected or footprint.cpu_bytes) - max(0.0, spare)


def _bytes_per_param(workload: Workload, model: ModelSpec) -> float:
    """Bytes of the format that people would multiply by: the stated one, else 4 bits for QLoRA, else 16 bits."""
    given = workload.weights_dtype if isinstance(workload, TrainingWorkload) else workload.weights_format
    name = given.value if given else None
    if name is None:
        four = isinstance(workload, TrainingWorkload) and workload.method and workload.method.value == "qlora"
        name = "nf4" if four else (model.native_quant or "bf16")
    try:
        return weight_format(name).linear_bits / 8
    except UnknownFormat:
        return 2.0
