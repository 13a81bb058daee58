"""Speech: Whisper (1500 encoder positions for every 30 s, cross-attention cache) and wav2vec 2.0 encoders."""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.media.asked import Asked
from rules.memory.media.facts import fitted, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.seq2seq import cache_parts
from rules.memory.media.transformer import forward_bytes
from rules.memory.media.weights import weights_part

_SPREAD = Spread(0.2, 0.3)


def audio_footprint(asked: Asked, model: ModelSpec) -> Footprint:
    """Memory of transcribing `batch` windows of 30 s at once (Whisper) or encoding `batch` clips (wav2vec 2.0)."""
    if not model.hidden:
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="hidden")
    return _whisper(asked, model) if model.decoder_layers else _speech_encoder(asked, model)


def _holder(asked: Asked) -> Holder:
    return Holder(cpu=asked.cpu, runtime_bytes=asked.engine.runtime_bytes(asked.cpu), spread=_SPREAD, notes=asked.notes)


def _whisper(asked: Asked, model: ModelSpec) -> Footprint:
    hidden = model.hidden or 0
    lengths = tables()["lengths"]
    frames = int(lengths["whisper_frames"])
    tokens = asked.output_len or asked.context
    if tokens is None:
        # One window at a time carries the text before it; windows decoded in batch start from nothing and are short.
        tokens = int(lengths["whisper_context"] if asked.batch == 1 else fitted()["whisper_batched_tokens"])
    tokens = min(tokens, int(lengths["whisper_context"]))
    asked.beams = asked.engine.speech_beams
    asked.notes.append(Note("media_whisper_windows", {"windows": asked.batch, "beams": asked.beams}))
    alive = forward_bytes(
        asked.batch * frames,
        frames,
        hidden,
        model.intermediate or 4 * hidden,
        model.heads or 1,
        asked.value_bytes,
        asked.eager,
        score_bytes=asked.engine.score_bytes,
        score_copies=asked.engine.score_copies,
    )
    cross, own = cache_parts(model, asked, frames, tokens)
    weights = weights_part(model, asked)
    share = float(fitted()["reserved_share_transformer"])
    encoded = asked.batch * frames * hidden * asked.value_bytes
    phases = [
        Phase(
            "encode",
            (Part("activations", alive, "media_activations_audio", {"windows": asked.batch}),),
            share * alive,
        ),
        Phase("decode", (cross, own, Part("encoder_output", encoded, "media_encoder_output"))),
    ]
    return assemble([weights], phases, _holder(asked), {"weights": weights.bytes, "kv": cross.bytes + own.bytes})


def _speech_encoder(asked: Asked, model: ModelSpec) -> Footprint:
    hidden = model.hidden or 0
    lengths = tables()["lengths"]
    per_second = int(lengths["speech_tokens_per_second"])
    length = asked.context or asked.input_len
    if length is None:
        length = int(lengths["speech_seconds"]) * per_second
        asked.assume("seconds", int(lengths["speech_seconds"]), "media_default_speech_length")
    seconds = length / per_second
    alive = forward_bytes(
        asked.batch * length,
        length,
        hidden,
        model.intermediate or 4 * hidden,
        model.heads or 1,
        asked.value_bytes,
        asked.eager,
    )
    front = asked.batch * seconds * float(lengths["speech_conv_values_per_second"]) * asked.value_bytes
    weights = weights_part(model, asked)
    share = float(fitted()["reserved_share_transformer"])
    phases = [
        Phase("features", (Part("activations", front, "media_speech_front", {"seconds": seconds}),), share * front),
        Phase(
            "encode",
            (Part("activations", alive, "media_activations_tokens", {"batch": asked.batch, "length": length}),),
            share * alive,
        ),
    ]
    return assemble([weights], phases, _holder(asked), {"weights": weights.bytes})
