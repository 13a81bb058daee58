"""Capacity of models that answer in one pass: encoders, vision, pictures, and live streams of speech."""

from __future__ import annotations

import math

from rules.advice.demand import Demand
from rules.advice.types import Capacity
from rules.policy import Policy
from rules.speed.types import InferenceSpeed

_SPEECH_WINDOW_S = 30.0


def media_capacity(
    found: InferenceSpeed, demand: Demand, policy: Policy, *, cpu: bool, audio: bool, replicas: int = 1
) -> Capacity | None:
    """Capacity of an encoder, a vision, speech or diffusion model on one replica at full use; None without a rate.

    For speech the sequences are live streams: each brings one window of audio in a window's time.
    """
    if found.requests_s is None:
        return None
    share = policy.capacity.cpu_share if cpu else policy.capacity.serving_share
    rate = found.requests_s.expected * share
    late = demand.latency_s is not None and found.latency_s is not None and found.latency_s.expected > demand.latency_s
    flying = (
        int(rate * _SPEECH_WINDOW_S)
        if audio
        else max(1, int(rate * found.latency_s.expected if found.latency_s else 1))
    )
    asked = demand.requests_s
    if asked is None and audio and demand.concurrency:
        asked = demand.concurrency / _SPEECH_WINDOW_S
    needed = None if late else max(1, math.ceil(asked / rate)) if asked else 1
    if needed is not None and needed > policy.capacity.most_replicas:
        needed = None
    told = asked is not None or demand.latency_s is not None
    return Capacity(
        sequences=0 if late else flying,
        limited_by="latency" if late else "throughput",
        requests_s=0.0 if late else rate,
        answer_tok_s=0.0,
        replicas_needed=needed,
        meets=(needed is not None and needed <= replicas) if told else None,
        share=asked / (rate * replicas) if asked and not late else None,
    )
