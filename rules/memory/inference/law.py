"""The inference law of text models: one footprint from whichever engine family runs the workload."""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Part
from rules.memory.inference import eager, ggml, paged
from rules.memory.inference.fitted import constant, constant_bytes, spread_range
from rules.memory.inference.request import Request, resolve
from rules.workload import InferenceWorkload


def inference_footprint(workload: InferenceWorkload, model: ModelSpec, device: Accelerator | None = None) -> Footprint:
    """Memory of serving `workload` on its fullest device; raises `UnsupportedWorkload` where no law applies.

    `components` has what engines log, over `devices` of them where their logs cover all (llama.cpp): `weights`, `kv`,
    `compute_buffer`, `activation_peak`, `cuda_graphs`, `non_torch`, `engine_buffers`, `context`, in bytes.
    """
    try:
        request = resolve(workload, model, device)
        return {"ggml": _ggml, "paged": _paged, "eager": _eager}[request.engine.family](request)
    except (OverflowError, ZeroDivisionError) as exc:
        raise UnsupportedWorkload("inference_sizes_out_of_range", model=model.hf_id) from exc


def _weights_why(request: Request) -> dict[str, str | float]:
    return {"format": request.weights.name, "params_b": round(request.model.params_b, 2)}


def _kv_why(request: Request) -> dict[str, str | float]:
    return {"tokens": request.context, "sequences": request.sequences, "format": request.kv.name}


def _ggml(request: Request) -> Footprint:
    found = ggml.buffers(request)
    place = found.placement
    parts = (
        Part("weights", place.device, "weights_in_format", _weights_why(request)),
        Part("kv_cache", found.kv, "kv_cache_for_context", _kv_why(request)),
        Part("compute_buffer", found.compute, "compute_buffer_of_micro_batch"),
        Part("unpacked_cache", found.unpacked, "quantised_cache_unpacked"),
    )
    buffers = place.device + found.kv + found.compute
    allocated = buffers + found.unpacked
    several = request.summed > 1 and request.devices > 1
    n = request.devices if several else 1
    logged = {
        "weights": place.devices if several else place.device,
        "kv": found.kv_all if several else found.kv,
        "compute_buffer": found.compute_all if several else found.compute,
    }
    total = sum(logged.values())
    components = {
        **logged,
        "engine_buffers": total,
        "unpacked_cache": found.unpacked * n,
        "context": found.context * n,
        "allocated": total + found.unpacked * n,
        "devices": float(n),
    }
    return _footprint(request, parts, allocated, found.context, components, place.host)


def _paged(request: Request) -> Footprint:
    found = paged.pool(request)
    place = found.placement
    refused = paged.refusal(found, request)
    sequences = min(request.sequences, 1 << 20)
    known = request.card_known and refused is None
    # Without a card the pool is what the asked sequences need; a refusing engine needs at least one sequence.
    kv = max(found.pool, 0.0) if known else found.needed * sequences
    parts = (
        Part("weights", place.device, "weights_in_format", _weights_why(request)),
        Part("kv_cache", kv, "kv_pool_of_engine" if known else "kv_cache_for_context", _kv_why(request)),
        Part("activation_peak", found.activation, "activation_peak_of_profile_run"),
        Part("non_torch", found.non_torch, "memory_outside_allocator"),
        Part("cuda_graphs", found.graphs, "captured_graphs"),
    )
    allocated = sum(part.bytes for part in parts)
    outside = found.context
    if not known and request.card_known:
        # What a card would have to offer at this utilisation.
        outside += max(0.0, (allocated - found.graphs) / found.share - allocated)
    components = {
        "weights": place.device,
        "kv": found.pool if request.card_known else kv,
        "kv_needed": found.needed,
        "kv_least": found.least,
        "kv_per_token": found.shape.per_token,
        "activation_peak": found.activation,
        "non_torch": found.non_torch,
        "cuda_graphs": found.graphs,
        "engine_buffers": place.device + kv + found.activation,
        "context": outside,
        "process": found.context,
        "allocated": allocated,
        "devices": 1.0,
    }
    if request.summed > 1:
        components = {k: v * (request.devices if k != "kv_per_token" else 1) for k, v in components.items()}
    if refused is not None:
        request.notes.append(refused)
    tokens = found.tokens if request.card_known else found.needed / max(1.0, found.shape.per_token)
    return _footprint(request, parts, allocated, outside, components, 0.0, tokens)


def _eager(request: Request) -> Footprint:
    found = eager.peak(request)
    place = found.placement
    parts = (
        Part("weights", place.device, "weights_in_format", _weights_why(request)),
        Part("kv_cache", found.kv, "kv_cache_for_context", _kv_why(request)),
        Part("forward_pass", found.forward, f"largest_moment_{found.moment}", {"tokens": request.prompt}),
        Part("fixed_buffers", found.fixed, "fixed_buffers_of_runtime"),
    )
    allocated = sum(part.bytes for part in parts)
    n = request.devices if request.summed > 1 else 1
    weights, kv = (place.devices, found.kv_all) if n > 1 else (place.device, found.kv)
    total = weights + kv + (found.forward + found.fixed) * n
    components = {
        "weights": weights,
        "kv": kv,
        "compute_buffer": found.forward * n,
        "activation_peak": found.forward,
        "engine_buffers": total,
        "context": found.context * n,
        "allocated": total,
        "reserved": total * (1.0 if request.cpu else 1.0 + constant("cached_share")),
        "devices": float(n),
    }
    return _footprint(request, parts, allocated, found.context, components, place.host)


def _footprint(
    request: Request,
    parts: tuple[Part, ...],
    allocated: float,
    context: float,
    components: dict[str, float],
    host: float,
    tokens: float | None = None,
) -> Footprint:
    name = request.engine.name
    reserved = components.get("reserved", components["allocated"]) / components["devices"]
    phase = "generate" if request.engine.family == "eager" else "serve"
    host_bytes = host
    if request.cpu:
        copies = request.engine.host_copies if request.weights.quantised else 1
        host_bytes += allocated + parts[0].bytes * (copies - 1)
        host_bytes += constant_bytes("process_gib") if request.engine.family == "eager" else 0.0
    if request.cpu:
        request.notes.append(Note("runs_in_host_memory"))
    return Footprint(
        phase=phase,
        parts=parts,
        phases={phase: allocated},
        allocated=spread_range(name, allocated),
        reserved=spread_range(name, max(allocated, reserved)),
        device=spread_range(name, 0.0 if request.cpu else max(allocated, reserved) + context),
        components=components,
        kv_cache_tokens=tokens,
        cpu_bytes=host_bytes,
        notes=tuple(request.notes),
    )
