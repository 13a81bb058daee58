"""What a media model has to compute: operations, kernels and bytes of one pass, from its geometry."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, Literal

import tomli

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.media.pipeline import canvas, pipeline_of
from rules.memory.media.vision import is_plain_vit, native_image, patch_tokens
from rules.records import dataclass

Kind = Literal["encoder", "cnn", "unet", "dit"]
_CATALOGUE_IMAGE = 640
_WINDOW = 1500  # positions of Whisper's encoder for 30 s


@cache
def tables() -> dict[str, Any]:
    """The facts of media.toml."""
    return tomli.loads(resources.files("rules.speed").joinpath("data/media.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Work:
    """One pass: `operations` and `extra_bytes` of one sample, `kernels` and `weights` (values) of the whole batch."""

    kind: Kind
    operations: float
    kernels: float
    weights: float
    extra_bytes: float = 0.0


def _stack(layers: int, hidden: int, inner: int, length: float, gated: bool) -> float:
    """Operations of a transformer stack over one sequence: products with weights, and attention."""
    a_token = 8.0 * hidden**2 + (6.0 if gated else 4.0) * hidden * inner
    return layers * (a_token * length + 4.0 * hidden * length**2)


def text_work(model: ModelSpec, length: float) -> Work:
    """An encoder over `length` tokens; raises `UnsupportedWorkload` where its shape is not known."""
    if not (model.hidden and model.layers):
        raise UnsupportedWorkload("speed_model_shape_missing", model=model.display_name)
    layers = model.layers
    inner = model.intermediate or 4 * model.hidden
    body = layers * (4.0 * model.hidden**2 + (3.0 if model.gated_mlp else 2.0) * model.hidden * inner)
    operations = _stack(layers, model.hidden, inner, length, model.gated_mlp)
    return Work("encoder", operations, layers * tables()["kernels"]["layer"], body)


def vision_work(model: ModelSpec, image: int | None) -> Work:
    """A vision network on a square image of `image` pixels an edge (the model's own where None)."""
    edge = image or native_image(model)
    if is_plain_vit(model):
        assert model.hidden
        assert model.layers
        inner, tokens = model.intermediate or 4 * model.hidden, patch_tokens(model, edge)
        operations = _stack(model.layers, model.hidden, inner, tokens, False)
        return Work("encoder", operations, model.layers * tables()["kernels"]["layer"], model.params_active)
    if not model.gflops_640:
        raise UnsupportedWorkload("speed_model_shape_missing", model=model.display_name)
    operations = model.gflops_640 * 1e9 * (edge / _CATALOGUE_IMAGE) ** 2
    return Work("cnn", operations, tables()["kernels"]["convolutions"], model.params_active)


def tower_work(model: ModelSpec, image: int | None) -> Work:
    """The image tower of a model with two encoders."""
    tower = model.vision
    if tower is None or not (tower.layers and tower.hidden):
        raise UnsupportedWorkload("speed_model_shape_missing", model=model.display_name)
    tokens = ((image or tower.image) // tower.patch) ** 2 + 1
    operations = _stack(tower.layers, tower.hidden, tower.intermediate, tokens, False)
    weights = tower.layers * (4.0 * tower.hidden**2 + 2.0 * tower.hidden * tower.intermediate)
    return Work("encoder", operations, tower.layers * tables()["kernels"]["layer"], weights)


def speech_encoder_work(model: ModelSpec) -> Work:
    """Whisper's encoder over a window of 30 s, and the keys and values that its decoder reads."""
    work = text_work(model, _WINDOW)
    hidden = model.hidden or 0
    cross = 4.0 * hidden**2 * _WINDOW * (model.decoder_layers or 0)
    return Work("encoder", work.operations + cross, work.kernels, work.weights)


def speech_token_work(model: ModelSpec, value_bytes: float) -> Work:
    """One token of Whisper's decoder; `extra_bytes` are the cross-attention cache of one window."""
    hidden, layers = model.hidden or 0, model.decoder_layers or 0
    inner = model.intermediate or 4 * hidden
    weights = layers * (6.0 * hidden**2 + 2.0 * hidden * inner) + (model.vocab or 0) * hidden
    cache_bytes = 2.0 * _WINDOW * hidden * layers * value_bytes
    return Work("encoder", 2 * weights + cache_bytes, layers * tables()["kernels"]["layer"] * 2, weights, cache_bytes)


def denoiser_work(model: ModelSpec, image: int | None, frames: int | None) -> tuple[Work, int, float]:
    """One pass of the denoiser for one picture, passes a step (two with guidance), and operations of decoding."""
    pipeline = pipeline_of(model)
    view = canvas(pipeline, image or int(pipeline.facts["image"]), frames or int(pipeline.facts.get("frames", 1)))
    vae = tables()["vae"]
    a_frame = view.pixels / 64
    decode = view.frames * (vae["linear"] * a_frame + vae["quadratic"] * a_frame**2)
    if pipeline.is_unet:
        row = tables()["unet"].get(pipeline.name, tables()["unet"]["sdxl"])
        operations = row["linear"] * view.latents + row["quadratic"] * view.latents**2
        return Work("unet", operations, row["kernels"], pipeline.denoiser), pipeline.guidance_batch, decode
    # Weights of modulation work once a picture, not once a token: a token meets 12 hidden**2 of every layer.
    a_token = min(2.0 * pipeline.denoiser, 24.0 * pipeline.layers * pipeline.hidden**2)
    operations = a_token * view.tokens + 4.0 * pipeline.layers * pipeline.hidden * view.tokens**2
    kernels = pipeline.layers * tables()["kernels"]["layer"] * 2
    return Work("dit", operations, kernels, pipeline.denoiser), pipeline.guidance_batch, decode
