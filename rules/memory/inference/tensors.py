"""The matrices of a text model by name and size, as quantisers and parallel engines tell them apart.

Built on `rules.memory.anatomy`, so that the groups add up to `params_total`. A group is every tensor of one name over
all layers; `row` is the length of a row (the input width), which decides whether a 256-wide block type can be used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from rules.catalog.models import ModelSpec
from rules.memory.anatomy import Anatomy, anatomy, attention_layers

Kind = Literal["embedding", "head", "attention", "mlp", "experts", "shared", "mixer", "small", "vision"]


class TensorGroup(NamedTuple):
    """`params` over all `layers`; `name` is the GGUF name of the tensor."""

    name: str
    kind: Kind
    params: float
    row: int
    layers: int


# Models whose checkpoint keeps query, key and value in one matrix.
_FUSED_QKV = frozenset("gpt2 gpt_bigcode gpt_neox falcon bloom mpt phi3 chatglm qwen gptj dbrx".split())


def tensor_groups(model: ModelSpec) -> tuple[TensorGroup, ...]:
    """Every tensor group of a text model; their `params` sum to `params_total`."""
    parts = anatomy(model)
    hidden = model.hidden or 1
    groups = [
        TensorGroup("token_embd", "embedding", parts.embedding, hidden, 1),
        TensorGroup("output", "head", parts.head, hidden, 1),
        TensorGroup("small", "small", parts.norms + parts.router, hidden, parts.layers),
        TensorGroup("vision", "vision", parts.vision, hidden, 1),
    ]
    groups += _attention(model, parts)
    mlp_layers = max(1, parts.layers - (model.moe.moe_layers if model.moe else 0))
    groups += _mlp(model, "mlp", parts.mlp, model.intermediate or hidden, mlp_layers)
    if model.moe:
        moe = model.moe
        groups += _mlp(model, "experts", parts.experts_routed, moe.expert_intermediate or hidden, moe.moe_layers)
        groups += _mlp(model, "shared", parts.experts_shared, moe.shared_intermediate or hidden, moe.moe_layers)
    if parts.other > 0:
        fused = min(float(parts.other), _mixer_qkv(model))
        layers = max(1, model.layer_kinds.get("linear", parts.layers))
        groups.append(TensorGroup("attn_qkv", "mixer", fused, hidden, layers))
        groups.append(TensorGroup("mixer", "mixer", parts.other - fused, hidden, layers))
    elif parts.other:
        groups.append(TensorGroup("mixer", "small", parts.other, hidden, parts.layers))
    return tuple(g for g in groups if g.params)


def _attention(model: ModelSpec, parts: Anatomy) -> list[TensorGroup]:
    total, hidden = parts.attention, model.hidden or 1
    layers = max(1, attention_layers(model))
    heads = model.heads or 1
    if model.mla:
        output = min(total, layers * heads * model.mla.v_head * hidden)
        return [
            TensorGroup("attn_mla", "attention", total - output, hidden, layers),
            TensorGroup("attn_output", "attention", output, heads * model.mla.v_head, layers),
        ]
    head_dim = model.head_dim or max(1, hidden // heads)
    kv = model.kv_heads or heads
    unit = total / (2 * heads + 2 * kv)
    out = TensorGroup("attn_output", "attention", unit * heads, heads * head_dim, layers)
    if model.hf_model_type in _FUSED_QKV:
        return [TensorGroup("attn_qkv", "attention", unit * (heads + 2 * kv), hidden, layers), out]
    return [
        TensorGroup("attn_q", "attention", unit * heads, hidden, layers),
        TensorGroup("attn_k", "attention", unit * kv, hidden, layers),
        TensorGroup("attn_v", "attention", unit * kv, hidden, layers),
        out,
    ]


def _mixer_qkv(model: ModelSpec) -> float:
    """Parameters of the fused query, key and value projection of all linear-attention layers."""
    a = model.linear_attn
    if a is None or not (a.key_heads and a.value_heads and a.key_dim and a.value_dim):
        return 0.0
    width = 2 * a.key_heads * a.key_dim + a.value_heads * a.value_dim
    return float(model.layer_kinds.get("linear", 0) * width * (model.hidden or 0))


def _mlp(model: ModelSpec, kind: Kind, total: float, width: int, layers: int) -> list[TensorGroup]:
    hidden = model.hidden or 1
    if not total:
        return []
    share = total / (3 if model.gated_mlp else 2)
    groups = [
        TensorGroup("ffn_up", kind, share, hidden, layers),
        TensorGroup("ffn_down", kind, share, width, layers),
    ]
    if model.gated_mlp:
        groups.append(TensorGroup("ffn_gate", kind, share, hidden, layers))
    return groups


def largest_matrix_params(model: ModelSpec) -> int:
    """Parameters of the largest matrix inside the blocks (one expert counts as its own matrix)."""
    hidden = model.hidden or 1
    widths: list[int] = [(model.heads or 1) * (model.head_dim or 1)]
    if model.moe:
        widths += [model.moe.expert_intermediate, model.moe.shared_intermediate]
    if not model.moe or model.moe.moe_layers < (model.layers or 0):
        widths.append(model.intermediate or 0)
    return hidden * max(widths)


def selected_layers(selector: str, layers: int) -> Callable[[int], bool]:
    """Predicate over layer numbers for a selector of the GGUF mixes (see `data/formats.toml`)."""
    eighth = layers // 8
    return {
        "all": lambda i: True,
        "first2": lambda i: i < 2,
        "first4": lambda i: i < 4,
        "sixteenth": lambda i: i < layers // 16,
        "eighth": lambda i: i < eighth,
        "middle": lambda i: eighth <= i < 7 * layers // 8,
        "more": lambda i: i < eighth or i >= 7 * layers // 8 or (i - eighth) % 3 == 2,
    }[selector]
