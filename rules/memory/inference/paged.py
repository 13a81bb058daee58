"""Engines with a pool of cache blocks: vLLM, SGLang, TGI, lmdeploy, TensorRT-LLM.

At start-up a profile run of the largest batch finds the activation peak; the pool is the engine's share of the card
less weights, peak and what lies outside the framework's allocator. The peak is the larger of the MLP over the profiled
tokens and the sampler over the most sequences (logits, sort, softmax and their copies: `sampler_bytes_per_logit`).
"""

from __future__ import annotations

import math
from typing import Any

from rules.memory.footprint import Note
from rules.memory.inference.fitted import constant, constant_bytes
from rules.memory.inference.kv import CacheShape, Latent, cache_shape
from rules.memory.inference.placement import Placement, split_by_rank
from rules.memory.inference.request import Request, positive_int, share_of_one
from rules.memory.usable import context_bytes
from rules.records import dataclass
from rules.units import GIB

_LARGE_CARD_GIB = 70
# An engine that cuts the window to its pool instead of refusing is still of no use below this many tokens.
_LEAST_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class PagedPool:
    """Bytes of one rank. `pool` may be negative (the engine refuses to start).

    `needed` is one longest sequence, `least` the pool below which the engine does not start.
    """

    placement: Placement
    shape: CacheShape
    activation: float
    non_torch: float
    graphs: float
    context: float
    share: float
    pool: float
    needed: float
    least: float
    tokens: float
    held: float | None


def pool(request: Request) -> PagedPool:
    """What the profile run would find and the pool that it leaves."""
    engine = request.engine
    placement = split_by_rank(request)
    latent: Latent = "expanded" if engine.latent == "expanded" else "latent"
    attention_tp = _attention_degree(request)
    shape = cache_shape(request.model, request.kv, tp=attention_tp, layer_share=placement.layer_share, latent=latent)
    tokens, chunked = profiled_tokens(request)
    activation = max(_mlp_peak(request, tokens), 0.0 if chunked else _sampler_peak(request, tokens))
    non_torch = constant_bytes("non_torch_gib")
    if request.tp * request.pp > 1:
        non_torch += constant_bytes("communicator_gib")
    context = context_bytes(request.device, torch=True, devices=request.tp * request.pp)
    if engine.counts_context:
        non_torch += constant_bytes("counted_context_gib") * (2 if request.tp > 1 else 1)
        context = 0.0
    graphs = _graphs(request)
    share = _utilization(request)
    card = request.card_bytes
    room = _room(request, card, share, placement.device, activation, non_torch, context)
    if engine.graphs_in_pool:
        room -= graphs
    held = float(shape.window + tokens) if engine.windows == "limited" and shape.window else None
    block = positive_int(request.stated("block_size")) or engine.block_size
    length = math.ceil(request.context / block) * block
    needed = shape.sequence_bytes(length, held)
    shortest = length if engine.refuses_short_pool else min(length, _LEAST_TOKENS)
    least = shape.sequence_bytes(shortest, held)
    per_token = (needed - shape.state) / length if length else 0.0
    kept_states = shape.state * min(request.sequences, 256) if shape.state else 0.0
    tokens_held = max(0.0, room - kept_states) / per_token if per_token > 0 else 0.0
    return PagedPool(
        placement,
        shape,
        activation,
        non_torch,
        graphs,
        context,
        share,
        room,
        needed,
        least,
        math.floor(tokens_held / block) * block,
        held,
    )


def _attention_degree(request: Request) -> int:
    dp = positive_int(request.stated("dp_attention"))
    return max(1, request.tp // dp) if dp and dp > 1 else request.tp


def _utilization(request: Request) -> float:
    stated = share_of_one(request.stated("gpu_memory_utilization"))
    if request.engine.pool_rule == "static_fraction":
        stated = share_of_one(request.stated("mem_fraction_static")) or stated
        return stated or (0.88 if request.tp <= 2 else 0.85)
    return stated or request.engine.utilization


def _room(
    request: Request, card: float, share: float, weights: float, activation: float, non_torch: float, context: float
) -> float:
    rule = request.engine.pool_rule
    if rule == "static_fraction":
        return (card - context - non_torch) * share - weights
    if rule == "share_of_free":
        return (card - context - non_torch - weights - activation) * share
    return card * share - weights - non_torch - activation


def large_card(request: Request) -> bool:
    """True where engines choose their larger defaults: 70 GiB and more, but not an A100."""
    name = request.device.name if request.device else ""
    if not name and request.workload.hardware:
        name = request.workload.hardware[0].name
    return request.card_bytes >= _LARGE_CARD_GIB * GIB and not any(word in name.upper() for word in ("A100", "A800"))


def profiled_tokens(request: Request) -> tuple[int, bool]:
    """Tokens of the profile run, and whether it is one chunk that samples nothing."""
    stated = positive_int(request.stated("max_batched_tokens"))
    if stated:
        return stated, False
    engine = request.engine
    if engine.batched_tokens == "model_length":
        if engine.chunk_above and request.context > engine.chunk_above:
            return engine.chunk_tokens, True
        return max(request.context, 2048), False
    base = int(engine.batched_tokens)
    return (max(base, engine.large_batched_tokens) if large_card(request) else base), False


def _mlp_peak(request: Request, tokens: int) -> float:
    model, tp = request.model, request.tp
    hidden = model.hidden or 1
    width = 3 * (model.intermediate or 4 * hidden) / tp
    if model.moe:
        m = model.moe
        dense = width if m.moe_layers < (model.layers or 0) else 0.0
        width = max(dense, m.active * (3 * m.expert_intermediate / tp + hidden))
    return tokens * 2.0 * (width + 3 * hidden)


def sampled_sequences(request: Request) -> int:
    """Sequences that the profile run samples: stated, or the default of version and card."""
    stated = positive_int(request.stated("max_num_seqs"))
    if stated:
        return stated
    engine = request.engine
    return max(engine.max_num_seqs, engine.large_max_num_seqs) if large_card(request) else engine.max_num_seqs


def _sampler_peak(request: Request, tokens: int) -> float:
    return min(sampled_sequences(request), tokens) * (request.model.vocab or 0) * constant("sampler_bytes_per_logit")


def _graphs(request: Request) -> float:
    stated: Any = request.stated("cuda_graphs")
    if stated is False or stated == 0 or (request.device is not None and request.device.vendor != "nvidia"):
        return 0.0
    return constant_bytes("graphs_gib")


def refusal(found: PagedPool, request: Request) -> Note | None:
    """The note that the pool cannot hold one sequence of the longest length, or None where it can."""
    if not request.card_known or found.pool >= found.least:
        return None
    return Note(
        "kv_pool_too_small",
        {
            "pool_gib": round(found.pool / GIB, 2),
            "needed_gib": round(found.least / GIB, 2),
            "tokens": request.context,
        },
    )
