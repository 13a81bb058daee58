"""llama.cpp and its relatives: buffers of weights, cache and compute on each device.

Compute buffer of one device, U tokens a micro-batch, n_ctx cells (llama.cpp graph; checked against load logs):
    logits          (vocab + hidden) x U x 4
    no flash        U x 4 x (heads x n_ctx + masks x n_ctx + 2 hidden + 2 heads x head_dim)
    flash           U x 2 x n_ctx of mask beside the layer's activations, latent attention expanded to keys and values
the larger of the phases counts, for a buffer is reused; with layers over several devices the inputs are kept
`pipeline_copies` times. A quantised cache is unpacked to 16 bits a layer at a time for flash attention.
"""

from __future__ import annotations

from rules.catalog.models import ModelSpec
from rules.memory.inference.kv import CacheShape, Latent, cache_shape, padded
from rules.memory.inference.placement import Placement, split_by_layers
from rules.memory.inference.request import Request
from rules.memory.usable import context_bytes
from rules.records import dataclass

_PAD = 256


@dataclass(frozen=True, slots=True)
class GgmlBuffers:
    """Bytes: `weights`, `kv`, `compute` on the fullest device; `_all` over all devices; `unpacked` outside buffers."""

    placement: Placement
    kv: float
    kv_all: float
    compute: float
    compute_all: float
    unpacked: float
    context: float
    latent: Latent


def flash_attention(request: Request) -> bool:
    """Stated, or the engine's default: on since late 2025 (automatic), needed by a quantised cache of values."""
    stated = request.stated("flash_attention")
    if stated is not None:
        return bool(stated)
    if request.kv.value_bits < 16:
        return True
    return request.engine.flash_default


def latent_policy(request: Request, flash: bool) -> Latent:
    """How an MLA model's cache is kept: by the stated mode, else by the engine."""
    mode = request.stated("mla_mode")
    if mode is None:
        if request.engine.latent == "expanded":
            return "expanded"
        return "latent" if flash else "latent_and_value"
    if mode == 0:
        return "expanded"
    return "latent_and_value" if mode == 1 and not flash else "latent"


def buffers(request: Request) -> GgmlBuffers:
    """The buffers that the engine allocates at start-up."""
    placement = split_by_layers(request)
    model = request.model
    flash = flash_attention(request)
    latent = latent_policy(request, flash)
    ubatch = _micro_batch(request)
    tp = request.tp
    shape = cache_shape(model, request.kv, latent=latent, tp=tp)
    cells = padded(request.context, 32 if request.context < _PAD else _PAD)
    held = None
    if shape.window and request.engine.windows == "limited":
        held = float(padded(shape.window + ubatch, _PAD))
    total_kv = shape.sequence_bytes(cells, held) * request.sequences
    kv_all = total_kv * placement.held_share * tp
    kv = kv_all * (placement.layer_share / placement.held_share if placement.held_share else 0.0)
    kv = kv / tp if tp > 1 else kv
    n_ctx = cells * request.sequences
    last, other = _compute(request, placement, ubatch, n_ctx, flash, latent)
    n = max(1, request.devices) if not request.cpu else 1
    unpacked = _unpacked(model, request, n_ctx, flash, shape)
    context = 0.0 if request.cpu else context_bytes(request.device, torch=False)
    others = 0 if request.engine.scratch_on_main else n - 1
    return GgmlBuffers(placement, kv, kv_all, max(last, other), last + other * others, unpacked, context, latent)


def _micro_batch(request: Request) -> int:
    stated = request.stated("n_ubatch")
    ubatch = int(stated) if stated and stated > 0 else request.engine.n_ubatch
    batch = request.stated("n_batch")
    if batch and batch > 0:
        ubatch = min(ubatch, int(batch))
    return max(1, min(ubatch, request.context * request.sequences, 1 << 20))


def _compute(
    request: Request, placement: Placement, ubatch: int, n_ctx: int, flash: bool, latent: Latent
) -> tuple[float, float]:
    """Compute buffers of the device with the output layer and of each other one."""
    model = request.model
    hidden, vocab, heads = model.hidden or 1, model.vocab or 1, model.heads or 1
    q_width = heads * (model.head_dim or max(1, hidden // heads))
    logits = (vocab + hidden) * ubatch * 4.0
    masks = 2 if model.sliding_window and (model.layer_kinds.get("sliding") or 0) else 1
    if flash or not model.heads:
        layers = _layer_activations(model, ubatch) + n_ctx * ubatch * 2.0 * masks
        if model.mla and latent != "expanded":
            # Queries and outputs of all heads in the latent's width, 32 bits.
            layers = ubatch * 4.0 * (2 * heads * model.mla.kv_lora_rank + 2 * hidden)
            if request.engine.attention_over_latent == "expanded" and request.stated("mla_mode") != 1:
                layers += _expanded_latent(model, n_ctx)
    else:
        layers = ubatch * 4.0 * (heads * n_ctx + masks * n_ctx + 2 * hidden + 2 * q_width)
    tp = max(1, request.tp)
    layers /= tp
    copies = request.engine.pipeline_copies if _pipelined(request, placement) else 1
    inputs = 0.0
    if copies == 1 and flash and request.engine.keeps_inputs:
        mask = n_ctx * ubatch * 2.0
        inputs = mask + hidden * ubatch * 4.0
        layers -= mask * masks
    if copies > 1:
        inputs = copies * (n_ctx * ubatch * (2.0 if flash else 4.0) + hidden * ubatch * 4.0)
        if not flash:
            layers -= n_ctx * ubatch * 4.0  # the mask is among the inputs
    last = max(logits if placement.output_on_device else 0.0, layers) + inputs
    return last, layers + inputs


def _pipelined(request: Request, placement: Placement) -> bool:
    everything = placement.output_on_device and request.stated("experts_on_cpu") in (None, False)
    return request.devices > 1 and request.tp == 1 and everything and not request.cpu


def _layer_activations(model: ModelSpec, ubatch: int) -> float:
    hidden = model.hidden or 1
    width = 3 * (model.intermediate or 2 * hidden)
    if model.moe:
        width = model.moe.active * (3 * model.moe.expert_intermediate + 2 * hidden)
    return ubatch * 4.0 * (width + 4 * hidden)


def _expanded_latent(model: ModelSpec, n_ctx: int) -> float:
    """Keys, values and the repeated rotary part of all heads over the context, 16 bits."""
    m = model.mla
    assert m is not None
    return n_ctx * (model.heads or 1) * (m.qk_nope + 2 * m.qk_rope + m.v_head) * 2.0


def _unpacked(model: ModelSpec, request: Request, n_ctx: int, flash: bool, shape: CacheShape) -> float:
    """Keys and values of one layer in 16 bits, where flash attention reads a quantised cache on a GPU."""
    if not flash or request.cpu or request.kv.key_bits >= 16 or not shape.full or model.mla:
        return 0.0
    if request.device is not None and request.device.vendor != "nvidia":
        return 0.0  # other back ends read the packed cache
    heads = (model.kv_heads or model.heads or 1) / request.tp
    return n_ctx * heads * (model.head_dim or 128) * 2 * 2.0
