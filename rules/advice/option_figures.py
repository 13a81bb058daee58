"""Speed, capacity and unit prices of an option that is shown: the exact figures behind what ranking estimated."""

from __future__ import annotations

import math
from dataclasses import replace

from rules.advice.candidates import Proposal
from rules.advice.capacity import media_capacity
from rules.advice.cpu_option import on_cpu
from rules.advice.demand import Demand, with_lengths
from rules.advice.market import hours_per_week, money_of, rental_wants
from rules.advice.types import Capacity, Option
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.cpus import Cpu
from rules.catalog.models import ModelSpec
from rules.cost.errors import CostError
from rules.cost.rentals import cpu_quotes, rental_quotes
from rules.cost.types import Cost
from rules.cost.unit_prices import cost_of
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.policy import Policy
from rules.speed.law import speed
from rules.speed.types import InferenceSpeed, Speed, TrainingSpeed
from rules.units import GIB
from rules.workload import Given, InferenceWorkload, Workload


def with_figures(
    made: Proposal,
    model: ModelSpec,
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand | None,
    *,
    curve: bool = False,
) -> Option:
    """The option with its speed, what it carries and what it costs; None for each that no law or price gives.

    Hardware that does not hold or run the work has a price and nothing else.
    """
    option, placed = made.option, made.judged.placed.workload
    found = carried = None
    if option.outcome != "oom":  # what does not run has no speed
        found = pace_of(placed, model, made.device, option.count, demand)
    if isinstance(placed, InferenceWorkload) and demand is not None and option.outcome != "oom":
        if model.domain == "llm":
            pool = made.judged.footprint.kv_cache_tokens
            carried = carried_by(placed, model, made.device, option, policy, demand, pool, curve=curve)
        elif isinstance(found, InferenceSpeed):
            audio = model.domain == "audio"
            carried = media_capacity(found, demand, policy, cpu=False, audio=audio, replicas=option.replicas)
    cost = option.cost
    if cost is None:
        wants = rental_wants(placed)
        quotes = rental_quotes(catalogue, made.device.name, option.devices, wants, policy=policy)
        cost = money_of(made.device, option.devices, quotes[0] if quotes else None)
    return replace(
        option,
        speed=found,
        capacity=carried,
        cost=unit_costs(cost, placed, found, replace(option, capacity=carried), policy),
    )


def pace_of(placed: Workload, model: ModelSpec, device: Accelerator, count: int, demand: Demand | None) -> Speed | None:
    """The speed on `count` devices with the demand's lengths; None where no law gives it."""
    if isinstance(placed, InferenceWorkload) and demand is not None:
        placed = as_served(placed, model, demand)
    try:
        return speed(placed, model, device, count)
    except UnsupportedWorkload:
        return None


def as_served(placed: InferenceWorkload, model: ModelSpec, demand: Demand) -> InferenceWorkload:
    """The workload with the demand's lengths; an assumed batch of a media model gives way to full use."""
    if model.domain != "llm":
        batch = None if _is_assumed(placed.batch) else placed.batch
        return replace(placed, batch=batch, context=None if _is_assumed(placed.context) else placed.context)
    return with_lengths(placed, demand)


def _is_assumed(given: Given[int] | None) -> bool:
    return given is not None and given.origin == "assumed"


