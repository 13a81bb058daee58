"""Parameter counts of encoders, encoder-decoders and state-space models from their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


def _block(hidden: int, width: int) -> int:
    """A post-norm transformer block: four projections and two MLP matrices with biases, two layer norms."""
    return 4 * (hidden * hidden + hidden) + 2 * hidden * width + width + hidden + 4 * hidden


def recount_encoder(row: Row) -> int | None:
    """BERT-like text encoders and plain ViTs, with pooler where the type has one."""
    kind, hidden, layers, width = row["hf_model_type"], row["hidden"], row["layers"], row["intermediate"]
    if not hidden or not layers or not width:
        return None
    vocab, positions = row["vocab"] or 0, row["max_position"] or 0
    pooler = hidden * hidden + hidden
    table = vocab * hidden + positions * hidden + 2 * hidden
    if kind in ("bert", "roberta", "xlm-roberta"):
        segments = (2 if kind == "bert" else 1) * hidden
        return int(table + segments + layers * _block(hidden, width) + pooler)
    if kind == "distilbert":
        return int(table + layers * _block(hidden, width))
    if kind == "mpnet":
        return int(table + layers * _block(hidden, width) + pooler + 32 * row["heads"])
    if kind == "deberta-v2":
        return int(vocab * hidden + 2 * hidden + 512 * hidden + 2 * hidden + layers * _block(hidden, width))
    if kind == "modernbert":
        return int(vocab * hidden + hidden + layers * (4 * hidden * hidden + 3 * hidden * width + 2 * hidden))
    if kind == "nomic_bert":
        block = 4 * hidden * hidden + 3 * hidden * width + 4 * hidden
        return int(vocab * hidden + 4 * hidden + layers * block)
    if kind == "vit":
        vision = row["vision"]
        tokens = (vision["image"] // vision["patch"]) ** 2 + 1
        patches = 3 * vision["patch"] ** 2 * hidden + hidden
        return int(hidden + tokens * hidden + patches + layers * _block(hidden, width) + 2 * hidden + pooler)
    return None


def recount_seq2seq(row: Row) -> int | None:
    """T5, BART, M2M-100, Marian and Whisper."""
    kind, hidden, width, vocab = row["hf_model_type"], row["hidden"], row["intermediate"], row["vocab"]
    encoder, decoder = row["layers"], row["decoder_layers"]
    if kind == "t5":
        attention = 4 * hidden * row["heads"] * row["head_dim"]
        mlp = (3 if row["gated_mlp"] else 2) * hidden * width
        tables = vocab * hidden * (1 if row["tie_embeddings"] else 2) + 2 * 32 * row["heads"] + 2 * hidden
        return int(tables + encoder * (attention + mlp + 2 * hidden) + decoder * (2 * attention + mlp + 3 * hidden))
    attention, norm = 4 * (hidden * hidden + hidden), 2 * hidden
    mlp = 2 * hidden * width + width + hidden
    if kind == "whisper":
        attention -= hidden  # the key projection has no bias
    blocks = encoder * (attention + mlp + 2 * norm) + decoder * (2 * attention + mlp + 3 * norm)
    if kind == "bart":
        return int(vocab * hidden + 2 * (row["max_position"] + 2) * hidden + 2 * norm + blocks)
    if kind == "m2m_100":
        return int(vocab * hidden + 2 * norm + blocks)
    if kind == "marian":
        return int(vocab * hidden + 2 * row["max_position"] * hidden + blocks)
    if kind == "whisper":
        convolutions = 3 * row["n_mels"] * hidden + hidden + 3 * hidden * hidden + hidden
        return int(convolutions + 1500 * hidden + vocab * hidden + 448 * hidden + 2 * norm + blocks)
    return None


def recount_state_space(row: Row) -> int | None:
    """Mamba, and Nemotron-H hybrids without experts."""
    hidden, vocab = row["hidden"], row["vocab"]
    if row["hf_model_type"] in ("mamba", "falcon_mamba"):
        inner, state, conv = row["intermediate"], row["ssm"]["state"], row["ssm"]["conv"]
        rank = -(-hidden // 16)
        mixer = 2 * hidden * inner + inner * conv + inner + inner * (rank + 2 * state)
        mixer += rank * inner + inner + inner * state + inner + inner * hidden
        tables = vocab * hidden * (1 if row["tie_embeddings"] else 2)
        return int(tables + hidden + row["layers"] * (mixer + hidden))
    if row["hf_model_type"] == "nemotron_h" and not row.get("moe"):
        ssm, kinds = row["ssm"], row["layer_kinds"]
        inner = ssm["heads"] * ssm["head_dim"]
        convolved = inner + 2 * ssm["groups"] * ssm["state"]
        mixer = hidden * (inner + convolved + ssm["heads"]) + convolved * (ssm["conv"] + 1)
        mixer += 3 * ssm["heads"] + inner + inner * hidden
        projections = 2 * hidden * (row["heads"] + row["kv_heads"]) * row["head_dim"]
        blocks = kinds["mamba2"] * mixer + kinds["full"] * projections + kinds["mlp"] * 2 * hidden * row["intermediate"]
        return int(2 * vocab * hidden + hidden + row["layers"] * hidden + blocks)
    return None
