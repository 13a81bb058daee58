"""Seconds of a prefill: the products of all prompt tokens, attention over what stands before each, the weights read
once a chunk, and the fixed time of the layers."""

from __future__ import annotations

import math

from rules.speed.llm.decode import Step, layer_seconds, link_seconds, product_rate
from rules.speed.llm.request import Request

_STREAMED_SHARE = 0.8  # of the slot's rate that copies from pinned host memory reach
_SERVER_CHUNK = 8192  # tokens of a pass where an engine batches prompts


def prefill(request: Request, tokens_each: float, sequences: float = 1.0) -> Step:
    """Prompts of `tokens_each` tokens for `sequences` sequences on one replica, after `request.depth` cached tokens."""
    work, machine, k = request.work, request.machine, request.k
    tokens = tokens_each * sequences
    chunk = request.chunk if request.family in ("ggml", "cpu", "hybrid") else _SERVER_CHUNK
    passes = max(1, math.ceil(tokens / chunk))
    before = request.depth + tokens_each / 2
    _, attention = work.ops(tokens, before)
    dense_ops = 2.0 * work.dense_params * tokens
    expert_ops = 2.0 * (work.active_params - work.dense_params) * tokens / k("compute_moe")
    rate = product_rate(request)
    slow = k("attention") if request.flash else request.constants.of("attention", "early")
    wide = rate if work.operand_bits == 16 else rate * machine.peak(16) / machine.peak(work.operand_bits)
    products = (dense_ops + expert_ops) / rate + attention / (slow * wide)
    dense, experts = work.read_bytes(tokens / passes)
    read = passes * (dense + experts) / (k("share", machine.memory) * machine.bandwidth)
    return Step(
        bandwidth=read / request.tp,
        compute=products / request.tp,
        overhead=passes * layer_seconds(request),
        interconnect=link_seconds(request, tokens) if request.tp > 1 else 0.0,
        host=_host_seconds(request, tokens),
    )


def _host_seconds(request: Request, tokens: float) -> float:
    host = request.host
    if host is None:
        return 0.0
    work, constants = request.work, request.constants
    there = work.dense_params * request.host_share
    there += (work.active_params - work.dense_params) * min(1.0, request.host_share + request.experts_on_host)
    there_seconds = 2.0 * there * tokens / (constants.of("compute", "cpu", "cpu") * host.fp32)
    if work.operand_bits != 16 or work.bits == 16:  # what the device can use as it lies may be streamed to it instead
        held = work.dense_bytes * request.host_share
        held += work.expert_bytes * min(1.0, request.host_share + request.experts_on_host)
        return min(there_seconds, held / request.tp / (_STREAMED_SHARE * request.machine.link))
    return there_seconds
