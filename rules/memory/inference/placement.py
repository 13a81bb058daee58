"""Where the weights lie: bytes on the fullest device and in host memory, by engine family and parallel degrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.catalog.models import ModelSpec
from rules.formats import WeightFormat
from rules.memory.inference.request import Request
from rules.memory.inference.tensors import largest_matrix_params, tensor_groups
from rules.memory.inference.weights import WeightBytes, latent_projection_bytes, weight_bytes
from rules.records import dataclass
from rules.units import GIB


@dataclass(frozen=True, slots=True)
class Placement:
    """`device` is the fullest accelerator, `devices` all together, `host` what stays in host memory, all in bytes.

    `layer_share` is the share of the model's layers (and so of the cache) on the fullest device; `held_share` on all
    accelerators together.
    """

    device: float
    devices: float
    host: float
    layer_share: float
    held_share: float
    output_on_device: bool = True


def model_weights(request: Request) -> WeightBytes:
    """Bytes of the whole model; a stated file size or bits a weight win over the format's own."""
    found = weight_bytes(request.model, request.weights)
    file_gib, bits = request.stated("file_gib"), request.stated("bits_per_weight")
    if _positive(file_gib):
        return found.fitted_to(file_gib * GIB)
    if _positive(bits) and request.weights.kind == "gguf":
        text = request.model.params_total - request.model.vision_params
        return found.fitted_to(text * bits / 8)
    return _padded_experts(found, request)


def _padded_experts(found: WeightBytes, request: Request) -> WeightBytes:
    """Routed experts of 4-bit MX checkpoints with their rows padded for the kernels, where the engine does that."""
    multiple, moe = request.engine.pads_mxfp4, request.model.moe
    if not multiple or moe is None or not request.weights.name.startswith("mxfp4") or not moe.expert_intermediate:
        return found
    wide = -(-moe.expert_intermediate // multiple) * multiple
    return replace(found, experts=found.experts * wide / moe.expert_intermediate)


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value < 1e9


def draft_bytes(request: Request) -> float:
    """Weights of a draft model for speculative decoding, if one is stated."""
    draft = request.stated("draft_model_gib")
    return float(draft) * GIB if _positive(draft) else 0.0


def split_by_layers(request: Request) -> Placement:
    """llama.cpp and front ends of its kind: embedding on the host, layers over devices, what is left on the host."""
    weights = model_weights(request)
    model = request.model
    layers = model.layers or 1
    total = weights.total
    if request.cpu:
        return Placement(total, total, 0.0, 1.0, 1.0)
    stated = request.stated("gpu_layers")
    offloaded = layers + 1 if stated is None or stated < 0 else min(int(stated), layers + 1)
    output_on = offloaded > layers
    share = min(offloaded, layers) / layers
    experts_on = _experts_share(request)
    on_device = (weights.blocks + weights.small + weights.experts * experts_on) * share
    blocks = on_device
    if request.engine.latent_copies and request.stated("mla_mode"):
        blocks += latent_projection_bytes(model, request.weights) * share
    # A tied table is one tensor in the file and is loaded twice: for look-up on the host, as output on the device.
    head = weights.head or weights.embedding
    devices = blocks + (head if output_on else 0.0) + draft_bytes(request)
    n = max(1, request.tp if request.tp > 1 else request.pp)
    biggest = blocks / n + (head / (n if request.tp > 1 else 1) if output_on else 0.0) + draft_bytes(request)
    if n > 1 and request.tp == 1:
        # Layers are dealt so that the devices hold about the same.
        biggest = max(devices / n, biggest - blocks / layers)
    host = weights.embedding + weights.blocks + weights.small + weights.experts - on_device
    host += 0.0 if output_on else weights.head
    return Placement(biggest, devices, host, share / n, share, output_on)


def _experts_share(request: Request) -> float:
    """Share of the routed experts' layers on accelerators."""
    moe = request.model.moe
    if moe is None:
        return 1.0
    on_gpu = request.stated("experts_on_gpu")
    if on_gpu is not None:
        return min(1.0, max(0.0, float(on_gpu)) / moe.experts)
    on_cpu = request.stated("experts_on_cpu")
    if on_cpu is None:
        return 0.0 if request.engine.experts_on_cpu else 1.0
    if isinstance(on_cpu, (bool, str)):
        return 0.0 if on_cpu not in (False, "false", "none", "") else 1.0
    return 1.0 - min(1.0, max(0.0, float(on_cpu)) / max(1, moe.moe_layers))


def split_by_rank(request: Request) -> Placement:
    """Tensor, pipeline and expert parallelism: embedding and head are cut over the vocabulary, norms are copied."""
    weights = model_weights(request)
    tp, pp = request.tp, request.pp
    ep = request.stated("ep")
    expert_ranks = max(tp, int(ep)) if isinstance(ep, int) and ep > 1 else tp
    copies = _kv_copies(request.model, tp)
    extra = _kv_projection_bytes(request.model, request.weights) * (copies - 1) / tp if copies > 1 else 0.0
    blocks = (weights.blocks / tp + weights.experts / expert_ranks + weights.small + extra) / pp
    ends = (max(weights.embedding, weights.head) if pp > 1 else weights.embedding + weights.head) / tp
    biggest = blocks + ends + weights.vision / tp + draft_bytes(request) / tp
    return Placement(biggest, biggest * tp * pp, 0.0, 1.0 / pp, 1.0)


def _kv_copies(model: ModelSpec, tp: int) -> float:
    heads = model.kv_heads or 0
    return tp / heads if heads and tp > heads else 1.0


def _kv_projection_bytes(model: ModelSpec, fmt: WeightFormat) -> float:
    return sum(g.params * fmt.linear_bits / 8 for g in tensor_groups(model) if g.name in ("attn_k", "attn_v"))


def split_by_module(request: Request) -> Placement:
    """Python runtimes: everything on the device, whole layers over several devices, extra copies of some engines."""
    weights = model_weights(request)
    engine, fmt, model = request.engine, request.weights, request.model
    total = weights.total + draft_bytes(request)
    host = 0.0
    if engine.unties_head and not weights.head and ("any" in engine.unties_head or _is(fmt, engine.unties_head)):
        total += weights.embedding
    if engine.embedding_on_cpu and not request.cpu:
        keep = weights.embedding if weights.head else 0.0
        total, host = total - keep, keep
    if _is(fmt, engine.dequantises):
        total += largest_matrix_params(model) * 2
    if engine.quantises_on_device and fmt.quantised:
        total += max(largest_matrix_params(model), (model.vocab or 0) * (model.hidden or 0)) * 2
    offload = str(request.stated("offload") or "none")
    if offload in ("model_cpu", "sequential_cpu", "params_cpu"):
        layers = model.layers or 1
        on_device = total / layers if offload != "model_cpu" else total
        return Placement(on_device, on_device, host + total - on_device, 1.0, 1.0)
    n = max(1, request.tp if request.tp > 1 else request.pp)
    share = 1.0 / n
    biggest = total / n if request.tp > 1 else (total - weights.head) / n + weights.head if n > 1 else total
    return Placement(biggest, total, host, share, 1.0)


def _is(fmt: WeightFormat, families: tuple[str, ...]) -> bool:
    return any(family in fmt.name for family in families)
