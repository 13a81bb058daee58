"""Candidates over the whole catalogue: what holds the work, ranked by speed and price, at most a handful shown.

The need hardly depends on the card, so it is computed once per device count on a reference card and compared with
every card's memory in plain numbers; only what is shown is judged exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from rules.advice.demand import Demand
from rules.advice.judge import Judged, judge, outcome_of
from rules.advice.market import Candidate, Placement, priced
from rules.advice.plan_view import gib_range
from rules.advice.ranking import Goal, pick
from rules.advice.running import blocking, note_of
from rules.advice.tiers import considerations, tier_of
from rules.advice.types import Excluded, Option
from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Wants, assess
from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note, Range
from rules.memory.usable import usable_bytes
from rules.policy import Policy
from rules.records import dataclass
from rules.units import to_gib
from rules.workload import InferenceWorkload, TrainingWorkload, Workload


@dataclass(frozen=True, slots=True)
class Proposal:
    """An option with what it was judged on."""

    option: Option
    device: Accelerator
    judged: Judged


_TIERS = ("consumer", "workstation", "enterprise")
_MOST_UNIFIED = 1
_MAC_ENGINES = ("llama.cpp", "ollama", "mlx")
_MOST_ROUNDS = 8
_NEAR = 0.85  # of the reference's need: below it a card is not judged, it is too small
_REQUIREMENTS = {
    "option_cheapest_to_buy": "T5",
    "option_cheapest_to_rent": "T8",
    "option_best_value": "T4",
    "option_fastest_to_rent": "T4",
    "option_fastest_to_buy": "T4",
    "option_of_tier": "T5",
}


def recommended(
    workload: Workload,
    model: ModelSpec,
    catalogue: Catalogue,
    needs: ReferenceNeeds,
    policy: Policy,
    wants: Wants,
    demand: Demand | None,
    most: int,
    least_gb: float = 0.0,
) -> tuple[tuple[Proposal, ...], tuple[Excluded, ...]]:
    """At most `most` proposals over the whole catalogue, what was asked for first, and what the team's rules keep out.

    `needs` tells the need of a device count on a reference card. What `ranking.pick` chooses is judged exactly; what
    turns out not to fit is taken away, and the choice made again. Cards have at least `least_gb` marketed.
    """
    on_mac = isinstance(workload, InferenceWorkload) and _engine(workload) in _MAC_ENGINES
    goal: Goal = workload.constraints.goal or "balanced"

    def holds(device: Accelerator, count: int, room: float) -> bool:
        if isinstance(workload, TrainingWorkload):  # what training takes does not depend on the card
            return False
        try:
            judged = judge(workload, model, device, count, policy)
        except UnsupportedWorkload:
            return False
        return not judged.cache_is_short and judged.demand.expected <= room

    cards = [each for each in catalogue.accelerators if each.memory_gb_marketed >= least_gb]
    pool = [
        each
        for each in _candidates(cards, needs, policy, on_mac, goal == "fastest", holds, workload.constraints.devices)
        if blocking(each.device, wants) is None
    ]
    placements, excluded = priced(workload, model, catalogue, policy, demand, pool)
    found: list[Proposal] = []
    tiers = () if workload.constraints.where == "cloud" else _TIERS
    refused: set[int] = set()
    for _ in range(_MOST_ROUNDS):
        picked = pick([p.ranked for p in placements if p.ranked.key not in refused], goal, most, policy.ranking, tiers)
        found = []
        for choice in picked:
            placement = placements[choice.ranked.key]
            judged = placement.judged(workload, model, policy)
            if outcome_of(judged, model, placement.device, policy) != "fits":
                refused |= {p.ranked.key for p in placements if p.same_hardware(placement)}
            else:
                found.append(_shown(placement, judged, model, choice.rule, policy, wants))
        if len(found) == len(picked):
            break
    return tuple(found), excluded


def _shown(placement: Placement, judged: Judged, model: ModelSpec, rule: str, policy: Policy, wants: Wants) -> Proposal:
    reason = Note(rule, {"tier": placement.ranked.tier, "meets": float(placement.ranked.meets)}, _REQUIREMENTS[rule])
    made = proposal(placement.device, judged, model, policy, (reason,), wants)
    option = replace(made.option, replicas=placement.replicas, rule=rule, cost=placement.cost)
    return Proposal(option, made.device, made.judged)


class ReferenceNeeds:
    """Need on the fullest of 1, 2, 4… devices of a large reference card, each computed when a card is measured by it.

    `counts` is the told number alone where there is one.
    """

    def __init__(self, workload: Workload, model: ModelSpec, reference: Accelerator, policy: Policy) -> None:
        told = workload.constraints.devices
        self.counts: tuple[int, ...] = (told,) if told else policy.candidates.device_counts
        self._judging = workload, model, reference, policy
        self._known: dict[int, Range | None] = {}

    def of(self, count: int) -> Range | None:
        """Bytes a device; None where no law applies."""
        if count not in self._known:
            workload, model, reference, policy = self._judging
            try:
                replicas = judge(workload, model, reference, count, policy)
                shared = judge(workload, model, reference, count, policy, shard=True) if count > 1 else replicas
            except UnsupportedWorkload:
                self._known[count] = None
            else:
                self._known[count] = min((replicas.demand, shared.demand), key=lambda need: need.expected)
        return self._known[count]


def _candidates(
    accelerators: Iterable[Accelerator],
    needs: ReferenceNeeds,
    policy: Policy,
    runs_on_mac: bool,
    wider: bool,
    holds: Callable[[Accelerator, int, float], bool],
    told: int | None,
) -> Iterator[Candidate]:
    """Devices with the fewest of them that hold the work; with `wider` the larger counts of the tier as well.

    A number that was `told` is compared in every tier.

    `holds` judges a near miss exactly: engines take less on smaller cards than on the reference.
    """
    keep = policy.fit.tight_above_share - policy.fit.recommend_headroom_share
    limits = policy.candidates
    most_of_tier = {
        "consumer": limits.most_consumer,
        "workstation": limits.most_workstation,
        "enterprise": limits.most_enterprise,
    }
    for device in accelerators:
        if (device.release_year or 0) < limits.oldest_release_year or device.form_factor == "laptop":
            continue
        if device.vendor not in limits.vendors or device.form_factor in limits.not_sold_alone:
            continue
        if device.name in limits.not_unasked or (device.vendor == "apple" and not runs_on_mac):
            continue
        tier = tier_of(device)
        most = _MOST_UNIFIED if device.unified_memory else most_of_tier[tier]
        if device.nvlink_gb_s < limits.fabric_gb_s:
            most = min(most, limits.most_without_fabric)
        if told and not device.unified_memory:
            most = told
        for count in needs.counts:
            need = needs.of(count) if count <= most else None
            if need is None:
                break
            reserve_gib = policy.memory.desktop_reserve_gib if count == 1 else 0.0
            room = keep * usable_bytes(device, desktop_reserve_gib=reserve_gib)
            if need.expected * _NEAR > room:
                continue
            if need.expected <= room or holds(device, count, room):
                yield Candidate(device, count, tier)
                if not wider:
                    break


def proposal(
    device: Accelerator,
    judged: Judged,
    model: ModelSpec,
    policy: Policy,
    reasons: tuple[Note, ...],
    wants: Wants,
    host: str | None = None,
) -> Proposal:
    """The shown form of a judged placement; `host` names a machine that the team owns."""
    fit, count = judged.fit, judged.placed.workload.hardware[0].count
    blocked = blocking(device, wants)
    shown = Option(
        hardware=f"{host} ({device.name})" if host else device.name,
        count=count,
        kind="own" if host else "gpu",
        tier=tier_of(device),
        parallelism=judged.placed.plan,
        outcome=outcome_of(judged, model, device, policy),
        need=gib_range(judged.demand),
        usable_gib=to_gib(fit.usable_bytes),
        headroom_gib=to_gib(fit.usable_bytes - judged.demand.expected),
        reasons=reasons,
        warnings=(
            *judged.placed.notes,
            *considerations(device, count, policy),
            *(note_of(found) for found in assess(device, wants) if found != blocked),
        ),
        blocked=note_of(blocked) if blocked is not None else None,
    )
    return Proposal(shown, device, judged)


def owned(
    workload: Workload, model: ModelSpec, catalogue: Catalogue, policy: Policy, wants: Wants
) -> Iterator[Proposal]:
    """The team's own hosts that hold it, on as few of a host's devices as will do."""
    for host in catalogue.owned:
        device = catalogue.find_accelerator(host.gpu)
        told = workload.constraints.devices
        counts = [n for n in range(1, host.n_gpus + 1) if host.n_gpus % n == 0]
        for count in [told] if told and told <= host.n_gpus else [] if told else counts:
            judged = judge(workload, model, device, count, policy)
            outcome = outcome_of(judged, model, device, policy)
            if outcome == "fits" or (outcome == "tight" and not judged.cache_is_short):
                reasons = (Note("option_owned", {"host": host.host}),)
                yield proposal(device, judged, model, policy, reasons, wants, host.host)
                break


def _engine(workload: InferenceWorkload) -> str:
    return workload.engine.value.lower() if workload.engine else ""
