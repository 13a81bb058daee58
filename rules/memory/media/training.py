"""Training of image, detection, audio and image-text models: states of every parameter and activations by batch."""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.media.asked import on_cpu, whole, words
from rules.memory.media.classical import classical_training_footprint
from rules.memory.media.detection import boxes_note, is_detector
from rules.memory.media.diffusion_training import diffusion_training_footprint
from rules.memory.media.dual_encoder import pair_training_bytes
from rules.memory.media.facts import engine, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.states import Precision, adapters_of, precision_of, state_parts
from rules.memory.media.transformer import training_bytes
from rules.memory.media.vision import image_training_bytes, native_image
from rules.units import MIB
from rules.workload import TrainingWorkload

_SPREAD = Spread(0.25, 0.35)
_DEFAULT_BATCH = {"detection": 16, "dual-encoder": 64, "vision": 32, "audio": 8}


def training_footprint(workload: TrainingWorkload, model: ModelSpec, device: Accelerator | None) -> Footprint:
    """Memory of a training step on the fullest device; `UnsupportedWorkload` where the shapes are missing.

    The device plays no part: activations depend on formats, not on the card.
    """
    domain = model.domain
    if domain == "classical":
        return classical_training_footprint(workload, model)
    if domain == "diffusion":
        return diffusion_training_footprint(workload, model)
    notes: list[Note] = []
    precision = precision_of(workload, notes, checkpointing_default=False)
    detector = is_detector(model)
    batch = whole(workload.micro_batch, "micro_batch")
    if batch is None:
        batch = _DEFAULT_BATCH.get("detection" if detector else domain, 8)
        notes.append(Note("media_assumed", {"field": "micro_batch", "value": batch, "reason": "media_default_batch"}))
    image = whole(workload.image_size, "image_size")
    if image is None and domain in ("vision", "dual-encoder"):
        image = _default_image(model, detector)
        notes.append(Note("media_assumed", {"field": "image_size", "value": image, "reason": "media_default_image"}))
    sample = _sample_bytes(workload, model, precision, image)
    if detector:
        notes.append(boxes_note())
    trained = float(model.params_total)
    if precision.adapter:
        trained = adapters_of(workload, trained, None)
    states = state_parts(workload, model.params_total, trained, precision, notes)
    activations = Part("activations", batch * sample, "media_train_activations", {"batch": batch})
    parts = [activations]
    if model.arch_type == "cnn":
        workspace = float(tables()["vision_training"]["cudnn_workspace_mib"]) * MIB
        parts.append(Part("workspace", min(workspace, activations.bytes), "media_conv_workspace"))
    cpu = on_cpu(workload)
    runtime = engine(words(workload.framework)).runtime_bytes(cpu)
    holder = Holder(cpu=cpu, runtime_bytes=runtime, spread=_SPREAD, notes=notes)
    cached = float(tables()["transformer"]["training_cached_share"]) * activations.bytes
    weights = next(part.bytes for part in states if part.name == "weights")
    return assemble(states, [Phase("backward", tuple(parts), cached)], holder, {"weights": weights})


def _default_image(model: ModelSpec, detector: bool) -> int:
    if detector:
        return int(tables()["lengths"]["detection_image"])
    return native_image(model) if model.domain == "vision" else (model.vision.image if model.vision else 224)


def _sample_bytes(workload: TrainingWorkload, model: ModelSpec, precision: Precision, image: int | None) -> float:
    """Bytes that one sample keeps for the backward pass."""
    domain = model.domain
    if domain == "dual-encoder":
        return pair_training_bytes(
            model, image or 224, precision.autocast, precision.value_bytes, precision.eager, precision.checkpointing
        )
    if domain == "vision":
        return image_training_bytes(
            model, image or 224, precision.autocast, precision.value_bytes, precision.checkpointing
        )
    if not model.hidden or not model.layers:
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="hidden")
    lengths = tables()["lengths"]
    if domain == "audio" and model.decoder_layers:
        length, layers = int(lengths["whisper_frames"]), model.layers
        target = whole(workload.seq_len, "seq_len") or int(lengths["whisper_context"])
    else:
        seconds = int(lengths["speech_seconds"]) * int(lengths["speech_tokens_per_second"])
        length, layers = whole(workload.seq_len, "seq_len") or seconds, model.layers
        target = 0
    seen = training_bytes(
        length,
        length,
        model.hidden,
        layers,
        model.heads or 1,
        precision.autocast,
        precision.value_bytes,
        precision.eager,
        precision.checkpointing,
    )
    # The loss keeps logits in fp32 twice.
    read = float(tables()["transformer"]["decoder_share"]) * training_bytes(
        target,
        target,
        model.hidden,
        model.decoder_layers or 0,
        model.heads or 1,
        precision.autocast,
        precision.value_bytes,
        precision.eager,
        precision.checkpointing,
    )
    return seen + read + 2 * 4.0 * target * (model.vocab or 0)
