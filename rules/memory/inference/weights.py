"""Bytes of the weights in a format: per tensor group for GGUF mixes, by place for checkpoints.

`weight_bytes` gives the whole model split by where engines may put it (embedding, head, blocks without routed experts,
routed experts, vision tower). Rules of the GGUF mixes: llama.cpp `llama_tensor_get_type`.
"""

from __future__ import annotations

from functools import lru_cache

from rules.catalog.models import ModelSpec
from rules.formats import GgufMix, MixRule, WeightFormat, gguf_bits
from rules.memory.inference.tensors import TensorGroup, selected_layers, tensor_groups
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class WeightBytes:
    """Bytes by place. `small` (norms, router, biases) is not sharded by tensor parallelism."""

    embedding: float
    head: float
    blocks: float
    experts: float
    small: float
    vision: float

    @property
    def total(self) -> float:
        """The whole model."""
        return self.embedding + self.head + self.blocks + self.experts + self.small + self.vision

    def fitted_to(self, total: float) -> WeightBytes:
        """The split with another total (a stated file size): mixes differ in their experts, else everywhere alike."""
        if not self.total:
            return self
        rest = self.total - self.experts
        if self.experts > rest and total > 1.5 * rest:
            return WeightBytes(self.embedding, self.head, self.blocks, total - rest, self.small, self.vision)
        f = total / self.total
        return WeightBytes(
            self.embedding * f, self.head * f, self.blocks * f, self.experts * f, self.small * f, self.vision * f
        )


def weight_bytes(model: ModelSpec, fmt: WeightFormat, *, with_vision: bool = True) -> WeightBytes:
    """Bytes of the model's weights in `fmt`. GGUF files hold no vision tower (it is a file of its own)."""
    at = {"embedding": 0.0, "head": 0.0, "attention": 0.0, "mlp": 0.0, "experts": 0.0, "small": 0.0, "vision": 0.0}
    is_gguf = fmt.kind == "gguf"
    conditions = _Conditions.of(model) if is_gguf else None
    for group in tensor_groups(model):
        if group.kind == "vision" and (is_gguf or not with_vision):
            continue
        bits = _gguf_group_bits(fmt, group, conditions) if conditions else _checkpoint_bits(fmt, group)
        place = group.kind if group.kind in at else "attention"
        at[place] += group.params * bits / 8
    return WeightBytes(
        at["embedding"], at["head"], at["attention"] + at["mlp"], at["experts"], at["small"], at["vision"]
    )


def latent_projection_bytes(model: ModelSpec, fmt: WeightFormat) -> float:
    """Bytes of the matrices that turn MLA's latent into keys and values of all heads (0 for other attention)."""
    if model.mla is None or fmt.mix is None:
        return 0.0
    params = (model.layers or 0) * (model.heads or 0) * (model.mla.qk_nope + model.mla.v_head) * model.mla.kv_lora_rank
    group = TensorGroup("attn_mla", "attention", params, model.mla.kv_lora_rank, model.layers or 1)
    return params * _gguf_group_bits(fmt, group, _Conditions.of(model)) / 8


def _checkpoint_bits(fmt: WeightFormat, group: TensorGroup) -> float:
    kind = group.kind
    if kind == "embedding":
        return fmt.embedding_bits
    if kind == "head":
        return fmt.head_bits
    if kind in ("small", "vision"):
        return fmt.rest_bits
    if kind == "experts":
        return fmt.experts_bits
    if kind == "attention" and fmt.attention_bits is not None:
        return fmt.attention_bits
    return fmt.linear_bits


@dataclass(frozen=True, slots=True)
class _Conditions:
    gqa4: bool
    moe4: bool
    moe8: bool
    llama_70b: bool
    tied: bool
    falcon: bool

    @classmethod
    def of(cls, model: ModelSpec) -> _Conditions:
        gqa = (model.heads or 1) / (model.kv_heads or model.heads or 1)
        experts = model.moe.experts if model.moe else 1
        return cls(
            gqa4=gqa >= 4,
            moe4=experts >= 4,
            moe8=experts == 8,
            llama_70b=model.layers == 80 and gqa > 1 and model.hf_model_type == "llama",
            tied=model.tie_embeddings is not False,
            falcon=model.hf_model_type == "falcon",
        )


def _gguf_group_bits(fmt: WeightFormat, group: TensorGroup, given: _Conditions) -> float:
    mix = fmt.mix
    assert mix is not None
    if group.kind == "small":
        return 32.0
    if mix.moe_rest and given.moe4 and group.kind in ("attention", "shared", "mixer", "mlp"):
        return gguf_bits(mix.moe_rest, group.row)
    name = group.name
    if group.kind == "experts" and mix.experts:
        return gguf_bits(mix.experts, group.row)
    if group.kind == "head" or (group.kind == "embedding" and given.tied):
        name = "output"
        if given.falcon:
            return max(gguf_bits(mix.base), gguf_bits("Q8_0"))
    return _mixed_bits(mix, name, group.layers, group.row, given)


@lru_cache(maxsize=4096)
def _mixed_bits_cached(
    mix_name: str, base: str, rules: tuple[MixRule, ...], layers: int, row: int, given: _Conditions, name: str
) -> float:
    total = 0.0
    tests = [(rule, selected_layers(rule.layers, layers)) for rule in rules if _holds(rule, given)]
    for i in range(layers):
        kind = next((rule.type for rule, test in tests if test(i)), base)
        if name == "attn_v" and given.llama_70b and kind in ("Q3_K", "Q4_K"):
            kind = "Q5_K"
        total += gguf_bits(kind, row)
    return total / layers


def _mixed_bits(mix: GgufMix, name: str, layers: int, row: int, given: _Conditions) -> float:
    rules = mix.rules.get(name, ())
    if given.moe8 and f"moe8_{name}" in mix.rules:
        rules = mix.rules[f"moe8_{name}"]
    if name == "output" and gguf_bits(mix.base) > 8:
        rules = (MixRule(mix.base),)
    if name == "output" and row % 256:
        rules = (MixRule("Q8_0" if gguf_bits(mix.base) < 16 else mix.base),)
    return _mixed_bits_cached(mix.name, mix.base, rules, layers, row, given, name) * mix.scale


def _holds(rule: MixRule, given: _Conditions) -> bool:
    if rule.condition == "gqa4":
        return given.gqa4
    if rule.condition == "gqa4moe":
        return given.gqa4 or given.moe4
    return True
