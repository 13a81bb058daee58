"""Activations of one transformer stack while it runs forward, and what a training step keeps of it."""

from __future__ import annotations

from rules.memory.media.facts import tables


def forward_bytes(
    tokens: float,
    length: float,
    hidden: int,
    intermediate: int,
    heads: int,
    value_bytes: float,
    eager: bool,
    score_bytes: float | None = None,
    score_copies: float = 2.0,
) -> float:
    """Bytes alive at the peak of one block over `tokens` in sequences of `length`, without any gradient.

    The MLP holds four tensors of the hidden width and two of the inner one; attention six of the hidden width and,
    where scores are materialised, `score_copies` of heads x length values a token.
    """
    t = tables()["transformer"]
    mlp = (t["inference_hidden_units"] * hidden + t["inference_intermediate_units"] * intermediate) * value_bytes
    attention = t["attention_units"] * hidden * value_bytes
    if eager:
        attention += score_copies * heads * length * (score_bytes or value_bytes)
    return float(tokens * max(mlp, attention))


def training_bytes(
    tokens: float,
    length: float,
    hidden: int,
    layers: int,
    heads: int,
    autocast: bool,
    value_bytes: float,
    eager: bool,
    checkpointing: bool,
) -> float:
    """Bytes kept for the backward pass of a stack of `layers`; with checkpointing, the blocks' inputs and one block."""
    t = tables()["transformer"]
    layer = hidden * (t["train_autocast_bytes"] if autocast else t["train_units"] * value_bytes)
    if eager:
        layer += t["train_score_bytes"] * heads * length
    if not checkpointing:
        return float(tokens * layers * layer)
    boundary = hidden * (4.0 if autocast else value_bytes) * t["checkpoint_units"]
    return float(tokens * (layers * boundary + layer))
