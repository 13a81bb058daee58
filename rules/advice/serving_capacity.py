"""Capacity of a server of language models: from traffic and targets to sequences, replicas and devices (I4, I6).

The laws of speed give one replica's throughput and times against the sequences in flight; memory bounds how many fit;
the policy's head-room is taken off the rate. Requests that arrive by a rate keep rate x latency of them in flight
(Little's law).
"""

from __future__ import annotations

import math

from rules.advice.demand import Demand, with_lengths
from rules.advice.types import Capacity, Limit, LoadPoint
from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.policy import Policy
from rules.speed.llm.request import Request, resolve
from rules.speed.llm.serving import MOST_SEQUENCES, first_token_seconds, missed_target, most_within, under_load
from rules.workload import InferenceWorkload

_CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def replica_request(
    workload: InferenceWorkload, model: ModelSpec, device: Accelerator | Cpu, count: int, demand: Demand
) -> Request:
    """One replica of `count` devices under the demand's lengths, as the laws of speed take it."""
    return resolve(with_lengths(workload, demand), model, device, count)


def serving_capacity(
    request: Request, demand: Demand, policy: Policy, holds: float, replicas: int = 1, *, curve: bool = False
) -> Capacity:
    """Capacity of one replica that the cache of `holds` sequences bounds, and replicas for the demand.

    `replicas` is how many the judged hardware has.
    """
    most = most_within(request, holds=max(1.0, holds), **demand.targets)
    share = policy.capacity.cpu_share if request.family.startswith("cpu") else policy.capacity.serving_share
    at = under_load(request, most, holds) if most else None
    rate = at.requests_s * share if at else 0.0
    needed = _replicas(demand, most, rate, policy)
    meets, used = None, None
    if demand.told:
        meets = bool(most) and (needed is not None and needed <= replicas)
        used = _use(demand, most, rate, replicas)
    return Capacity(
        sequences=int(most),
        limited_by=_limit(request, demand, most, holds),
        requests_s=rate,
        answer_tok_s=rate * request.answer,
        replicas_needed=needed,
        meets=meets,
        share=used,
        curve=_points(request, holds, most) if curve else (),
    )


def _replicas(demand: Demand, most: float, rate: float, policy: Policy) -> int | None:
    """Replicas that carry the demand; None where one request misses a target, or more than the policy's most."""
    if not most:
        return None
    by_sequences = math.ceil(demand.concurrency / most) if demand.concurrency else 1
    by_rate = math.ceil(demand.requests_s / rate) if demand.requests_s and rate else 1
    needed = max(1, by_sequences, by_rate)
    return needed if needed <= policy.capacity.most_replicas else None


def _use(demand: Demand, most: float, rate: float, replicas: int) -> float | None:
    if not most:
        return None
    shares = []
    if demand.concurrency:
        shares.append(demand.concurrency / (most * replicas))
    if demand.requests_s and rate:
        shares.append(demand.requests_s / (rate * replicas))
    return max(shares) if shares else None


def _limit(request: Request, demand: Demand, most: float, holds: float) -> Limit:
    """What stops one more sequence."""
    more = most + 1
    missed = missed_target(request, under_load(request, more), more, **demand.targets)
    if missed is not None:
        return missed
    return "memory" if most < MOST_SEQUENCES and more > holds else "scheduler"


def _points(request: Request, holds: float, most: float) -> tuple[LoadPoint, ...]:
    """The throughput curve to a little beyond the most that the cache holds."""
    found = []
    for concurrency in sorted({float(c) for c in _CURVE if c <= max(2.0, 2 * holds)} | {max(1.0, most)}):
        load = under_load(request, concurrency, holds)
        first = first_token_seconds(request, min(concurrency, holds)) if concurrency <= holds else load.ttft_s
        found.append(LoadPoint(concurrency, load.total_tok_s, load.tpot_s, first))
    return tuple(found)
