"""The sizes of a text model as the training laws use them: parameter groups and layer widths on the whole model."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.anatomy import anatomy, attention_layers, mlp_params
from rules.records import dataclass

# Families whose blocks normalise queries and keys, and those with a norm after as well as before each sublayer.
_QK_NORM = frozenset(
    "qwen3 qwen3_moe qwen3_next qwen3_5 qwen3_5_moe gemma3 gemma3_text gemma4 olmo2 olmo3 olmoe apertus "
    "hunyuan_v1_dense lfm2".split()
)
_FOUR_NORMS = frozenset("gemma2 gemma3 gemma3_text gemma4 glm4".split())
_COMPOSED_GELU = frozenset("gpt2 phi gptj gpt_neo".split())  # "gelu_new" written out in torch operations
_FUSED_QKV = frozenset("gpt2 gpt_neox gpt_bigcode falcon bloom mpt phi3 chatglm qwen gpt".split())
_SOFTCAP = frozenset(("gemma2",))
_FLOAT_NORM = frozenset("gemma gemma2 gemma3 gemma3_text gemma4".split())
_LAYER_NORM = frozenset(
    "gpt2 gpt_bigcode starcoder2 bloom opt gpt_neo gpt_neox gptj phi falcon mpt bert roberta xlm-roberta distilbert "
    "mpnet deberta-v2 stablelm_epoch gpt stablelm t5_ln cohere".split()
)
_POST_NORM = frozenset("bert roberta xlm-roberta distilbert mpnet deberta-v2".split())
_PARALLEL_BLOCK = frozenset("gpt_neox gptj phi falcon cohere".split())
_DROPOUT = frozenset("gpt2 bert roberta xlm-roberta distilbert mpnet deberta-v2 opt bart m2m_100 marian".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Widths of one block and parameter counts of the whole (cut) model."""

    kind: str
    hidden: int
    query: int
    kv: int
    heads: int
    intermediate: int
    vocab: int
    layers: int
    attention_layers: int
    moe_layers: int
    gated: bool
    tied: bool
    moe_active: int
    moe_width: int
    shared_width: int
    experts: int
    inner: int  # width of a state-space or linear-attention mixer
    latent: int  # extra widths of latent attention (MLA) a token
    value: int  # width of values and attention output
    embedding: int
    head: int
    attention: float
    mlp: float
    routed: float
    shared: float
    small: float  # router, norms, biases
    vision: int
    qk_norm: bool
    four_norms: bool
    softcap: bool
    window: int  # tokens of a sliding window, 0 where there is none
    window_share: float  # of attention layers that have it
    fused_qkv: bool
    composed_gelu: bool
    float_norm: bool
    layer_norm: bool
    post_norm: bool
    parallel_block: bool
    dropout: bool
    cross: bool
    causal: bool

    @property
    def linear(self) -> float:
        """Weights of the linear layers inside the blocks: what quantisers and adapters touch."""
        return self.attention + self.mlp + self.routed + self.shared

    @property
    def dense_blocks(self) -> float:
        """Parameters of the blocks without routed experts."""
        return self.attention + self.mlp + self.shared + self.small

    @property
    def total(self) -> float:
        """All parameters."""
        return self.embedding + self.head + self.linear + self.small + self.vision


_SHAPES: dict[tuple[int, int | None, int | None, bool], tuple[ModelSpec, Shape]] = {}
_SHAPES_KEPT = 512


def shape_of(model: ModelSpec, layers: int | None, dense_layers: int | None, untied: bool) -> Shape:
    """The shape of a model, or of one cut to `layers` of which the first `dense_layers` have no experts."""
    key = (id(model), layers, dense_layers, untied)  # a spec holds mappings, so it cannot be a key itself
    known = _SHAPES.get(key)
    if known and known[0] is model:
        return known[1]
    if len(_SHAPES) >= _SHAPES_KEPT:
        _SHAPES.clear()
    shape = _shape(model, layers, dense_layers, untied)
    _SHAPES[key] = (model, shape)
    return shape


