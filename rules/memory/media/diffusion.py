"""Diffusion inference: text encoding, denoising and VAE decoding, with offload, slicing and quantisation.

The VAE decode of the full picture sets the peak of most pipelines: three tensors of 256 channels at the full
resolution and a convolution workspace beside them. Quantising after loading has a peak of its own, because the 16-bit
copy is still there. Offload keeps the part at work on the device and the rest in host memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.media.asked import Asked, read_format, stated, words
from rules.memory.media.facts import fitted, matching
from rules.memory.media.phases import Holder, Phase, Spread, assemble, kept
from rules.memory.media.pipeline import Canvas, Pipeline, canvas, denoiser_bytes, pipeline_of
from rules.workload import InferenceWorkload

_SPREAD = Spread(0.25, 0.35)
_HELD_BACK = ("quantised", "quantized", "same")


def diffusion_footprint(asked: Asked, workload: InferenceWorkload, model: ModelSpec) -> Footprint:
    """Memory of making `batch` pictures (or clips) of `image_size` pixels at once."""
    pipeline = pipeline_of(model)
    image = asked.image
    if image is None:
        image = int(pipeline.facts["image"])
        asked.assume("image_size", image, "media_default_image")
    frames = asked.frames or int(pipeline.facts.get("frames", 1))
    view = canvas(pipeline, image, frames)
    sizes = component_bytes(pipeline, words(workload.weights_format), words(workload.text_encoder_format), asked)
    offload = words(workload.offload) or "none"
    phases = _phases(pipeline, view, asked, sizes, offload, bool(stated(workload.vae_slicing)))
    resident: list[Part] = []
    host = 0.0
    total = sum(sizes.values())
    if asked.cpu or offload == "none":
        resident = _weight_parts(sizes)
    else:
        host = total
        asked.notes.append(Note("media_offload_host", {"gib_in_host": round(total / 2**30, 1)}))
    gives_way = _spare_workspace(pipeline, view, asked, phases)
    if gives_way:
        asked.notes.append(Note("media_workspace_gives_way", {"gib": round(gives_way / 2**30, 1)}))
    holder = Holder(
        cpu=asked.cpu,
        runtime_bytes=asked.engine.runtime_bytes(asked.cpu),
        spread=_SPREAD,
        host_bytes=host,
        heap_keeps=False,
        gives_way=gives_way,
        notes=asked.notes,
    )
    return assemble(resident, phases, holder, {"weights": total})


def _weight_parts(sizes: Mapping[str, float]) -> list[Part]:
    return kept([Part(f"weights_{name}", size, "media_weights_component") for name, size in sizes.items()])


def quantiser(name: str) -> Mapping[str, Any] | None:
    """Facts of the quantiser that a format's name belongs to, None for plain formats."""
    if read_format(name).linear_bits >= 16:
        return None
    facts = matching("quantiser", name)[1]
    return facts or None


def _bits(name: str) -> float:
    facts = quantiser(name)
    if facts:
        for word, bits in facts["bits"].items():
            if word in name:
                return float(bits)
    return read_format(name).linear_bits


def component_bytes(pipeline: Pipeline, weights: str | None, text_format: str | None, asked: Asked) -> dict[str, float]:
    """Bytes of denoiser, text encoders and VAE. Text encoders stay in 16 bits unless somebody says otherwise."""
    weights = weights or ("fp32" if asked.cpu else "bf16")
    bits = _bits(weights)
    rest_bits = max(16.0, bits)
    if text_format is None:
        everything = asked.engine.quantises_after_loading and bool(pipeline.facts.get("torchao_quantises_text"))
        text_format = weights if everything or bits >= 16 else "bf16"
    elif text_format in _HELD_BACK:
        text_format = weights
    texts = 0.0
    if text_format not in ("none", "precomputed", "cached", "dropped"):
        texts = sum(
            _text_encoder_bytes(name, params, text_format, rest_bits, asked.engine.quantises_after_loading)
            for name, params in pipeline.text_encoders.items()
        )
    return {
        "denoiser": pipeline.denoiser * bits / 8,
        "text_encoders": texts,
        "vae": pipeline.vae_params * rest_bits / 8,
    }


def _text_encoder_bytes(name: str, params: int, text_format: str, rest_bits: float, everything: bool) -> float:
    """Small encoders (below a billion) are left in 16 bits; T5's output projections are, by some quantisers."""
    bits = _bits(text_format)
    if bits >= 16 or params < 10**9:
        return params * max(16.0, bits if bits >= 16 else rest_bits) / 8
    row = matching("text_encoder", name)[1]
    tables_params = min(params, int(row["tables"]))
    spared = 0 if everything else min(params - tables_params, int(row["kept"]))
    facts = quantiser(text_format) or {"kept_bytes": 2}
    return (params - tables_params - spared) * bits / 8 + tables_params * 2.0 + spared * float(facts["kept_bytes"])


