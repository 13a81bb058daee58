"""Diffusion inference: text encoding, denoising and VAE decoding, with offload, slicing and quantisation.

The VAE decode of the full picture sets the peak of most pipelines: three tensors of 256 channels at the full
resolution and a convolution workspace beside them. Quantising after loading has a peak of its own, because the 16-bit
copy is still there. Offload keeps the part at work on the device and the rest in host memory.
"""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.media.asked import Asked, stated, words
from rules.memory.media.components import ComponentBytes, component_bytes, component_part
from rules.memory.media.facts import fitted, tables
from rules.memory.media.phases import Holder, Phase, Spread, assemble, kept
from rules.memory.media.pipeline import Canvas, Pipeline, canvas, denoiser_bytes, pipeline_of
from rules.units import to_gib
from rules.workload import InferenceWorkload

_SPREAD = Spread(0.25, 0.35)


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
    if asked.cpu or offload == "none":
        resident = sizes.parts()
    else:
        host = sizes.total
        asked.notes.append(Note("media_offload_host", {"gib_in_host": round(to_gib(sizes.total), 1)}))
    gives_way = _spare_workspace(pipeline, view, asked, phases)
    if gives_way:
        asked.notes.append(Note("media_workspace_gives_way", {"gib": round(to_gib(gives_way), 1)}))
    holder = Holder(
        cpu=asked.cpu,
        runtime_bytes=asked.engine.runtime_bytes(asked.cpu),
        spread=_SPREAD,
        host_bytes=host,
        heap_keeps=False,
        gives_way=gives_way,
        notes=asked.notes,
    )
    return assemble(resident, phases, holder, {"weights": sizes.total})


def _phases(
    pipeline: Pipeline, view: Canvas, asked: Asked, sizes: ComponentBytes, offload: str, slicing: bool
) -> list[Phase]:
    denoiser_share = float(pipeline.facts.get("reserved_share", tables()["denoiser"]["reserved_share"]))
    vae_share = float(pipeline.vae.get("reserved_share", fitted()["reserved_share_vae"]))
    staged = not asked.cpu and offload != "none"

    def at_work(name: str, size: float) -> list[Part]:
        streamed = "sequential" in offload or "group" in offload
        return kept([component_part(name, 0.0 if streamed else size)]) if staged else []

    value = asked.value_bytes
    positions = asked.batch * max(77, int(pipeline.facts.get("text_tokens", 0))) * pipeline.guidance_batch
    text = positions * float(tables()["denoiser"]["text_encode_values"]) * value if sizes.text_encoders else 0.0
    samples = asked.batch * pipeline.guidance_batch
    denoise = denoiser_bytes(pipeline, view, samples, value, asked.eager)
    latents = asked.batch * view.latents * 16 * 4.0
    decoded = asked.batch * view.pixels * view.frames * 3 * 4.0
    freed = sizes.total - sizes.vae if staged else 0.0
    vae_parts = _vae_parts(pipeline, view, asked, freed, slicing)
    vae = sum(part.bytes for part in vae_parts if part.name == "activations")
    params = {"batch": asked.batch, "pixels": int(view.pixels), "frames": view.frames}
    phases = [
        Phase(
            "text_encode",
            (*at_work("text_encoders", sizes.largest_text), Part("activations", text, "media_text_encode")),
        ),
        Phase(
            "denoise",
            (
                *at_work("denoiser", sizes.denoiser),
                Part("activations", denoise, "media_denoise", {"samples": samples, "tokens": int(view.tokens)}),
                Part("latents", latents, "media_latents"),
            ),
            denoiser_share * denoise,
        ),
        Phase(
            "vae_decode",
            (*at_work("vae", sizes.vae), *vae_parts, Part("pictures", decoded, "media_pictures", params)),
            vae_share * vae,
        ),
    ]
    if asked.engine.quantises_after_loading and sizes.denoiser < 2 * pipeline.denoiser:
        # The 16-bit weights are still there, and the layer at hand in fp32.
        both = 2.0 * pipeline.denoiser - sizes.denoiser + 4.0 * 5 * pipeline.hidden**2
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