def _shape(model: ModelSpec, layers: int | None, dense_layers: int | None, untied: bool) -> Shape:
    parts = anatomy(model)
    full_layers = max(1, (model.layers or 0) + (model.decoder_layers or 0))
    count = max(1, min(layers, 100_000)) if layers and layers > 0 else full_layers
    share = count / full_layers
    hidden = model.hidden or max(64, round((model.params_total / (12 * full_layers)) ** 0.5))
    heads = model.heads or max(1, hidden // 128)
    head_dim = model.head_dim or max(1, hidden // heads)
    query, kv, latent, value = heads * head_dim, (model.kv_heads or heads) * head_dim, 0, heads * head_dim
    if model.mla:
        query = kv = heads * (model.mla.qk_nope + model.mla.qk_rope)
        value = heads * model.mla.v_head
        latent = (model.mla.q_lora_rank or 0) + model.mla.kv_lora_rank + model.mla.qk_rope
    moe_layers, active, width, shared_width, experts = 0, 0, 0, 0, 0
    routed, shared, mlp = parts.experts_routed * share, parts.experts_shared * share, parts.mlp * share
    if model.moe and model.moe.moe_layers:
        moe = model.moe
        dense_full = max(0, full_layers - moe.moe_layers)
        dense = dense_full if layers is None or count >= full_layers else min(dense_full, count)
        if dense_layers is not None:
            dense = max(0, min(dense_layers, count))
        moe_layers = count - dense if layers or dense_layers is not None else moe.moe_layers
        routed = parts.experts_routed * moe_layers / moe.moe_layers
        shared = parts.experts_shared * moe_layers / moe.moe_layers
        mlp = float(dense * mlp_params(model)) if layers or dense_layers is not None else float(parts.mlp)
        active, width, experts = moe.active, moe.expert_intermediate, moe.experts
        shared_width = moe.shared_intermediate
    inner = 0
    if model.ssm:
        inner = (model.ssm.heads or 0) * (model.ssm.head_dim or 0) or 2 * hidden  # Mamba 1 has no heads: expansion 2
    elif model.linear_attn:
        inner = model.linear_attn.value_heads * model.linear_attn.value_dim
    kind = model.hf_model_type or ""
    head = parts.head
    tied = head == 0
    if untied and tied and model.domain == "llm":
        head, tied = parts.embedding, False
    n_attention = attention_layers(model) + (model.decoder_layers or 0)
    intermediate = model.intermediate or (0 if model.moe or model.arch_type == "ssm" else 4 * hidden)
    return Shape(
        kind=kind,
        hidden=hidden,
        query=query,
        kv=kv,
        heads=heads,
        intermediate=intermediate,
        vocab=model.vocab or 0,
        layers=count,
        attention_layers=max(0, round(n_attention * share)),
        moe_layers=moe_layers,
        gated=model.gated_mlp,
        tied=tied,
        moe_active=active,
        moe_width=width,
        shared_width=shared_width,
        experts=experts,
        inner=inner,
        latent=latent,
        value=value,
        embedding=parts.embedding,
        head=head,
        attention=(parts.attention + max(0, parts.other)) * share,
        mlp=mlp,
        routed=routed,
        shared=shared,
        small=(parts.router + parts.norms + min(0, parts.other)) * share,
        vision=parts.vision,
        qk_norm=kind in _QK_NORM,
        four_norms=kind in _FOUR_NORMS,
        softcap=kind in _SOFTCAP,
        window=model.sliding_window or 0,
        window_share=min(1.0, model.layer_kinds.get("sliding", 0) / full_layers),
        fused_qkv=kind in _FUSED_QKV,
        composed_gelu=kind in _COMPOSED_GELU,
        float_norm=kind in _FLOAT_NORM,
        layer_norm=kind in _LAYER_NORM,
        post_norm=kind in _POST_NORM,
        parallel_block=kind in _PARALLEL_BLOCK,
        dropout=kind in _DROPOUT,
        cross=bool(model.decoder_layers),
        causal=model.domain == "llm",
    )
