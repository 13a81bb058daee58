"""Where the parameters of a text model sit: embedding, head, attention, MLP, experts, norms.

Every law needs the split, because engines quantise, shard and offload the pieces differently. What the formulas do
not name (state-space mixers, biases, small projections) is `other`: the published total less the rest, so that the
sum is always `params_total`. Checked against the catalogue's own recount in the tests.
"""

from __future__ import annotations

from rules.catalog.models import Mla, ModelSpec
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Anatomy:
    """Parameter counts over the whole model, unless named `_per_layer`.

    `linear` is what quantisers and LoRA's "all linear" touch: attention projections, MLPs, experts and mixers.
    """

    embedding: int
    head: int
    attention: int
    mlp: int
    experts_routed: int
    experts_shared: int
    router: int
    norms: int
    vision: int
    other: int
    layers: int

    @property
    def linear(self) -> int:
        """Weights of the linear layers inside the blocks (what 4-bit formats quantise)."""
        return self.attention + self.mlp + self.experts_routed + self.experts_shared + max(0, self.other)

    @property
    def blocks(self) -> int:
        """All parameters of the repeated blocks."""
        return self.linear + self.router + self.norms

    @property
    def total(self) -> int:
        """Everything: equals the model's `params_total`."""
        return self.embedding + self.head + self.blocks + self.vision + min(0, self.other)

    @property
    def per_layer(self) -> float:
        """Mean parameters of one block."""
        return self.blocks / self.layers


def attention_params(model: ModelSpec) -> int:
    """Projection weights of one attention block (q, k, v, output), without biases."""
    hidden, heads = model.hidden or 0, model.heads or 0
    if model.mla:
        return _mla_params(hidden, heads, model.mla)
    head_dim = model.head_dim or (hidden // heads if heads else 0)
    kv_heads = model.kv_heads or heads
    return 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim


def _mla_params(hidden: int, heads: int, m: Mla) -> int:
    query_width = heads * (m.qk_nope + m.qk_rope)
    query = hidden * m.q_lora_rank + m.q_lora_rank * query_width if m.q_lora_rank else hidden * query_width
    down = hidden * (m.kv_lora_rank + m.qk_rope)
    up = m.kv_lora_rank * heads * (m.qk_nope + m.v_head)
    return query + down + up + heads * m.v_head * hidden


def mlp_params(model: ModelSpec) -> int:
    """Weights of one dense MLP block: three matrices when gated, else two."""
    return (3 if model.gated_mlp else 2) * (model.hidden or 0) * (model.intermediate or 0)


def attention_layers(model: ModelSpec) -> int:
    """Blocks that hold a softmax attention (all of them, but for hybrids and state-space models)."""
    if not model.layer_kinds:
        return 0 if model.arch_type == "ssm" else (model.layers or 0)
    not_attention = ("linear", "ssm", "mamba", "mamba2", "conv", "mlp", "moe", "none")
    return sum(n for kind, n in model.layer_kinds.items() if kind not in not_attention)


def anatomy(model: ModelSpec) -> Anatomy:
    """Splits `params_total` of a text model into its pieces."""
    layers = (model.layers or 0) + (model.decoder_layers or 0)
    hidden, vocab = model.hidden or 0, model.vocab or 0
    table = model.params_embedding or vocab * hidden
    head = table if model.tie_embeddings is False else 0
    n_attention = attention_layers(model) + 2 * (model.decoder_layers or 0)
    attention = n_attention * attention_params(model)
    routed = shared = router = 0
    mlp_layers = layers
    if model.moe:
        moe = model.moe
        per_width = (3 if model.gated_mlp else 2) * hidden
        routed = moe.moe_layers * moe.experts * per_width * moe.expert_intermediate
        shared = moe.moe_layers * per_width * moe.shared_intermediate
        router = moe.moe_layers * moe.experts * hidden
        mlp_layers = layers - moe.moe_layers
    if model.layer_kinds.get("mamba2") or model.arch_type == "ssm":
        mlp_layers = model.layer_kinds.get("mlp", 0)
    mlp = max(0, mlp_layers) * mlp_params(model)
    norms = 2 * hidden * layers + hidden
    named = table + head + attention + mlp + routed + shared + router + norms + model.vision_params
    # Rows without an output head (embedding models) and experts in a narrower latent space count less than the formula.
    if named > model.params_total and head and named - model.params_total >= 0.9 * head:
        named, head = named - head, 0
    if named > 1.005 * model.params_total:
        excess = min(routed or mlp, named - model.params_total)
        routed, mlp = (routed - excess, mlp) if routed else (routed, mlp - excess)
        named -= excess
    return Anatomy(
        embedding=table,
        head=head,
        attention=attention,
        mlp=mlp,
        experts_routed=routed,
        experts_shared=shared,
        router=router,
        norms=norms,
        vision=model.vision_params,
        other=model.params_total - named,
        layers=max(1, layers),
    )
