"""Memory of everything that is no language model: text encoders, translation, speech, vision, diffusion, classical.

`inference_footprint` and `training_footprint` pick the law by the model's domain; `media_total_bytes` picks the figure
that a published total means.
"""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.media.asked import read_inference
from rules.memory.media.classical import (
    classical_footprint,
    classical_kinds,
    classical_spec,
    recognise_classical,
)
from rules.memory.media.figures import media_total_bytes
from rules.memory.media.training import training_footprint
from rules.workload import InferenceWorkload

__all__ = [
    "classical_kinds",
    "classical_spec",
    "inference_footprint",
    "media_total_bytes",
    "recognise_classical",
    "training_footprint",
]


def inference_footprint(workload: InferenceWorkload, model: ModelSpec, device: Accelerator | None) -> Footprint:
    """Memory of running `model` on one device; raises `UnsupportedWorkload` where no law applies.

    The device plays no part beyond being a GPU: shapes and formats decide.
    """
    domain = model.domain
    if domain == "classical":
        return classical_footprint(model)
    if domain == "diffusion":
        from rules.memory.media.diffusion import diffusion_footprint

        return diffusion_footprint(read_inference(workload, "diffusers"), workload, model)
    asked = read_inference(workload)
    if domain == "encoder":
        from rules.memory.media.encoders import encoder_footprint

        return encoder_footprint(asked, model)
    if domain == "seq2seq":
        from rules.memory.media.seq2seq import seq2seq_footprint

        return seq2seq_footprint(asked, model)
    if domain == "audio":
        from rules.memory.media.audio import audio_footprint

        return audio_footprint(asked, model)
    if domain == "dual-encoder":
        from rules.memory.media.dual_encoder import dual_encoder_footprint

        return dual_encoder_footprint(asked, model)
    if domain == "vision":
        from rules.memory.media.detection import detection_footprint, is_detector
        from rules.memory.media.vision import vision_footprint

        return detection_footprint(asked, model) if is_detector(model) else vision_footprint(asked, model)
    raise UnsupportedWorkload("media_domain_not_covered", domain=domain)
