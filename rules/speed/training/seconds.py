"""Seconds of one pass and one step of training, from the work and the constants of the fit.

What runs on the device one after the other is added; the launching of kernels and the traffic of shards run beside it
and cost their excess (a root of squares, so that equal terms hide each other only partly).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rules.records import dataclass
from rules.speed.training.work import Work

_REFERENCE_PEAK = 312e12  # 16-bit operations a second of the A100: what `share` refers to


@dataclass(frozen=True, slots=True)
class Seconds:
    """Of one pass, but for `step`; `tokens` are those that the step's passes of this device's group work on."""

    compute: float
    bandwidth: float
    launches: float
    shards: float
    layers_sent: float
    step: float
    tokens: float


def seconds(w: Work, c: Mapping[str, float]) -> Seconds:
    """The parts of a step and its whole."""
    m = w.machine
    reach = c["reach"] if w.capped else 1.0
    share = c["share"] * (m.peak(16) / _REFERENCE_PEAK) ** -c["narrow"]
    share *= c["benchmark"] if w.benchmark else 1.0
    share *= (c["tuned"] if w.tuned else 1.0) * (c["other_vendor"] if w.vendor not in ("nvidia", "") else 1.0)
    share = min(0.95, share * w.width_degree ** -c["slimmer"])
    typed = share * {4: c["four_bit"], 8: c["eight_bit"]}.get(w.bits, 1.0)
    compute = (w.dense_ops / typed + w.expert_ops / (typed * c["experts"])) / w.peak * reach
    attention_peak = m.peak(16) if w.bits < 16 else w.peak
    compute += w.attention_ops * reach * reach / (attention_peak * share * c["attention"])
    fused = c["tuned_traffic"] if w.tuned else c["fused"] if w.fused else 1.0
    moved = w.stream_bytes * c["traffic"] * fused + w.loss_bytes
    moved = moved * reach + w.score_bytes * c["scores"] * reach * reach + w.weight_bytes + w.unpack_bytes * c["unpack"]
    bandwidth = moved / m.bandwidth
    launches = w.layers * w.passes * c["layer_us"] * 1e-6 * (c["adapter"] if w.adapted else 1.0)
    launches *= fused
    link = w.link * c["link"] or 1.0
    shards = (w.sharded_sent + w.step_sent / w.accumulation) / link
    layers_sent = w.width_sent * reach / (w.width_link * c["width"] or 1.0)
    device = compute + bandwidth + layers_sent
    one = math.sqrt(device**2 + launches**2 + shards**2)
    step = one * (w.accumulation + w.bubble * w.accumulation) + w.step_bytes / m.bandwidth
    step += w.host_step_bytes / link
    real = reach * (1.0 if w.packed or w.batch <= 1 else c["filled"])
    return Seconds(compute, bandwidth, launches, shards, layers_sent, step, w.tokens * w.accumulation * real)
