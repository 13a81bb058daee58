"""The shape of a diffusion pipeline: components, denoiser and VAE facts, and the size of a request in tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.media.facts import matching, tables
from rules.records import dataclass

_SHORT_EDGES = (240, 360, 480, 720, 1080)
_SAME_EDGE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One diffusion family. Parameters are counts; `facts` and `vae` are the tables of media.toml."""

    name: str
    facts: Mapping[str, Any]
    vae: Mapping[str, Any]
    denoiser: int
    text_encoders: Mapping[str, int]
    vae_params: int
    hidden: int
    layers: int

    @property
    def is_unet(self) -> bool:
        """True for convolutional denoisers."""
        return bool(self.facts["kind"] == "unet")

    @property
    def guidance_batch(self) -> int:
        """Samples of the denoiser an image: two where both sides of the guidance run in one batch."""
        return int(self.facts.get("guidance_batch", 1))

    @property
    def video(self) -> bool:
        """True where the pipeline makes frames."""
        return "frames" in self.facts


@dataclass(frozen=True, slots=True)
class Canvas:
    """What is made: pixels of a frame and frames; `tokens` and `latents` are what the denoiser sees of it."""

    pixels: float
    frames: int
    latents: float
    tokens: float


def pipeline_of(model: ModelSpec) -> Pipeline:
    """Facts of the model's family; an unknown pipeline is a transformer whose width follows from its parameters."""
    key, facts = matching("diffusion", f"{model.hf_id} {model.family}")
    parts = model.components
    denoiser = parts.denoiser if parts else model.params_total
    if denoiser <= 0:
        raise UnsupportedWorkload("media_model_shape_missing", model=model.display_name, field="components")
    layers = int(facts.get("layers", 40))
    hidden = int(facts.get("hidden", 0)) or max(64, 64 * round(math.sqrt(denoiser / (18 * layers)) / 64))
    vae_params = int((parts.vae if parts and parts.vae else None) or facts.get("vae_params", 83_819_683))
    return Pipeline(
        name=key,
        facts=facts,
        vae=tables()["vae"][facts.get("vae", "image")],
        denoiser=denoiser,
        text_encoders=dict(parts.text_encoders) if parts else {},
        vae_params=vae_params,
        hidden=hidden,
        layers=layers,
    )


def canvas(pipeline: Pipeline, image: int, frames: int) -> Canvas:
    """`image` is the edge of a square image. See `_frame_pixels` for what it means of a video."""
    pixels = _frame_pixels(pipeline, image)
    steps = 1 + math.ceil((frames - 1) / int(pipeline.facts.get("frames_per_token", 4))) if frames > 1 else 1
    latents = pixels / 64 * steps
    text = int(pipeline.facts.get("text_tokens", 0))
    return Canvas(pixels, frames, latents, max(1.0, latents / 4) + text)


def _frame_pixels(pipeline: Pipeline, image: int) -> float:
    """Pixels of one frame. Of a video `image` is the short edge where it is a usual one (480p, 720p), the long edge
    where it equals the family's own, and else the edge of a square of the same area (what trainers call resolution)."""
    ratio = float(pipeline.facts.get("width_ratio", 1.0))
    if ratio == 1.0 or image in _SHORT_EDGES:
        return float(image) * round(image * ratio)
    if abs(image / (float(pipeline.facts["image"]) * ratio) - 1) < _SAME_EDGE:
        return float(image) * round(image / ratio)
    return float(image) ** 2


def denoiser_bytes(pipeline: Pipeline, view: Canvas, samples: int, value_bytes: float, eager: bool) -> float:
    """Bytes alive at the denoiser's peak for `samples` (images x guidance)."""
    if pipeline.is_unet:
        alive = view.latents * float(pipeline.facts["values_per_latent_pixel"]) * value_bytes
        if eager:
            positions = view.latents / int(pipeline.facts["score_downscale"]) ** 2
            alive += 2 * int(pipeline.facts["score_heads"]) * positions**2 * value_bytes
        return samples * alive
    alive = view.tokens * pipeline.hidden * float(pipeline.facts["units"]) * value_bytes
    if eager:
        alive += 2 * (pipeline.hidden / 128) * view.tokens**2 * value_bytes
    return samples * alive
