"""The verdict line: the outcome, the hardware and the one figure that decides."""

from __future__ import annotations

from rules.advice.judge import Judged, judge, outcome_of, sequences_at_once
from rules.advice.running import way_round
from rules.advice.types import Limits, Option, Outcome
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.units import to_gib
from rules.workload import InferenceWorkload, TrainingWorkload, Workload


def stated_verdict(
    workload: Workload, model: ModelSpec, device: Accelerator, judged: Judged, first: Option, most: Limits
) -> Note:
    """Verdict on the hardware that the question names; `first` is its option, which has the outcome."""
    fit = judged.fit
    params: dict[str, Param] = {
        "model": model.display_name,
        "device": device.name,
        "count": first.count,
        "need_gib": to_gib(judged.demand.expected),
        "low_gib": to_gib(judged.demand.low),
        "high_gib": to_gib(judged.demand.high),
        "allocated_gib": to_gib(judged.footprint.allocated.expected),
        "usable_gib": to_gib(fit.usable_bytes),
        "headroom_gib": to_gib(fit.usable_bytes - judged.demand.expected),
        "plan": judged.placed.plan,
    }
    if first.outcome == "tight" and isinstance(workload, InferenceWorkload):
        shared = _shared_cache(workload, judged, most)
        if shared is not None:
            return Note("verdict_tight_fewer_tokens", {**params, **shared})
    doubtful = judged.demand.expected <= fit.usable_bytes and not judged.cache_is_short
    if first.outcome == "oom" and doubtful:  # the figure is below the limit, and its doubt is not
        return Note("verdict_stated_oom_likely", params)
    return Note(f"verdict_stated_{first.outcome}", params)


def blocked_verdict(
    workload: Workload, model: ModelSpec, device: Accelerator, options: tuple[Option, ...], policy: Policy
) -> Note:
    """Verdict on hardware that cannot run what was asked, whatever its memory: why, and what to take instead."""
    first = options[0]
    assert first.blocked is not None
    params: dict[str, Param] = {
        "model": model.display_name,
        "device": device.name,
        "count": first.count,
        "reason": first.blocked,
    }
    other = way_round(workload, model, device)
    if other is not None:
        judged = judge(other, model, device, first.count, policy)
        taken = other.compute_dtype if isinstance(other, TrainingWorkload) else other.weights_format
        outcome = outcome_of(judged, model, device, policy)
        figures: dict[str, Param] = {
            "format": taken.value if taken is not None else "",
            "need_gib": to_gib(judged.demand.expected),
            "low_gib": to_gib(judged.demand.low),
            "high_gib": to_gib(judged.demand.high),
            "usable_gib": to_gib(judged.fit.usable_bytes),
        }
        return Note(f"verdict_blocked_instead_{outcome}", {**params, **figures}, "T1")
    better = next((option for option in options[1:] if option.outcome in ("fits", "tight")), None)
    if better is None:
        return Note("verdict_blocked", params, "T1")
    machine = Note("machine", {"device": better.hardware, "count": better.devices})
    return Note("verdict_blocked_take", {**params, "machine": machine}, "T1")


def _shared_cache(workload: InferenceWorkload, judged: Judged, most: Limits) -> dict[str, Param] | None:
    """Figures for "it loads, but the cache is short": tokens a sequence gets, and sequences at the asked length."""
    at_once = sequences_at_once(workload)
    context = workload.context.value if workload.context else 0
    pool = judged.footprint.kv_cache_tokens
    if not context or (judged.fits and not judged.cache_is_short):
        return None
    if pool is not None:
        each, sequences = int(pool // at_once), int(pool // context)
    else:
        each, sequences = most.context or 0, most.sequences or 0
    return {"sequences": at_once, "tokens_each": each, "context": context, "sequences_at_context": sequences}


def option_verdict(workload: Workload, model: ModelSpec, options: tuple[Option, ...]) -> tuple[Outcome, Note]:
    """Verdict where no hardware was named: the first choice, and why; no where only another number of cards does."""
    best = options[0]
    told = workload.constraints.devices
    if told and best.devices != told:
        machine = Note("machine", {"device": best.hardware, "count": best.devices})
        return "oom", Note("verdict_other_count", {"model": model.display_name, "count": told, "machine": machine})
    params: dict[str, Param] = {
        "model": model.display_name,
        "device": best.hardware,
        "count": best.devices,
        "need_gib": best.need.expected_gib,
        "low_gib": best.need.low_gib,
        "high_gib": best.need.high_gib,
        "usable_gib": best.usable_gib,
        "headroom_gib": best.headroom_gib,
        "tier": best.tier,
        "plan": best.parallelism,
    }
    if best.kind == "own":
        return best.outcome, Note("verdict_owned", params)
    cost = best.cost
    price = (cost.street_price_usd or cost.list_price_usd) if cost is not None else None
    if best.rule == "option_cheapest_to_buy" and price is not None:
        return best.outcome, Note("verdict_cheapest_to_buy", {**params, "price": float(price)})
    if best.rule == "option_cheapest_to_rent" and cost is not None and cost.quote is not None:
        rented: dict[str, Param] = {"per_hour": float(cost.quote.usd_per_hour), "provider": cost.quote.provider}
        return best.outcome, Note("verdict_cheapest_to_rent", {**params, **rented})
    if best.rule in ("option_fastest_to_buy", "option_fastest_to_rent"):
        return best.outcome, Note("verdict_fastest", params)
    return best.outcome, Note("verdict_smallest", params)


def cpu_verdict(workload: Workload, model: ModelSpec, options: tuple[Option, ...]) -> tuple[Outcome, Note]:
    """Verdict where a CPU was named or is enough."""
    cpu = next((o for o in options if o.kind == "cpu"), None)
    if cpu is None:
        if told := workload.constraints.devices:
            return "oom", Note("verdict_nothing_fits_count", {"model": model.display_name, "count": told})
        return "oom", Note("verdict_nothing_fits", {"model": model.display_name})
    params: dict[str, Param] = {
        "model": model.display_name,
        "cpu": cpu.hardware,
        "need_gib": cpu.need.expected_gib,
        "low_gib": cpu.need.low_gib,
        "high_gib": cpu.need.high_gib,
    }
    return "cpu", Note("verdict_cpu", params)
