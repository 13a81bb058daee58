"""The parts of a `config.json` that vary by block: attention kinds, latent attention, experts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

Config = Mapping[str, Any]

_KINDS = {
    "full_attention": ("full", "F"),
    "sliding_attention": ("sliding", "S"),
    "chunked_attention": ("sliding", "S"),
    "linear_attention": ("linear", "L"),
    "mamba": ("mamba2", "M"),
    "attention": ("full", "F"),
    "conv": ("conv", "V"),
}


def layer_kinds_of(text: Config, kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """`layer_kinds`, `layer_pattern` and `sliding_window` of a text model."""
    layers = int(row["layers"])
    if row["arch_type"] == "ssm":
        return {"layer_kinds": {"mamba": layers}, "layer_pattern": None, "sliding_window": None}
    window = text.get("sliding_window")
    types = text.get("layer_types")
    if isinstance(types, list) and len(types) == layers:
        names = [_KINDS.get(str(t), ("full", "F")) for t in types]
        counts = dict(Counter(name for name, _ in names))
        pattern = "".join(letter for _, letter in names) if len(counts) > 1 else None
        return {
            "layer_kinds": counts,
            "layer_pattern": pattern,
            "sliding_window": window if "sliding" in counts else None,
        }
    every = {"gemma2": 2, "gemma3_text": 6, "cohere2": 4}.get(kind)
    every = text.get("sliding_window_pattern") or (every if window else None)
    if window and isinstance(every, int) and every > 1:
        pattern = "".join("F" if i % every == every - 1 else "S" for i in range(layers))
        counts = {"sliding": pattern.count("S"), "full": pattern.count("F")}
        return {"layer_kinds": counts, "layer_pattern": pattern, "sliding_window": window}
    if window and text.get("use_sliding_window", kind == "mistral"):
        return {"layer_kinds": {"sliding": layers}, "layer_pattern": None, "sliding_window": window}
    return {"layer_kinds": {"full": layers}, "layer_pattern": None, "sliding_window": None}


def latent_attention_of(text: Config) -> dict[str, Any] | None:
    """Sizes of multi-head latent attention, or None where the model has none."""
    if not text.get("kv_lora_rank"):
        return None
    return {
        "q_lora_rank": text.get("q_lora_rank"),
        "kv_lora_rank": text["kv_lora_rank"],
        "qk_nope": text.get("qk_nope_head_dim", 128),
        "qk_rope": text.get("qk_rope_head_dim", 64),
        "v_head": text.get("v_head_dim", 128),
    }


def experts_of(text: Config, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Sizes of a mixture of experts, or None for a dense model."""
    experts = _first(text, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    if not experts or experts < 2:
        return None
    width = _first(text, "moe_intermediate_size") or row["intermediate"]
    shared = _first(text, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or 0
    shared_width = _first(text, "shared_expert_intermediate_size") or shared * width
    layers = int(row["layers"])
    dense = int(text.get("first_k_dense_replace") or len(text.get("mlp_only_layers") or ()))
    step = int(text.get("decoder_sparse_step") or text.get("interleave_moe_layer_step") or 1)
    with_experts = (layers - dense) // max(1, step)
    return {
        "experts": experts,
        "active": _first(text, "num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k") or 1,
        "shared": shared or (1 if shared_width else 0),
        "expert_intermediate": width,
        "shared_intermediate": shared_width,
        "dense_layers": layers - with_experts,
        "moe_layers": with_experts,
    }


def _first(text: Config, *keys: str) -> int | None:
    for key in keys:
        value = text.get(key)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
