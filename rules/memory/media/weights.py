"""Bytes of the weights of models with tables (token embeddings) and linear layers, for any number format."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.formats import WeightFormat
from rules.memory.footprint import Part
from rules.memory.media.asked import Asked


def table_params(model: ModelSpec) -> int:
    """Parameters of the token embedding (0 for models that read no text)."""
    return min(model.params_total, model.params_embedding or (model.vocab or 0) * (model.hidden or 0))


def weights_part(model: ModelSpec, asked: Asked) -> Part:
    """The weights as this engine stores them: quantisers of the torch world leave the embedding in 16 bits."""
    tables = table_params(model)
    size = stored_bytes(model.params_total, tables, asked.weights, asked.engine.quantises_tables)
    bits = 8 * size / model.params_total
    return Part("weights", size, "media_weights", {"params_b": model.params_b, "bits": round(bits, 2)})


def stored_bytes(params: float, tables: float, fmt: WeightFormat, quantises_tables: bool) -> float:
    """`params` in `fmt`, of which `tables` are embeddings."""
    table_bits = fmt.linear_bits if quantises_tables else fmt.embedding_bits
    return ((params - tables) * fmt.linear_bits + tables * table_bits) / 8
