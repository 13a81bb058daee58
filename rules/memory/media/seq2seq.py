"""Encoder-decoder text models (T5, BART, Marian, NLLB): encoder activations, then cross-attention and self caches."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Part
from rules.memory.media.asked import Asked
from rules.memory.media.facts import fitted, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.transformer import forward_bytes
from rules.memory.media.weights import weights_part

_TRANSLATORS = ("opus-mt", "marian", "m2m", "nllb", "madlad", "mbart")
_SPREAD = Spread(0.25, 0.35)


def cache_parts(model: ModelSpec, asked: Asked, source: float, target: float) -> tuple[Part, Part]:
    """Cross-attention keys and values of `source` positions, and self-attention ones of `target` positions a beam."""
    width = (model.heads or 0) * (model.head_dim or 0) or (model.hidden or 0)
    layers = model.decoder_layers or model.layers or 0
    a_position = 2 * layers * width * (asked.engine.kv_bytes or asked.value_bytes)
    copies = asked.batch * (asked.beams if asked.engine.cross_per_beam else 1)
    return (
        Part("cross_attention_cache", a_position * source * copies, "media_cross_cache", {"sequences": copies}),
        Part(
            "kv_cache",
            a_position * target * asked.batch * asked.beams,
            "media_self_cache",
            {"sequences": asked.batch * asked.beams, "length": int(target)},
        ),
    )


def seq2seq_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of translating or summarising `batch` texts of `input_len` tokens into `output_len` tokens."""
    hidden, heads = model.hidden or 0, model.heads or 1
    if not hidden:
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="hidden")
    defaults = tables()["lengths"]
    source, target = asked.input_len, asked.output_len
    if source is None and asked.context is not None:
        source = max(1, asked.context - (target or 0))
    translates = any(word in f"{model.hf_id} {model.hf_model_type}".lower() for word in _TRANSLATORS)
    if source is None:
        source = int(defaults["sentence" if translates else "seq2seq_input"])
        asked.assume("input_len", source, "media_default_seq2seq_length")
    if target is None:
        target = int(defaults["sentence" if translates else "seq2seq_output"])
        asked.assume("output_len", target, "media_default_seq2seq_length")
    inner = int((model.intermediate or 4 * hidden) * (1.5 if model.gated_mlp else 1.0))
    alive = forward_bytes(
        asked.batch * source,
        source,
        hidden,
        inner,
        heads,
        asked.value_bytes,
        asked.eager,
        score_copies=asked.engine.score_copies,
    )
    encoded = asked.batch * source * hidden * asked.value_bytes
    logits = 2 * asked.batch * asked.beams * (model.vocab or 0) * 4.0
    cross, own = cache_parts(model, asked, source, target)
    weights = weights_part(model, asked)
    share = float(fitted()["reserved_share_transformer"])
    phases = [
        Phase(
            "encode",
            (Part("activations", alive, "media_activations_tokens", {"batch": asked.batch, "length": source}),),
            share * alive,
        ),
        Phase(
            "decode",
            (
                cross,
                own,
                Part("encoder_output", encoded, "media_encoder_output"),
                Part("logits", logits, "media_logits", {"vocab": model.vocab or 0}),
            ),
            share * (encoded + logits),
        ),
    ]
    holder = Holder(
        cpu=asked.cpu,
        runtime_bytes=asked.engine.runtime_bytes(asked.cpu),
        spread=_SPREAD,
        notes=asked.notes,
    )
    return assemble([weights], phases, holder, {"weights": weights.bytes, "kv": cross.bytes + own.bytes})
