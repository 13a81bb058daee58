"""Training a denoiser: adapters or every weight, with frozen text encoders and VAE beside it or cached away.

Latents and text embeddings may be computed beforehand; then VAE and text encoders leave the device. A framework that
says nothing keeps them (data: `frozen` in media.toml). Activations follow the latent picture, so they grow with the
square of the resolution.
"""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.media.asked import on_cpu, whole, words
from rules.memory.media.facts import engine, fitted, matching, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble
from rules.memory.media.pipeline import Canvas, Pipeline, canvas, pipeline_of
from rules.memory.media.states import Precision, adapters_of, precision_of, state_parts
from rules.workload import TrainingWorkload

_SPREAD = Spread(0.3, 0.4)
_FULL, _ADAPTERS, _RECOMPUTED = 0, 1, 2


def diffusion_training_footprint(workload: TrainingWorkload, model: ModelSpec) -> Footprint:
    """Memory of one training step with `micro_batch` pictures of `image_size` pixels."""
    pipeline = pipeline_of(model)
    notes: list[Note] = []
    frozen = matching("frozen", words(workload.framework) or "")[1]
    precision = precision_of(workload, notes, checkpointing_default=bool(frozen.get("checkpointing", True)))
    batch = whole(workload.micro_batch, "micro_batch")
    if batch is None:
        batch = 1
        notes.append(Note("media_assumed", {"field": "micro_batch", "value": batch, "reason": "media_default_batch"}))
    image = whole(workload.image_size, "image_size")
    if image is None:
        image = int(frozen.get("image", 0)) or int(pipeline.facts["image"])
        notes.append(Note("media_assumed", {"field": "image_size", "value": image, "reason": "media_default_image"}))
    view = canvas(pipeline, image, int(pipeline.facts.get("frames", 1)))
    trained = float(pipeline.denoiser)
    if precision.adapter:
        trained = adapters_of(workload, trained, pipeline.facts.get("lora_params_per_rank"))
    resident = state_parts(workload, pipeline.denoiser, trained, precision, notes)
    resident += _frozen_parts(pipeline, bool(frozen["text_encoders"]), bool(frozen["vae"]))
    if not frozen["text_encoders"]:
        notes.append(Note("media_text_cached"))
    fp32_adapters = precision.adapter and bool(frozen["fp32_adapters"]) and not precision.checkpointing
    one = _kept_bytes(pipeline, view, precision, "activations_cpu" in (words(workload.offload) or ""))
    if fp32_adapters:
        one *= float(tables()["dit_training"]["adapter_fp32_share"])
    activations = Part("activations", batch * one, "media_train_activations", {"batch": batch})
    phases = [Phase("backward", (activations,), float(fitted()["reserved_share_transformer"]) * activations.bytes)]
    if frozen["vae"]:
        encode = batch * view.pixels * float(pipeline.vae["encode_values_per_pixel"]) * 2.0
        phases.append(Phase("vae_encode", (Part("activations", encode, "media_vae_encode"),)))
    cpu = on_cpu(workload)
    holder = Holder(
        cpu=cpu,
        runtime_bytes=engine(words(workload.framework)).runtime_bytes(cpu),
        spread=_SPREAD,
        notes=notes,
    )
    return assemble(resident, phases, holder, {"weights": resident[0].bytes})


def _frozen_parts(pipeline: Pipeline, text: bool, vae: bool) -> list[Part]:
    parts = []
    if text:
        size = 2.0 * sum(pipeline.text_encoders.values())
        parts.append(Part("frozen_text_encoders", size, "media_frozen_text"))
    if vae:
        value = 4.0 if pipeline.facts.get("vae_fp32") else 2.0
        parts.append(Part("frozen_vae", value * pipeline.vae_params, "media_frozen_vae"))
    return parts


def _kept_bytes(pipeline: Pipeline, view: Canvas, precision: Precision, offloaded: bool) -> float:
    """Bytes that one picture keeps for the backward pass, plus those alive while one block is recomputed."""
    autocast = 2.0 * float(tables()["denoiser"]["train_autocast_share"])
    value = autocast if precision.autocast else precision.value_bytes
    if pipeline.is_unet:
        column = _RECOMPUTED if precision.checkpointing else _ADAPTERS if precision.adapter else _FULL
        return view.latents * float(pipeline.facts["train_values_per_latent_pixel"][column]) * value
    facts = tables()["dit_training"]
    unit = view.tokens * pipeline.hidden * value
    if precision.checkpointing:
        return unit * ((0 if offloaded else pipeline.layers) + float(facts["recompute_units"]))
    return unit * pipeline.layers * float(facts["units"] if precision.adapter else facts["full_units"])
