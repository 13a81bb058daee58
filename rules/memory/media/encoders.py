"""Text encoders and embedding models (BERT, bge, e5, ModernBERT): weights, one block's activations, the runtime."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Part
from rules.memory.media.asked import Asked
from rules.memory.media.facts import fitted, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.transformer import forward_bytes
from rules.memory.media.weights import weights_part

_SPREAD = Spread(0.15, 0.25)


def encoder_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of encoding `batch` texts of `context` tokens; texts longer than the model reads are cut."""
    hidden, heads = model.hidden or 0, model.heads or 1
    if not hidden:
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="hidden")
    length = asked.context or asked.input_len
    if length is None:
        length = min(tables()["lengths"]["encoder_tokens"], model.max_position or 512)
        asked.assume("context", length, "media_default_encoder_length")
    tokens = asked.batch * length
    inner = (model.intermediate or 4 * hidden) * (1.5 if model.gated_mlp else 1.0)
    alive = forward_bytes(tokens, length, hidden, int(inner), heads, asked.value_bytes, asked.eager)
    weights = weights_part(model, asked)
    activations = Part("activations", alive, "media_activations_tokens", {"batch": asked.batch, "length": length})
    holder = Holder(
        cpu=asked.cpu,
        runtime_bytes=asked.engine.runtime_bytes(asked.cpu),
        spread=_SPREAD,
        notes=asked.notes,
    )
    cached = float(fitted()["reserved_share_transformer"]) * alive
    return assemble([weights], [Phase("encode", (activations,), cached)], holder, {"weights": weights.bytes})