def cpu_with_figures(
    option: Option,
    workload: InferenceWorkload,
    model: ModelSpec,
    cpu: Cpu,
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand,
) -> Option:
    """The CPU option with its speed, what it carries, and the cheapest machine with the cores for it (I1, I8)."""
    on_it = as_served(on_cpu(workload, model), model, demand)
    given = on_it.weights_format
    if cpu.bf16 and model.domain != "llm" and given is not None and given.origin == "assumed":
        on_it = replace(on_it, weights_format=Given("bf16", "assumed", "default_format_cpu_bf16"))
    try:
        found = speed(on_it, model, cpu, 1)
    except UnsupportedWorkload:
        return option
    assert isinstance(found, InferenceSpeed)
    if model.domain == "llm":
        from rules.advice.serving_capacity import replica_request, serving_capacity
        from rules.speed.llm.law import sequences_held, tokens_held

        request = replica_request(on_it, model, cpu, 1, demand)
        each = max(1.0, request.work.cache_bytes(tokens_held(request, on_it)))
        holds = min(sequences_held(request, cpu, on_it), 1.0 + option.headroom_gib * GIB // each)
        carried: Capacity | None = serving_capacity(request, demand, policy, holds, option.replicas)
    else:
        carried = media_capacity(found, demand, policy, cpu=True, audio=model.domain == "audio")
    cores = cpu.cores if model.domain == "llm" else _cores(cpu, carried)  # bandwidth binds a language model
    asked = carried is not None and carried.share is not None
    wants = replace(rental_wants(workload), vcpus=2.0 * cores, ram_gib=option.need.high_gib)
    quotes = cpu_quotes(catalogue, wants, policy=policy) if asked else ()  # how many cores else is anybody's guess
    cost = Cost(purchase=quotes[0].purchase, quote=quotes[0], usd_per_hour=quotes[0].usd_per_hour) if quotes else None
    reasons = option.reasons
    if model.domain != "llm" and carried is not None and carried.requests_s and cores < cpu.cores:
        reasons = (*reasons, Note("cpu_cores_enough", {"cores": cores, "all": cpu.cores}, "I8"))
    return replace(option, speed=found, capacity=carried, cost=cost, reasons=reasons)


def _cores(cpu: Cpu, carried: Capacity | None) -> int:
    """Cores that carry the demand, if they all work alike; all of them where nothing was asked."""
    if carried is None or carried.share is None or not carried.meets:
        return cpu.cores
    return max(1, min(cpu.cores, math.ceil(cpu.cores * carried.share)))


def carried_by(
    placed: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator,
    option: Option,
    policy: Policy,
    demand: Demand,
    pool_tokens: float | None = None,
    *,
    curve: bool = False,
) -> Capacity | None:
    """What the option carries beside the demand; `pool_tokens` is what the engine's cache holds, where it has one."""
    from rules.advice.serving_capacity import replica_request, serving_capacity
    from rules.speed.llm.law import sequences_held, tokens_held

    try:
        request = replica_request(placed, model, device, option.count, demand)
    except UnsupportedWorkload:
        return None
    holds = sequences_held(request, device, placed)
    if pool_tokens is not None:
        holds = max(1.0, min(holds, pool_tokens // tokens_held(request, placed)))
    return serving_capacity(request, demand, policy, holds, option.replicas, curve=curve)


def unit_costs(cost: Cost, placed: Workload, found: Speed | None, option: Option, policy: Policy) -> Cost:
    """The cost with prices a month, a run, a request and a million tokens where it is rented and its speed known."""
    quote = cost.quote
    if quote is None:
        return cost
    tokens_s = run_tokens = requests_s = None
    if isinstance(found, TrainingSpeed):
        tokens_s = found.tokens_per_s_per_device.expected * found.devices
        if found.total_s is not None:
            run_tokens = found.total_s.expected * tokens_s
    elif isinstance(found, InferenceSpeed):
        if found.total_tok_s is not None:
            tokens_s = found.total_tok_s.expected * option.replicas
        if found.requests_s is not None:
            requests_s = found.requests_s.expected * option.replicas
    if option.capacity is not None and option.capacity.requests_s:
        requests_s = option.capacity.requests_s * option.replicas
        tokens_s = option.capacity.answer_tok_s * option.replicas
    try:
        priced = cost_of(
            quote,
            policy.rental,
            hours_per_week=hours_per_week(placed, policy),
            tokens_s=tokens_s,
            run_tokens=run_tokens,
            requests_s=requests_s,
        )
    except CostError:
        return cost
    return replace(
        priced,
        purchase=cost.purchase,
        list_price_usd=cost.list_price_usd,
        street_price_usd=cost.street_price_usd,
    )
