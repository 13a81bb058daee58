"""A server under load: throughput, time to the first token and between tokens against the sequences in flight.

In steady state every finished request has cost one prefill and its share of the decode steps, so with `b` sequences in
flight a replica gives b x answer / (prefill of b prompts + answer x step of b) tokens a second. Beyond what the cache
holds, sequences queue and throughput stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rules.records import dataclass
from rules.speed.llm.decode import decode_step
from rules.speed.llm.prefill import prefill
from rules.speed.llm.request import Request

_CONTINUOUS = ("server", "other", "cpu_server")  # engines that take new prompts in between decode steps
Target = Literal["ttft", "tpot", "latency"]
MOST_SEQUENCES = 1024  # of a replica, where an engine is driven to its most: its default scheduler limits


@dataclass(frozen=True, slots=True)
class Load:
    """All replicas at `concurrency` sequences in flight, whose prompts came together (`ttft_s`, `latency_s`)."""

    concurrency: float
    total_tok_s: float
    requests_s: float
    tpot_s: float
    ttft_s: float
    latency_s: float


def under_load(request: Request, concurrency: float, holds: float | None = None) -> Load:
    """Throughput and times with `concurrency` sequences in flight; `holds` is what one replica's cache has room for."""
    asked = max(1.0, concurrency / request.replicas)
    running = min(asked, holds) if holds is not None and holds >= 1 else asked
    context = request.depth + request.prompt + request.answer / 2
    step = decode_step(request, running, context).seconds
    filling = prefill(request, request.prompt, running).seconds
    cycle = filling + request.answer * step
    rate = running * request.answer / cycle * min(request.replicas, max(1.0, concurrency))
    between = step
    if request.family in _CONTINUOUS and running > 1:
        between += filling * (running - 1) / running / request.answer
    waiting = max(0.0, asked / running - 1.0) * cycle
    return Load(
        concurrency=concurrency,
        total_tok_s=rate,
        requests_s=rate / request.answer,
        tpot_s=between,
        ttft_s=burst_first_token_seconds(request, running) + waiting,
        latency_s=cycle + waiting,
    )


def curve(request: Request, concurrencies: Sequence[float], holds: float | None = None) -> tuple[Load, ...]:
    """`under_load` at each of `concurrencies`."""
    return tuple(under_load(request, each, holds) for each in concurrencies)


def missed_target(
    request: Request,
    load: Load,
    sequences: float,
    *,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    latency_s: float | None = None,
) -> Target | None:
    """The first target that `load`, with `sequences` in flight a replica, misses; None where it keeps all.

    `ttft_s` is compared with the time to the first token of users who come each by themselves.
    """
    if tpot_s is not None and load.tpot_s > tpot_s:
        return "tpot"
    if latency_s is not None and load.latency_s > latency_s:
        return "latency"
    if ttft_s is not None and first_token_seconds(request, sequences) > ttft_s:
        return "ttft"
    return None


def most_within(
    request: Request,
    *,
    holds: float | None,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    latency_s: float | None = None,
) -> float:
    """Most sequences in flight on all replicas within the targets and the cache; 0 where even one misses them."""
    top = min(holds if holds is not None else MOST_SEQUENCES, float(MOST_SEQUENCES))

    def good(each: float) -> bool:
        load = under_load(request, each * request.replicas, holds)
        return missed_target(request, load, each, ttft_s=ttft_s, tpot_s=tpot_s, latency_s=latency_s) is None

    if top < 1 or not good(1.0):
        return 0.0
    low, high = 1, int(top) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if good(float(middle)):
            low = middle
        else:
            high = middle
    return float(low) * request.replicas


def burst_first_token_seconds(request: Request, sequences: float) -> float:
    """Time to the first token with `sequences` in flight a replica whose prompts come together.

    That is how loads are published, and the worst that a wave of users brings.
    """
    return prefill(request, request.prompt, max(1.0, sequences)).seconds + request.k("request_us") * 1e-6


def first_token_seconds(request: Request, sequences: float) -> float:
    """Time to the first token with `sequences` in flight a replica whose users come and go each by themselves.

    The request's own cost, the step in progress, the prompt's own passes, and part of the others' prompts: an arrival
    meets their filling in the share of time that filling takes, and waits for half of it on average.
    """
    alone = burst_first_token_seconds(request, 1.0)
    if sequences <= 1:
        return alone
    context = request.depth + request.prompt + request.answer / 2
    step = decode_step(request, sequences, context).seconds
    others = prefill(request, request.prompt, sequences - 1).seconds
    share = others / (others + request.answer * step)
    return alone + step + share * others / 2


def queueing_factor(utilisation: float) -> float:
    """Mean wait relative to the service time near saturation, for random arrivals at one server (M/M/1).

    Infinite at full use: this is why head-room is planned.
    """
    return utilisation / (1.0 - utilisation) if utilisation < 1.0 else float("inf")
