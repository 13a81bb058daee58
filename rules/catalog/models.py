"""Model architectures: one `ModelSpec` per catalogue row, as the memory and speed laws need it.

A row is plain JSON (see `data/models.jsonl`, conventions in `data/README.md`). `ModelSpec.from_row` checks it and
raises `CatalogError` with the row's id and field where it is wrong. Counts are parameters, never bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from rules.catalog.display_names import display_name
from rules.catalog.errors import CatalogError
from rules.records import dataclass

Domain = Literal["llm", "encoder", "seq2seq", "audio", "vision", "dual-encoder", "diffusion", "classical"]

_DOMAIN_OF_ARCH: dict[str, Domain] = {
    "decoder": "llm",
    "hybrid-decoder": "llm",
    "ssm": "llm",
    "encoder": "encoder",
    "encoder-decoder": "seq2seq",
    "cnn": "vision",
    "vision-transformer": "vision",
    "dual-encoder": "dual-encoder",
    "dit": "diffusion",
    "unet": "diffusion",
    "classical": "classical",
}


@dataclass(frozen=True, slots=True)
class Moe:
    """Mixture of experts. `shared_intermediate` is the width of all shared experts together (0 where there is none)."""

    experts: int
    active: int
    shared: int
    expert_intermediate: int
    shared_intermediate: int
    moe_layers: int


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention (DeepSeek): the cache holds `kv_lora_rank + qk_rope` values a token and layer."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope: int
    qk_rope: int
    v_head: int


@dataclass(frozen=True, slots=True)
class Ssm:
    """Mamba-2 mixer sizes (heads x head_dim is the inner width)."""

    heads: int
    head_dim: int
    groups: int
    state: int
    conv: int


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """Gated DeltaNet mixer sizes; the state a sequence and layer is value_heads x key_dim x value_dim."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv: int


