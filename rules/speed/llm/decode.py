"""Seconds of one decode step.

A step reads the weights once, each sequence's cache once, widens quantised weights, multiplies, and pays a fixed time a
layer: t = bytes / (share x bandwidth) + widening + products + layers x fixed + links. The terms add, because kernels
run one after another; which is largest says what binds. Facts: two-parameter fits of published single-stream runs.
"""

from __future__ import annotations

import math

from rules.records import dataclass
from rules.speed.llm.request import Request

_TWO_ALL_REDUCES = 2  # a layer has one after attention and one after the MLP
_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds of a step by what they are spent on."""

    bandwidth: float
    compute: float
    overhead: float
    interconnect: float
    host: float = 0.0

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.bandwidth + self.compute + self.overhead + self.interconnect + self.host


def decode_step(request: Request, sequences: float, context: float) -> Step:
    """One token for each of `sequences` sequences of `context` tokens, on one replica.

    Pipeline stages work on parts of the batch in turn, so a step lasts as long as one part takes through all of them.
    """
    part = max(1.0, sequences / request.pp)
    work, machine, k = request.work, request.machine, request.k
    rate = k("share", machine.memory) * machine.bandwidth * request.tp
    dense, experts = work.read_bytes(part)
    host = _host_seconds(request, dense, experts, part)
    on_device = 1.0 - request.host_share
    read = dense * on_device + experts * k("moe") / unaided(request) * max(0.0, on_device - request.experts_on_host)
    cache = part * work.cache_bytes(context) * k("cache") * on_device
    touched = work.dense_params + work.expert_params * work.experts_touched(part)
    widen = touched * on_device * k("unpack", str(work.bits)) / (machine.fp32 * request.tp)
    weights_ops, attention_ops = work.ops(part, context)
    products = (weights_ops + attention_ops) * on_device / (k("batched") * product_rate(request) * request.tp)
    return Step(
        bandwidth=(read + cache) / rate,
        compute=widen + products,
        overhead=layer_seconds(request) + part * k("sequence_us") * 1e-6,
        interconnect=link_seconds(request, part),
        host=host,
    )


def _host_seconds(request: Request, dense: float, experts: float, part: float) -> float:
    """Seconds that the host's CPU reads its share of the weights."""
    host = request.host
    if host is None:
        return 0.0
    read = dense * request.host_share + experts * min(1.0, request.host_share + request.experts_on_host)
    c = request.constants
    widen = read / max(1e-9, dense + experts) * request.work.active_params * part
    ops = c.of("unpack", "cpu", str(request.work.bits))
    return read / (c.of("share", "cpu", "cpu") * host.bandwidth) + widen * ops / host.fp32


def layer_seconds(request: Request) -> float:
    """The fixed time of one pass through all layers: that of the host's step, and that of each layer."""
    family = f"{request.family}_early" if request.early else request.family
    us = request.constants.of("layer_us", family)
    step_us = request.constants.of("step_us", family)
    if request.work.moe:
        us += request.k("moe_layer_us")
    return (request.work.layers * us + step_us) * 1e-6


def link_seconds(request: Request, tokens: float) -> float:
    """All-reduces of `tokens` activations over the tensor-parallel group: latency and bytes (ring, T3)."""
    if request.tp < 2:
        return 0.0
    tp, work = request.tp, request.work
    times = _TWO_ALL_REDUCES * work.layers
    latency = request.k("allreduce_us") * 1e-6 * math.log2(tp) * (1.0 if request.machine.nvlink else 2.0)
    moved = 2.0 * (tp - 1) / tp * tokens * work.hidden * _ACTIVATION_BYTES
    return times * (latency + moved / request.machine.link)


def unaided(request: Request) -> float:
    """Relative rate of bf16 products of many rows under a backend without matrix instructions for them; else 1."""
    if request.backend == "vulkan" and request.work.bits == 16 and request.bf16:
        return request.constants.plain("bf16.vulkan")
    return 1.0


def product_rate(request: Request) -> float:
    """Operations a second of one device that prefill's products reach in this format."""
    work, machine, constants = request.work, request.machine, request.constants
    share = request.k("compute", machine.memory)
    if machine.vendor in ("amd", "intel") and machine.memory != "cpu":
        share *= constants.plain(f"vendor.{machine.vendor}")
    if request.family == "cpu":
        peak = machine.fp32
    elif request.family == "ggml" and machine.memory == "gddr":
        # Its kernels gain nothing from the doubled matrix units of workstation cards.
        peak = min(machine.peak(16), 2.0 * machine.fp32)
    else:
        peak = machine.peak(work.operand_bits)
        if work.operand_bits < 16 and peak > machine.peak(16):
            share *= constants.plain(f"narrow.{work.operand_bits}")
    share *= unaided(request)
    if work.operand_bits == 16 and work.bits < 16:
        share *= request.k("widened", str(work.bits))
    return share * peak
