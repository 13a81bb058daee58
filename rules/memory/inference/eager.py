"""Runtimes that allocate as they go: transformers, exllama, AutoAWQ, gpt-fast, litgpt and others.

The peak is weights + cache + the largest moment of a forward pass over the prompt: a layer's MLP (three widths and
four hidden copies a token in 16 bits), the attention scores where no fused kernel is used, or the logits. Old
transformers keep the logits of the whole prompt in 16 and 32 bits (6 bytes x vocabulary a token), and rotary tables.
"""

from __future__ import annotations

from rules.memory.inference.fitted import constant_bytes
from rules.memory.inference.kv import cache_shape
from rules.memory.inference.placement import Placement, split_by_module
from rules.memory.inference.request import Request
from rules.memory.inference.tensors import largest_matrix_params
from rules.memory.usable import context_bytes
from rules.records import dataclass

_ROTARY_LONGEST = 32768  # tables are made for the configured length; longer ones came with later versions


@dataclass(frozen=True, slots=True)
class EagerPeak:
    """Bytes: on the fullest device, and `kv_all` over all devices; `forward` is the largest moment of the pass."""

    placement: Placement
    kv: float
    kv_all: float
    forward: float
    fixed: float
    context: float
    moment: str


def peak(request: Request) -> EagerPeak:
    """The largest moment of generating `context` tokens for all sequences."""
    engine, model = request.engine, request.model
    placement = split_by_module(request)
    shape = cache_shape(model, request.kv, latent="latent" if engine.latent == "latent" else "expanded", tp=request.tp)
    held = float(shape.window) if engine.windows == "limited" and shape.window else None
    batch = request.sequences
    tokens = max(request.context * batch, engine.least_cache_tokens) / batch
    kv_all = shape.sequence_bytes(tokens, held) * batch * engine.cache_copies * request.tp
    kv = kv_all * placement.layer_share
    at_prompt = shape.sequence_bytes(float(request.prompt), held) * batch * placement.layer_share
    prompt = min(request.prompt, engine.chunk) if engine.chunk else request.prompt
    moments = _moments(request, prompt * batch, prompt)
    moment = max(moments, key=lambda name: moments[name])
    largest = moments[moment]
    if engine.cache == "grown":
        # Before the first token is out the cache holds the prompt only; afterwards the pass is one token long.
        later = _moments(request, batch, 1)
        largest = max(largest - max(0.0, kv - at_prompt), max(later.values()))
    fixed = constant_bytes("eager_base_gib") + (_rotary_tables(request) if engine.rotary_tables else 0.0)
    context = 0.0 if request.cpu else context_bytes(request.device, torch=True)
    return EagerPeak(placement, kv, kv_all, largest, fixed, context, moment)


def _moments(request: Request, tokens: int, length: int) -> dict[str, float]:
    model, engine = request.model, request.engine
    hidden, vocab, heads = model.hidden or 1, model.vocab or 1, model.heads or 1
    value = 4.0 if request.weights.rest_bits == 32 and request.weights.kind != "gguf" else 2.0
    width = 3 * (model.intermediate or 4 * hidden)
    if model.moe and model.moe.moe_layers >= (model.layers or 0):
        width = 3 * max(model.moe.expert_intermediate, model.moe.shared_intermediate)
    mlp = tokens * value * (width / request.tp + 4 * hidden)
    if any(name in request.weights.name for name in engine.unpacks):
        mlp += largest_matrix_params(model) * 2.0
    all_logits = request.stated("full_logits") or (engine.all_logits and request.stated("full_logits") is not False)
    full = request.stated("full_logits") and not engine.all_logits
    per_logit = value if full else value + 4
    logits = (tokens if all_logits else request.sequences) * vocab * per_logit
    scores = 0.0
    if _scores_kept(request):
        keys = max(length, request.prompt)
        scores = request.sequences * heads / request.tp * float(length) * keys * engine.score_bytes
    return {"mlp": mlp, "logits": logits, "scores": scores + (4 * tokens * hidden * value if scores else 0.0)}


def _scores_kept(request: Request) -> bool:
    stated = str(request.stated("attention_impl") or "").lower()
    if stated:
        return stated == "eager"
    if request.stated("flash_attention") is not None:
        return not request.stated("flash_attention")
    return request.engine.attention == "eager"


def _rotary_tables(request: Request) -> float:
    model = request.model
    head_dim = model.head_dim or max(1, (model.hidden or 1) // (model.heads or 1))
    return (model.layers or 0) * float(min(model.max_position or 0, _ROTARY_LONGEST)) * head_dim * 2 * 2.0
