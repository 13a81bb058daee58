"""The verdict line: the outcome, the hardware and the one figure that decides."""

from __future__ import annotations

from rules.advice.judge import Judged, sequences_at_once
from rules.advice.types import Limits, Option, Outcome
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note, Param
from rules.units import to_gib
from rules.workload import InferenceWorkload, Workload

# A server whose sequences get fewer tokens than this is not of use to anybody.
_FEWEST_TOKENS_EACH = 256


def stated_verdict(
    workload: Workload, model: ModelSpec, device: Accelerator, count: int, judged: Judged, most: Limits
) -> tuple[Outcome, Note]:
    """Verdict on the hardware that the question names."""
    fit = judged.fit
    params: dict[str, Param] = {
        "model": model.display_name,
        "device": device.name,
        "count": count,
        "need_gib": to_gib(judged.demand.expected),
        "low_gib": to_gib(judged.demand.low),
        "high_gib": to_gib(judged.demand.high),
        "allocated_gib": to_gib(judged.footprint.allocated.expected),
        "usable_gib": to_gib(fit.usable_bytes),
        "headroom_gib": to_gib(fit.usable_bytes - judged.demand.expected),
        "plan": judged.placed.plan,
    }
    if isinstance(workload, InferenceWorkload):
        shared = _shared_cache(workload, judged, most)
        if shared is not None:
            return "tight", Note("verdict_tight_fewer_tokens", {**params, **shared})
        if judged.fits and judged.cache_is_short:  # it starts, but not with a cache that is of use to so many
            return "oom", Note("verdict_stated_oom", params)
    return fit.outcome, Note(f"verdict_stated_{fit.outcome}", params)


def _shared_cache(workload: InferenceWorkload, judged: Judged, most: Limits) -> dict[str, Param] | None:
    """Figures for "it loads, but the cache is short": tokens a sequence gets, and sequences at the asked length."""
    at_once = sequences_at_once(workload)
    context = workload.context.value if workload.context else 0
    pool = judged.footprint.kv_cache_tokens
    if judged.fits and not judged.cache_is_short:
        return None
    if pool is not None:
        if not judged.fits:
            return None  # the engine does not even start
        each, sequences = int(pool // at_once), int(pool // context)
    else:
        each, sequences = most.context or 0, most.sequences or 0
    if each < _FEWEST_TOKENS_EACH or (at_once == 1 and not judged.fits):
        return None
    return {"sequences": at_once, "tokens_each": each, "context": context, "sequences_at_context": sequences}


def option_verdict(model: ModelSpec, options: tuple[Option, ...]) -> tuple[Outcome, Note]:
    """Verdict where no hardware was named: the smallest that fits."""
    best = options[0]
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
    return best.outcome, Note("verdict_smallest", params)


def cpu_verdict(model: ModelSpec, options: tuple[Option, ...]) -> tuple[Outcome, Note]:
    """Verdict where a CPU was named or is enough."""
    cpu = next((o for o in options if o.kind == "cpu"), None)
    if cpu is None:
        return "oom", Note("verdict_nothing_fits", {"model": model.display_name})
    params: dict[str, Param] = {
        "model": model.display_name,
        "cpu": cpu.hardware,
        "need_gib": cpu.need.expected_gib,
        "low_gib": cpu.need.low_gib,
        "high_gib": cpu.need.high_gib,
    }
    return "cpu", Note("verdict_cpu", params)
