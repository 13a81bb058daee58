"""Parameters counted from an architecture's sizes, for the model types whose blocks are known (`architectures.toml`).

`recount` takes a catalogue row and returns None where the type is not covered, so that nobody mistakes a guess for a
count. Encoders, encoder-decoders and state-space models are in `recount_others`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import tomli

from rules.catalog.names import DATA
from rules.catalog.recount_others import recount_encoder, recount_seq2seq, recount_state_space
from rules.records import dataclass

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a decoder block holds besides its matrices; see the head of `architectures.toml`."""

    norm: Literal["rms", "weight", "layer", "none"] = "rms"
    norms: int = 2
    final_norm: bool = True
    qk_norm: Literal["head", "full"] | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    gated: bool = True
    mlp_bias: bool = False
    positions: bool = False
    position_offset: int = 0
    head_bias: bool = False
    embedding_norm: bool = False
    sinks: bool = False
    expert_bias: bool = False
    extra_per_layer: int = 0


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, Traits]]:
    raw = tomli.loads((DATA / "architectures.toml").read_text(encoding="utf-8"))
    return raw["same_as"], {name: Traits(**fields) for name, fields in raw["traits"].items()}


def traits_of(model_type: str | None) -> Traits | None:
    """Traits of a decoder's Hugging Face model type, or None where it is not covered."""
    same_as, traits = _table()
    return traits.get(same_as.get(model_type or "", model_type or ""))


def recount(row: Row) -> int | None:
    """Parameters of a catalogue row from its sizes, or None where the formulas do not cover it."""
    if row.get("components") or not row.get("hf_model_type"):
        return None
    arch = row["arch_type"]
    if arch in ("encoder", "vision-transformer"):
        return recount_encoder(row)
    if arch == "encoder-decoder":
        return recount_seq2seq(row)
    if arch == "ssm" or row["hf_model_type"] == "nemotron_h":
        return recount_state_space(row)
    return _decoder(row) if arch == "decoder" else None


def _decoder(row: Row) -> int | None:
    traits = traits_of(row["hf_model_type"])
    if traits is None or row.get("layer_kinds", {}).get("linear"):
        return None
    traits = replace(traits, **(row.get("traits") or {}))
    hidden, layers, vocab = row["hidden"], row["layers"], row["vocab"]
    norm = {"rms": 1, "weight": 1, "layer": 2, "none": 0}[traits.norm] * hidden
    heads_of_vocab = 1 if row["tie_embeddings"] or row.get("no_lm_head") else 2
    total = heads_of_vocab * vocab * hidden + (norm if traits.final_norm else 0)
    total += vocab if traits.head_bias else 0
    total += 2 * hidden if traits.embedding_norm else 0
    total += (row["max_position"] + traits.position_offset) * hidden if traits.positions else 0
    total += int(row.get("extra_params") or 0) + int(row.get("vision_params") or 0)
    attention = _mla(hidden, row["heads"], row["mla"]) if row.get("mla") else _attention(row, traits)
    total += layers * (attention + traits.norms * norm + traits.extra_per_layer)
    total += layers * row["heads"] if traits.sinks else 0
    moe = row.get("moe")
    if not moe:
        return int(total + layers * _mlp(hidden, row["intermediate"], traits))
    total += (layers - moe["moe_layers"]) * _mlp(hidden, row["intermediate"], traits)
    return int(total + moe["moe_layers"] * _experts(row, traits))


def _attention(row: Row, traits: Traits) -> int:
    hidden, queries = row["hidden"], row["heads"] * row["head_dim"]
    values = row["kv_heads"] * row["head_dim"]
    total = 2 * hidden * queries + 2 * hidden * values
    total += queries + 2 * values if traits.qkv_bias else 0
    total += hidden if traits.out_bias else 0
    if traits.qk_norm == "head":
        total += 2 * row["head_dim"]
    elif traits.qk_norm == "full":
        total += queries + values
    return int(total)


def _mla(hidden: int, heads: int, mla: Row) -> int:
    query_width = heads * (mla["qk_nope"] + mla["qk_rope"])
    rank, low = mla["kv_lora_rank"], mla["q_lora_rank"]
    query = hidden * low + low + low * query_width if low else hidden * query_width
    down = hidden * (rank + mla["qk_rope"]) + rank
    up = rank * heads * (mla["qk_nope"] + mla["v_head"])
    return int(query + down + up + heads * mla["v_head"] * hidden)


def _mlp(hidden: int, width: int, traits: Traits) -> int:
    matrices = 3 if traits.gated else 2
    bias = ((2 if traits.gated else 1) * width + hidden) if traits.mlp_bias else 0
    return matrices * hidden * width + bias


def _experts(row: Row, traits: Traits) -> int:
    moe, hidden = row["moe"], row["hidden"]
    experts, width = moe["experts"], moe["expert_intermediate"]
    total = experts * 3 * hidden * width + experts * hidden
    if moe["shared"]:
        total += 3 * hidden * moe["shared_intermediate"]
        total += hidden if row["hf_model_type"] == "qwen2_moe" else 0  # gate of the shared expert
    if traits.expert_bias:
        total += experts + experts * (2 * width + hidden)
    return int(total)
