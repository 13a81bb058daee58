"""Low-rank adapters: which projections carry one, how many weights that is, which embeddings are trained whole."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rules.memory.training.shape import Shape
from rules.records import dataclass

_QUERY = frozenset(("q_proj", "q", "query", "wq", "q_a_proj", "q_b_proj", "linear_q"))
_KEY = frozenset(("k_proj", "k", "key", "wk"))
_VALUE = frozenset(("v_proj", "v", "value", "wv"))
_FUSED = frozenset(
    ("c_attn", "qkv_proj", "query_key_value", "wqkv", "qkv", "attn.wqkv", "linear_qkv", "kv_b_proj", "w_pack")
)
_OUTPUT = frozenset(
    (
        "o_proj",
        "o",
        "out_proj",
        "output_proj",
        "wo",
        "projection",
        "linear_proj",
        "attn.c_proj",
        "attention.dense",
        "dense",
    )
)
_READERS = frozenset(
    ("gate_proj", "up_proj", "w1", "w3", "fc1", "gate_up_proj", "dense_h_to_4h", "linear_fc1", "c_fc", "wi")
)
_DOWN = frozenset(("down_proj", "w2", "fc2", "dense_4h_to_h", "linear_fc2"))
_WHOLE_MLP = frozenset(("mlp", "ffn", "feed_forward", "mlp_projections"))
_HEAD = frozenset(("head", "lm_head", "output"))
_EMBEDDING = frozenset(("embed_tokens", "wte", "embedding", "embeddings", "word_embeddings"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """Adapted projections of one block: how many read the attention norm, the MLP norm; and the counts of weights."""

    attention_readers: int = 0
    query: bool = False
    fused: bool = False
    output: bool = False
    mlp_readers: int = 0
    down: bool = False
    experts: bool = False
    head: bool = False
    embeddings_trained: bool = False
    rank: int = 16
    weights: float = 0.0  # all adapters together
    magnitudes: float = 0.0  # DoRA: one value an output

    @property
    def targets(self) -> int:
        """Adapted projections in one block."""
        return self.attention_readers + self.output + self.mlp_readers + self.down


NO_ADAPTERS = Adapted()


def _names(targets: str | Iterable[str] | None) -> list[str]:
    if targets is None:
        return ["all_linear"]
    words = targets.replace("+", ",").replace(" and ", ",").split(",") if isinstance(targets, str) else targets
    return [str(word).split("(")[0].strip().lower() for word in words]


@lru_cache(maxsize=2048)
def adapted(
    shape: Shape, targets: str | tuple[str, ...] | None, rank: int, experts: bool | None, dora: bool
) -> Adapted:
    """The adapters that a list of target names means for a model; an unknown name counts as attention."""
    q = k = v = fused = out = readers = down = exp = head = embed = False
    for name in _names(targets):
        leaf = name.rpartition(".")[2] if "." in name else name
        if "all" in name and ("linear" in name or name == "all"):
            out = readers = down = True
            fused = fused or shape.fused_qkv
            q = k = v = True
            exp = (experts is not False and shape.experts > 0 and experts is not None) or bool(experts)
        elif name in _QUERY:
            q = True
        elif name in _KEY:
            k = True
        elif name in _VALUE:
            v = True
        elif name in _FUSED:
            fused = True
        elif name == "c_proj":
            out = True
            down = not shape.gated or down
        elif name in _OUTPUT:
            out = True
        elif name in _READERS:
            readers = True
        elif name in _DOWN:
            down = True
        elif name in _WHOLE_MLP:
            readers = down = True
        elif name in _HEAD or leaf in _HEAD:
            head = True
        elif name in _EMBEDDING or leaf in _EMBEDDING:
            embed = True
        elif "expert" in name:
            exp = True
        else:
            q = k = v = out = True
    if experts:
        exp = True
    h, i = shape.hidden, shape.intermediate
    up_count = 2 if shape.gated else 1
    per_attention = 0
    if fused:
        per_attention += h + shape.query + 2 * shape.kv
        q = k = v = False
    per_attention += (h + shape.query) * q + (h + shape.kv) * k + (h + shape.kv) * v + (shape.value + h) * out
    per_mlp = (up_count * (h + i)) * readers + (i + h) * down
    w, s = shape.moe_width, shape.shared_width
    per_shared = ((up_count * (h + s)) * readers + (s + h) * down) if s else 0
    per_expert = (up_count * (h + w) + (w + h)) if exp and shape.experts else 0
    dense_layers = shape.layers - shape.moe_layers
    mixers = max(shape.attention_layers, 1 if not shape.inner else 0)
    weights = float(
        mixers * per_attention
        + (dense_layers * per_mlp if i else 0)
        + shape.moe_layers * (per_shared + shape.experts * per_expert)
    )
    if shape.inner:
        weights += (shape.layers - shape.attention_layers) * (3 * h + 4 * shape.inner) * (q or fused)
    if shape.cross:
        weights += mixers / 2 * per_attention
    if head and not embed:
        weights += h + shape.vocab
    readers_count = int(fused) + int(q) + int(k) + int(v)
    return Adapted(
        attention_readers=readers_count,
        query=q or fused,
        fused=fused,
        output=out,
        mlp_readers=up_count * readers,
        down=down,
        experts=exp and shape.experts > 0,
        head=head and not embed,
        embeddings_trained=embed,
        rank=rank,
        weights=weights * rank,
        magnitudes=float(shape.layers * (shape.query + 2 * shape.kv + 2 * h + 2 * i)) if dora else 0.0,
    )