def _phases(
    pipeline: Pipeline, view: Canvas, asked: Asked, sizes: Mapping[str, float], offload: str, slicing: bool
) -> list[Phase]:
    fit = fitted()
    staged = not asked.cpu and offload != "none"

    def weights_of(name: str) -> list[Part]:
        if not staged:
            return []
        size = sizes[name] if "sequential" not in offload and "group" not in offload else 0.0
        return _weight_parts({name: size})

    value = asked.value_bytes
    positions = asked.batch * max(77, int(pipeline.facts.get("text_tokens", 0))) * pipeline.guidance_batch
    text = positions * 12 * 4096 * value if sizes["text_encoders"] else 0.0
    samples = asked.batch * pipeline.guidance_batch
    denoise = denoiser_bytes(pipeline, view, samples, value, asked.eager)
    latents = asked.batch * view.latents * 16 * 4.0
    decoded = asked.batch * view.pixels * view.frames * 3 * 4.0
    freed = sum(sizes.values()) - sizes["vae"] if staged else 0.0
    vae_parts = _vae_parts(pipeline, view, asked, freed, slicing)
    vae = sum(part.bytes for part in vae_parts if part.name == "activations")
    params = {"batch": asked.batch, "pixels": int(view.pixels), "frames": view.frames}
    phases = [
        Phase("text_encode", (*weights_of("text_encoders"), Part("activations", text, "media_text_encode"))),
        Phase(
            "denoise",
            (
                *weights_of("denoiser"),
                Part("activations", denoise, "media_denoise", {"samples": samples, "tokens": int(view.tokens)}),
                Part("latents", latents, "media_latents"),
            ),
            float(fit["reserved_share_denoiser"]) * denoise,
        ),
        Phase(
            "vae_decode",
            (*weights_of("vae"), *vae_parts, Part("pictures", decoded, "media_pictures", params)),
            float(fit["reserved_share_vae"]) * vae,
        ),
    ]
    if asked.engine.quantises_after_loading and sizes["denoiser"] < 2 * pipeline.denoiser:
        # The 16-bit weights are still there, and the layer at hand in fp32.
        both = 2.0 * pipeline.denoiser - sizes["denoiser"] + 4.0 * 5 * pipeline.hidden**2
        phases.append(Phase("quantise", (Part("weights_before_quantising", both, "media_quantising_copies"),)))
    return phases


def _spare_workspace(pipeline: Pipeline, view: Canvas, asked: Asked, phases: list[Phase]) -> float:
    """Bytes by which the peak falls where fp32 convolutions must do with a workspace of one copy of their tensors."""
    workspace = sum(part.bytes for phase in phases for part in phase.parts if part.name == "workspace")
    spare = workspace - 256 * view.pixels * 4.0
    if asked.cpu or not pipeline.facts.get("vae_fp32") or spare <= 0:
        return 0.0
    decode = next(phase.bytes for phase in phases if phase.name == "vae_decode")
    others = max(phase.bytes for phase in phases if phase.name != "vae_decode")
    return max(0.0, min(spare, decode - others))


def _vae_parts(pipeline: Pipeline, view: Canvas, asked: Asked, freed: float, slicing: bool) -> list[Part]:
    """Activations and workspace of decoding; with slicing one picture at a time. `freed` is what offload took away."""
    fit = fitted()
    upcast = bool(pipeline.facts.get("vae_fp32"))
    value = 4.0 if upcast else asked.value_bytes
    at_once = 1 if slicing else asked.batch
    tensor = 256 * view.pixels * value
    alive = at_once * view.pixels * float(pipeline.vae["values_per_pixel"]) * value
    parts = [Part("activations", alive, "media_vae_decode", {"pictures": at_once, "pixels": int(view.pixels)})]
    if upcast and asked.value_bytes < 4:
        parts.append(Part("weights_upcast", pipeline.vae_params * 2.0, "media_vae_upcast"))
    if pipeline.vae["workspace"] and not asked.cpu:
        if value >= 4:
            # fp32 convolutions choose algorithms by free memory: the workspace does not follow the batch, and it takes
            # some of what offload frees.
            workspace = tensor * float(fit["vae_workspace_fp32"])
            if freed:
                workspace = min(tensor * float(fit["vae_workspace_fp32_offload"]), workspace + freed)
        else:
            workspace = at_once * tensor * float(fit["vae_workspace_16bit"])
        parts.append(Part("workspace", workspace, "media_conv_workspace"))
    return parts
