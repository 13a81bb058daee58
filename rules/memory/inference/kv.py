"""The cache of keys and values: bytes a token, window limits, latent caches and the states of recurrent layers.

Multi-head and grouped attention keep 2 x kv_heads x head_dim values a token and layer; latent attention (MLA) one
vector of kv_lora_rank + qk_rope; linear and state-space layers a matrix a sequence whatever the length. What an engine
makes of it (full length for sliding layers, expanded latent, padding) is a policy that the engines' laws choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from rules.catalog.models import ModelSpec
from rules.formats import KvFormat, UnknownFormat, kv_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.inference.engines import engine as engine_recipe
from rules.records import dataclass

Latent = Literal["latent", "latent_and_value", "expanded"]

_NO_CACHE = frozenset(("linear", "ssm", "mamba", "mamba2", "conv", "mlp", "moe", "none"))
_WINDOWED = frozenset(("sliding", "chunked", "local"))
# Tokens that share one entry in DeepSeek-V4's compressed layers (model card).
_COMPRESSION = {"compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Cached bytes of one device: `full` and `windowed` a token (all such layers), `state` a sequence.

    `window` is the length of the windowed layers (0 where there are none).
    """

    full: float
    windowed: float
    window: int
    state: float

    @property
    def per_token(self) -> float:
        """Bytes a token while every layer still grows."""
        return self.full + self.windowed

    def sequence_bytes(self, tokens: float, held: float | None = None) -> float:
        """Bytes of one sequence of `tokens`; windowed layers hold at most `held` tokens (None: all)."""
        windowed = tokens if held is None else min(tokens, held)
        return self.full * tokens + self.windowed * windowed + self.state


def cache_shape(
    model: ModelSpec,
    kv: KvFormat,
    *,
    tp: int = 1,
    layer_share: float = 1.0,
    latent: Latent = "latent",
    state_bytes: float = 4.0,
) -> CacheShape:
    """The cache of `model` on one of `tp` devices that hold `layer_share` of the layers.

    Heads are divided by min(tp, kv heads): beyond that they are copied. A latent cache is whole on every rank.
    `state_bytes` is the size of one value of a recurrent state (fp32 in most engines).
    """
    kinds = model.layer_kinds or {"full": (model.layers or 0) if model.arch_type != "ssm" else 0}
    if model.mla:
        layers = sum(n for k, n in kinds.items() if k not in _NO_CACHE)
        per_layer = _latent_bytes(model, kv, tp, latent)
        return CacheShape(per_layer * layers * layer_share, 0.0, 0, _state(model, kinds, tp, state_bytes) * layer_share)
    heads = model.kv_heads or model.heads or 1
    head_dim = model.head_dim or max(1, (model.hidden or 1) // (model.heads or 1))
    local = _heads_bytes(heads, head_dim, kv, tp)
    wide = local
    if model.global_kv_heads or model.global_head_dim:
        wide = _heads_bytes(model.global_kv_heads or heads, model.global_head_dim or head_dim, kv, tp)
    full = windowed = 0.0
    for kind, n in kinds.items():
        if kind in _NO_CACHE:
            continue
        if kind in _WINDOWED:
            windowed += n * local
        else:
            full += n * wide / _COMPRESSION.get(kind, 1)
    window = model.sliding_window or (8192 if "chunked" in kinds else 0)
    if not window:
        full, windowed = full + windowed, 0.0
    return CacheShape(
        full * layer_share, windowed * layer_share, window, _state(model, kinds, tp, state_bytes) * layer_share
    )


def _heads_bytes(heads: int, head_dim: int, kv: KvFormat, tp: int) -> float:
    mine = heads / min(max(1, tp), heads)
    return mine * head_dim * (kv.key_bits + kv.value_bits) / 8


def _latent_bytes(model: ModelSpec, kv: KvFormat, tp: int, latent: Latent) -> float:
    m = model.mla
    assert m is not None
    if latent == "expanded":
        heads = (model.heads or 1) / min(max(1, tp), model.heads or 1)
        return heads * ((m.qk_nope + m.qk_rope) * kv.key_bits + m.v_head * kv.value_bits) / 8
    key = (m.kv_lora_rank + m.qk_rope) * kv.key_bits / 8
    return key + (m.kv_lora_rank * kv.value_bits / 8 if latent == "latent_and_value" else 0.0)


def _state(model: ModelSpec, counts: Mapping[str, int], tp: int, state_bytes: float) -> float:
    """Bytes a sequence of all recurrent layers: the state matrices and the short convolution's tail (16 bits)."""
    total = 0.0
    if model.linear_attn:
        a = model.linear_attn
        if a.value_heads and a.key_dim and a.value_dim:
            width = 2 * (a.key_heads or 0) * a.key_dim + a.value_heads * a.value_dim
            one = a.value_heads * a.key_dim * a.value_dim * state_bytes + max(0, (a.conv or 1) - 1) * width * 2
            total += counts.get("linear", 0) * one
    if model.ssm:
        s = model.ssm
        inner = (s.heads or 0) * (s.head_dim or 0)
        width = inner + 2 * (s.groups or 0) * (s.state or 0)
        one = inner * (s.state or 0) * state_bytes + max(0, (s.conv or 1) - 1) * width * 2
        total += sum(counts.get(k, 0) for k in ("mamba2", "mamba", "ssm")) * one
    heads = model.linear_attn.value_heads if model.linear_attn else model.ssm.heads if model.ssm else None
    return total / min(max(1, tp), heads or 1)


def padded(cells: float, multiple: int) -> int:
    """`cells` rounded up to a multiple, as engines allocate them."""
    return int(math.ceil(cells / multiple) * multiple)


def kv_bytes_per_token(
    model: ModelSpec, kv_name: str | KvFormat | None = None, engine: str | None = None, tp: int = 1
) -> float:
    """Cache bytes that one more token of one sequence takes on one device, while no window is full.

    Raises `UnsupportedWorkload` for an unknown format or engine.
    """
    try:
        kv = kv_name if isinstance(kv_name, KvFormat) else kv_format(kv_name or "fp16")
    except UnknownFormat as exc:
        raise UnsupportedWorkload("unknown_kv_format", format=str(kv_name)) from exc
    expanded = bool(model.mla) and engine_recipe(engine).latent == "expanded"
    return cache_shape(model, kv, tp=max(1, tp), latent="expanded" if expanded else "latent").per_token
