"""Judging one placement: footprint, verdict and, for servers, whether all the asked sequences fit at once."""

from __future__ import annotations

from dataclasses import replace

from rules.advice.placement import Placed, place
from rules.advice.running import blocking, wants_of
from rules.advice.types import Outcome
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint, Range
from rules.memory.law import footprint
from rules.memory.verdict import Fit, verdict
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

# A server whose sequences get fewer tokens than this is not of use to anybody.
FEWEST_TOKENS_EACH = 256


@dataclass(frozen=True, slots=True)
class Judged:
    """A placed workload with its footprint and its verdict on the device."""

    placed: Placed
    footprint: Footprint
    fit: Fit

    @property
    def fits(self) -> bool:
        """True where it runs, be it tightly."""
        return self.fit.outcome != "oom"

    @property
    def demand(self) -> Range:
        """Bytes a device for everything that was asked.

        An engine with a pool starts with room for one sequence; here the cache of all the asked sequences counts,
        and the rest of the pool does not.
        """
        need = self.footprint
        if "kv_needed" not in need.components:
            return self.fit.need
        devices = need.components.get("devices", 1.0)
        asked = need.components["kv_needed"] * sequences_at_once(self.placed.workload) / devices
        held = sum(part.bytes for part in need.parts if part.name == "kv_cache")
        more = asked - held + need.components["process"] / devices
        fixed = need.allocated
        return Range(*(max(0.0, end + more) for end in (fixed.low, fixed.expected, fixed.high)))

    @property
    def cache_is_short(self) -> bool:
        """True where the engine starts, but its pool cannot hold all the asked sequences at the asked length."""
        pool, workload = self.footprint.kv_cache_tokens, self.placed.workload
        if pool is None or not isinstance(workload, InferenceWorkload) or workload.context is None:
            return False
        if not self.footprint.components.get("kv_per_token"):
            return False  # a state of constant size: nothing grows with the context
        return pool < workload.context.value * sequences_at_once(workload)


def sequences_at_once(workload: Workload) -> int:
    """Sequences in flight that a serving workload asks for; 1 where it says nothing."""
    given = getattr(workload, "concurrency", None)
    return max(1, given.value) if given is not None else 1


def outcome_of(judged: Judged, model: ModelSpec, device: Accelerator, policy: Policy) -> Outcome:
    """The one verdict on a placement, for every line of an answer.

    oom: the device does not run the format, the need is above its memory, or its cache leaves the asked sequences too
    few tokens to be of use. tight: near the limit, or it starts with a cache that is short for all of them at the asked
    length. fits: everything that was asked.
    """
    workload = judged.placed.workload
    if blocking(device, wants_of(workload, model)) is not None:
        return "oom"
    if judged.fits and not judged.cache_is_short:
        return judged.fit.outcome
    return "tight" if _starts_with_a_short_cache(judged, model, device, policy) else "oom"


def _starts_with_a_short_cache(judged: Judged, model: ModelSpec, device: Accelerator, policy: Policy) -> bool:
    workload, pool = judged.placed.workload, judged.footprint.kv_cache_tokens
    if not isinstance(workload, InferenceWorkload) or workload.context is None or model.domain != "llm":
        return False
    at_once = sequences_at_once(workload)
    if pool is not None:  # the engine shares out what it has, if it starts at all
        return judged.fits and pool // at_once >= FEWEST_TOKENS_EACH
    if at_once == 1 or workload.context.value <= FEWEST_TOKENS_EACH:
        return False
    shorter = replace(workload, context=Given(FEWEST_TOKENS_EACH, "assumed", "limit_search"))
    return _judge_placed(replace(judged.placed, workload=shorter), model, device, _count(workload), policy).fits


def _count(workload: Workload) -> int:
    return workload.hardware[0].count


def judge(
    workload: Workload, model: ModelSpec, device: Accelerator, count: int, policy: Policy, shard: bool = False
) -> Judged:
    """Places, measures and judges. Adapter training that does not fit in replicas is tried sharded."""
    placed = place(workload, model, device, count, shard)
    result = _judge_placed(placed, model, device, count, policy)
    replicas = isinstance(workload, TrainingWorkload) and workload.sharding is None and count > 1 and not shard
    if replicas and not result.fits:
        sharded = judge(workload, model, device, count, policy, shard=True)
        if sharded.fits or sharded.demand.expected < result.demand.expected:
            return sharded
    return result


def _judge_placed(placed: Placed, model: ModelSpec, device: Accelerator, count: int, policy: Policy) -> Judged:
    need = footprint(placed.workload, model, device)
    return Judged(placed, need, verdict(placed.workload, need, device, count, policy))