@dataclass(frozen=True, slots=True)
class VisionTower:
    """A ViT: square images of `image` pixels cut into `patch` x `patch` patches."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    patch: int
    image: int

    @property
    def tokens(self) -> int:
        """Patch tokens plus the class token, for the native image size."""
        return (self.image // self.patch) ** 2 + 1


@dataclass(frozen=True, slots=True)
class DiffusionComponents:
    """Parameter counts of a diffusion pipeline; `vae` may be unknown."""

    denoiser: int
    text_encoders: Mapping[str, int]
    vae: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One architecture. `origin` says where a row comes from: `catalogue`, `override`, `hub`, `config` or `neighbour`.

    For text models `layers`, `hidden`, `heads`, `kv_heads`, `head_dim`, `vocab` are set; for CNNs and diffusion
    pipelines they may be None. `kv_heads` is None for encoders without a cache and for MLA models.
    """

    hf_id: str
    aliases: tuple[str, ...] = ()
    family: str = ""
    arch_type: str = "decoder"
    modality: str = "text"
    hf_model_type: str | None = None
    params_total: int
    params_active: int
    params_embedding: int | None = None
    layers: int | None = None
    decoder_layers: int | None = None
    hidden: int | None = None
    intermediate: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    tie_embeddings: bool | None = None
    max_position: int | None = None
    gated_mlp: bool = True
    layer_kinds: Mapping[str, int] = field(default_factory=dict)
    layer_pattern: str | None = None
    sliding_window: int | None = None
    global_kv_heads: int | None = None
    global_head_dim: int | None = None
    moe: Moe | None = None
    mla: Mla | None = None
    ssm: Ssm | None = None
    linear_attn: LinearAttention | None = None
    vision: VisionTower | None = None
    vision_params: int = 0
    components: DiffusionComponents | None = None
    n_mels: int | None = None
    gflops_640: float | None = None
    native_dtype: str = "bf16"
    native_quant: str | None = None
    year: int | None = None
    licence: str | None = None
    origin: str = "catalogue"
    note: str | None = None

    @property
    def domain(self) -> Domain:
        """The family of laws that applies to this model."""
        if self.modality == "audio":
            return "audio"
        return _DOMAIN_OF_ARCH.get(self.arch_type, "llm")

    @property
    def display_name(self) -> str:
        """The name people write: the id without its publisher; of text and speech models also without packaging."""
        if self.domain in ("llm", "audio"):
            return display_name(self.hf_id, self.family)
        return self.hf_id.rpartition("/")[2]

    @property
    def params_b(self) -> float:
        """Total parameters in billions (10**9)."""
        return self.params_total / 1e9

    @classmethod
    def from_row(cls, row: Mapping[str, Any], origin: str = "catalogue") -> ModelSpec:
        """Builds a spec from one catalogue row; raises `CatalogError` naming the row and the field that is wrong."""
        name = str(row.get("hf_id") or "?")
        try:
            nested: dict[str, Any] = {
                key: maker(**{k: row[key].get(k, default) for k, default in fields.items()})
                for key, (maker, fields) in _NESTED.items()
                if row.get(key)
            }
            if row.get("components"):
                c = row["components"]
                nested["components"] = DiffusionComponents(c["denoiser"], c.get("text_encoders") or {}, c.get("vae"))
            plain = {key: row[key] for key in _PLAIN if row.get(key) is not None}
            plain["gated_mlp"] = _gated_mlp(row)
            spec = cls(**plain, **nested, aliases=tuple(row.get("aliases") or ()), origin=origin)
        except (KeyError, TypeError, AttributeError) as exc:
            raise CatalogError("model_row_invalid", row=name, detail=str(exc)) from exc
        spec._check()
        return spec

    def _check(self) -> None:
        positive = ("params_total", "params_active", "layers", "hidden", "heads", "kv_heads", "head_dim", "vocab")
        for key in positive:
            value = getattr(self, key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
                raise CatalogError("model_field_not_positive", row=self.hf_id, detail=f"{key}={value!r}")
        if self.domain == "llm" and not (self.layers and self.hidden and self.vocab):
            raise CatalogError("model_field_missing", row=self.hf_id, detail="layers, hidden, vocab")


_PLAIN = (
    "hf_id family arch_type modality hf_model_type params_total params_active params_embedding layers decoder_layers "
    "hidden intermediate heads kv_heads head_dim vocab tie_embeddings max_position layer_kinds layer_pattern "
    "sliding_window global_kv_heads global_head_dim vision_params n_mels gflops_640 native_dtype native_quant year "
    "licence note"
).split()

_NESTED: dict[str, tuple[Any, dict[str, Any]]] = {
    "moe": (
        Moe,
        dict.fromkeys(("experts", "active", "shared", "expert_intermediate", "shared_intermediate", "moe_layers"), 0),
    ),
    "mla": (Mla, dict.fromkeys(("q_lora_rank", "kv_lora_rank", "qk_nope", "qk_rope", "v_head"))),
    "ssm": (Ssm, dict.fromkeys(("heads", "head_dim", "groups", "state", "conv"))),
    "linear_attn": (LinearAttention, dict.fromkeys(("key_heads", "value_heads", "key_dim", "value_dim", "conv"))),
    "vision": (VisionTower, dict.fromkeys(("layers", "hidden", "intermediate", "heads", "patch", "image"))),
}

# Two-matrix MLPs (GELU, ReLU or squared ReLU); every other family gates its MLP with a third matrix.
_PLAIN_MLP_TYPES = frozenset(
    "gpt2 gpt_bigcode starcoder2 bloom opt gpt_neox gptj gpt_neo phi falcon mpt bert roberta xlm-roberta distilbert "
    "mpnet deberta-v2 vit whisper bart m2m_100 marian wav2vec2 clip nemotron nemotron_h".split()
)


def _gated_mlp(row: Mapping[str, Any]) -> bool:
    explicit = row.get("gated_mlp")
    if explicit is not None:
        return bool(explicit)
    return row.get("hf_model_type") not in _PLAIN_MLP_TYPES
