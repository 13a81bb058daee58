"""What one token costs a language model: bytes to read and operations to do, whatever the machine.

Decoding reads every weight that acts once a step (the embedding is only looked up), each sequence's cache, and of a
mixture of experts as many experts as the batch touches. Operations are two a weight that acts, and four a cached token
and query channel for attention. Bytes and parameters come from the memory laws.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rules.catalog.models import ModelSpec
from rules.formats import KvFormat, UnknownFormat, WeightFormat, kv_format, weight_format
from rules.memory.anatomy import anatomy, attention_layers
from rules.memory.errors import UnsupportedWorkload
from rules.memory.inference.kv import CacheShape, cache_shape
from rules.memory.inference.weights import weight_bytes
from rules.records import dataclass

_WINDOWED = ("sliding", "chunked", "local")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Bytes and operations of one token of one model in one format.

    `dense_bytes` act for every token; `expert_bytes` are all routed experts, of which `active` of `experts` act.
    `attention_ops` and `windowed_ops` are operations a token and cached token in full and windowed layers.
    `bits` is the width class of the weights (16, 8, 4, or 2 for look-up formats of about three bits and fewer).
    """

    dense_bytes: float
    expert_bytes: float
    experts: int
    active: int
    dense_params: float
    expert_params: float
    layers: int
    cache: CacheShape
    attention_ops: float
    windowed_ops: float
    hidden: int
    bits: int
    operand_bits: int

    @property
    def moe(self) -> bool:
        """True where experts are routed."""
        return self.expert_bytes > 0

    @property
    def active_params(self) -> float:
        """Weights that act on one token."""
        return self.dense_params + self.expert_params * (self.active / self.experts if self.experts else 0.0)

    def experts_touched(self, tokens: float) -> float:
        """Share of the experts that `tokens` tokens of one step touch, if routing were even: 1 - (1 - k/n)^tokens."""
        if not self.experts:
            return 0.0
        untouched: float = (1.0 - self.active / self.experts) ** max(1.0, tokens)
        return 1.0 - untouched

    def read_bytes(self, tokens: float) -> tuple[float, float]:
        """Dense and expert bytes of a step over `tokens` tokens."""
        return self.dense_bytes, self.expert_bytes * self.experts_touched(tokens)

    def cache_bytes(self, context: float) -> float:
        """Cached bytes that one sequence of `context` tokens reads for its next token."""
        return self.cache.sequence_bytes(context, self.cache.window or None)

    def ops(self, tokens: float, context: float) -> tuple[float, float]:
        """Operations of the weights and of attention for `tokens` tokens with `context` tokens before each."""
        window = min(context, self.cache.window) if self.cache.window else context
        attention = self.attention_ops * context + self.windowed_ops * window
        return 2.0 * self.active_params * tokens, attention * tokens


_CACHE: dict[tuple[Any, ...], Work] = {}


def work_of(model: ModelSpec, weights: str, kv: str | None, file_gib: float | None = None) -> Work:
    """The work of `model` with weights and cache in these formats; raises `UnsupportedWorkload` for unknown formats."""
    key = (model.hf_id, model.params_total, model.layers, weights, kv, file_gib)
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) > 4096:
            _CACHE.clear()
        found = _CACHE[key] = _work(model, weights, kv, file_gib)
    return found


def _work(model: ModelSpec, weights: str, kv: str | None, file_gib: float | None) -> Work:
    try:
        fmt, cached = weight_format(weights), _cache_format(kv)
    except UnknownFormat as error:
        raise UnsupportedWorkload("format_unknown", format=str(error)) from error
    held = weight_bytes(model, fmt, with_vision=False)
    if file_gib:
        held = held.fitted_to(file_gib * 2**30)
    parts = anatomy(model)
    head_bytes = held.head or held.embedding
    head_params = parts.head or parts.embedding
    moe = model.moe
    experts_params = float(parts.experts_routed)
    dense_params = float(parts.total - parts.vision - parts.embedding - parts.head - experts_params + head_params)
    full, windowed = _attention_layers(model)
    per_layer = 4.0 * (model.heads or 1) * (model.head_dim or (model.hidden or 1) // (model.heads or 1))
    if model.mla:
        per_layer = 2.0 * (model.heads or 1) * (2 * model.mla.kv_lora_rank + model.mla.qk_rope)
    return Work(
        dense_bytes=held.blocks + held.small + head_bytes,
        expert_bytes=held.experts if moe else 0.0,
        experts=moe.experts if moe else 0,
        active=moe.active if moe else 0,
        dense_params=dense_params,
        expert_params=experts_params if moe else 0.0,
        layers=(model.layers or 0) + (model.decoder_layers or 0) or 1,
        cache=cache_shape(model, cached),
        attention_ops=per_layer * full,
        windowed_ops=per_layer * windowed,
        hidden=model.hidden or 0,
        bits=_bits(fmt),
        operand_bits=_operand_bits(fmt),
    )


@lru_cache(maxsize=64)
def _cache_format(kv: str | None) -> KvFormat:
    return kv_format(kv or "fp16")


def _attention_layers(model: ModelSpec) -> tuple[int, int]:
    kinds = model.layer_kinds or {}
    windowed = sum(n for kind, n in kinds.items() if kind in _WINDOWED)
    total = attention_layers(model) + 2 * (model.decoder_layers or 0)
    return max(0, total - windowed), windowed


def _bits(fmt: WeightFormat) -> int:
    """Width class: what share of bandwidth a kernel reaches depends on it."""
    name = fmt.name.lower()
    if fmt.mix is not None and "iq" in name.partition(":")[2]:
        return 2
    width = fmt.experts_bits if fmt.experts_bits < fmt.linear_bits else fmt.linear_bits
    return 16 if width > 10 else 8 if width > 7 else 4


def _operand_bits(fmt: WeightFormat) -> int:
    """Width of the operands in the arithmetic: weight-only formats are widened to 16 bits first."""
    name = fmt.name.lower()
    if name.startswith("nvfp4"):
        return 4
    return 8 if name in ("fp8", "fp8_e4m3", "w8a8", "mxfp8") or name.startswith("fp8") else 16
