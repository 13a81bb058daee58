"""What changes with the load: replicas at the peak and at the mean (I8), and where a CPU gives way to a GPU (I4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from rules.advice.demand import Demand
from rules.advice.headlines import machine_of
from rules.advice.market import rental_wants
from rules.advice.types import Option
from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.cost.rentals import cpu_quotes
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.workload import InferenceWorkload


def scaling_note(options: Sequence[Option], demand: Demand) -> Note | None:
    """Replicas of the cheapest rented option that carries the peak, at the peak and at the mean; None where they agree.

    The saving is what the machines above the mean cost a month: the most that scaling can save, since the hours at
    the peak are not known.
    """
    peak, mean = demand.requests_s, demand.mean_requests_s
    if peak is None or mean is None or peak <= mean:
        return None
    carriers = [o for o in options if _rented(o) and o.capacity is not None and o.capacity.meets is True]
    option = min(carriers, key=_usd_per_hour, default=None)
    if option is None or option.capacity is None or option.cost is None or option.cost.usd_per_month is None:
        return None
    rate = option.capacity.requests_s
    at_peak, at_mean = math.ceil(peak / rate), max(1, math.ceil(mean / rate))
    if at_peak <= at_mean or at_peak > option.replicas:
        return None
    params: dict[str, Param] = {
        "machine": Note("machine", {"device": option.hardware, "count": option.count}),
        "peak": at_peak,
        "mean": at_mean,
        "times": peak / mean,
        "saves": float(option.cost.usd_per_month) / option.replicas * (at_peak - at_mean),
    }
    return Note("scaling_saves", params, "I8")


def crossing_note(
    workload: InferenceWorkload,
    model: ModelSpec,
    options: Sequence[Option],
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand,
) -> Note | None:
    """The requests a second that a CPU carries, and from which a rented GPU costs less a request.

    For each number of cores the cheapest machine that has them is taken; a GPU costs the same idle or full. None
    without a CPU that keeps the targets, for live speech, and for text or pictures that it generates too slowly.
    """
    cpu = next((o for o in options if o.kind == "cpu" and o.capacity is not None), None)
    carried = cpu.capacity if cpu is not None else None
    if cpu is None or carried is None or not carried.requests_s or model.domain == "audio":
        return None
    if model.domain in ("llm", "diffusion") and not (demand.is_rate and carried.meets):
        return None
    params: dict[str, Param] = {"cpu": machine_of(cpu), "most": carried.requests_s}
    gpu = min((o for o in options if _rented(o)), key=_usd_per_hour, default=None)
    if gpu is None or gpu.capacity is None:
        return Note("crossing_carries", params, "I4")
    most_on_gpu = gpu.capacity.requests_s * gpu.replicas
    params |= {"gpu": machine_of(gpu), "gpu_hour": _usd_per_hour(gpu), "gpu_most": most_on_gpu}
    share = _share_of_cores(workload, cpu, catalogue, policy, _usd_per_hour(gpu))
    if share is None:
        return Note("crossing_carries", params, "I4")
    crosses = carried.requests_s * share
    if crosses == 0.0:
        return Note("crossing_gpu_costs_less", params, "I4")
    if share == 1.0 or crosses >= most_on_gpu:
        return Note("crossing_cpu_stays_cheaper", params, "I4")
    return Note("crossing_cheaper_from", {**params, "crosses": crosses}, "I4")


def _share_of_cores(
    workload: InferenceWorkload, cpu: Option, catalogue: Catalogue, policy: Policy, usd_per_hour: float
) -> float | None:
    """The largest share of the CPU's cores whose machine costs no more than `usd_per_hour`; None without prices."""
    cores = catalogue.find_cpu(cpu.hardware).cores
    share, priced = 0.0, False
    for count in sorted({*(2**n for n in range(cores.bit_length())), cores}):
        wants = replace(rental_wants(workload), vcpus=2.0 * count, ram_gib=cpu.need.high_gib)
        quote = next(iter(cpu_quotes(catalogue, wants, policy=policy)), None)
        if quote is None:
            break
        priced = True
        if float(quote.usd_per_hour) > usd_per_hour:
            break
        share = count / cores
    return share if priced else None


def _rented(option: Option) -> bool:
    has_price = option.cost is not None and option.cost.quote is not None
    return has_price and option.kind == "gpu" and option.outcome in ("fits", "tight")


def _usd_per_hour(option: Option) -> float:
    return float(option.cost.quote.usd_per_hour) if option.cost is not None and option.cost.quote is not None else 0.0
