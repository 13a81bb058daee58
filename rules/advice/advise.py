"""`advise`: one workload in, one `Advice` out. Pure: the same facts give the same answer.

Order of work: resolve names, fill the silent fields, judge the stated hardware, look for candidates in every tier,
compute levers, limits and variants, apply the rules, and phrase the verdict as a message id with its figures.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from rules.advice.candidates import Proposal, ReferenceNeeds, owned, proposal, recommended
from rules.advice.classical import advise_classical
from rules.advice.cpu_option import cpu_footprint, cpu_option, on_cpu
from rules.advice.defaults import fill_inference, fill_training, smaller_formats
from rules.advice.demand import Demand, demand_of
from rules.advice.headlines import binds_note, capacity_headline, per_stream_note, run_cost_headline, time_headline
from rules.advice.judge import Judged, judge
from rules.advice.levers import levers
from rules.advice.limits import limits
from rules.advice.option_figures import cpu_with_figures, with_figures
from rules.advice.plan_view import cpu_plan, plan_of
from rules.advice.quick_rule import quick_rule
from rules.advice.registry import Facts, apply_rules, registered
from rules.advice.running import blocking, wants_of, way_round
from rules.advice.types import Advice, Assumption, Excluded, Lever, Limits, MemoryPlan, ModelSummary, Option, RentOrBuy
from rules.advice.variants import variants
from rules.advice.verdicts import blocked_verdict, cpu_verdict, option_verdict, stated_verdict
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.cpus import Cpu
from rules.catalog.errors import UnknownName
from rules.catalog.model_names import ModelMatch
from rules.catalog.models import ModelSpec
from rules.cost.price_age import stale
from rules.memory.footprint import Footprint, Note
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload

_BECAUSE_PARTS = 4
_GENERATES = ("llm", "seq2seq")


@dataclass(frozen=True, slots=True)
class _Stated:
    """The hardware that the question names."""

    device: Accelerator | None = None
    cpu: Cpu | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the answer shows: options, and the placement (and its device) whose plan stands in the breakdown."""

    options: tuple[Option, ...]
    judged: Judged | None = None
    device: Accelerator | None = None
    count: int = 1
    on_cpu: Footprint | None = None
    demand: Demand | None = None
    excluded: tuple[Excluded, ...] = ()


def advise(
    workload: Workload,
    catalogue: Catalogue,
    policy: Policy,
    as_of: date | None = None,
    *,
    compare_costs: bool = True,
) -> Advice:
    """The whole answer for `workload`; `as_of` is the day on which the age of prices is judged (None: not judged).

    `compare_costs` adds renting against buying, which a question of fit alone can do without.

    Raises `UnknownName` for a model or device that nothing resembles and `UnsupportedWorkload` where no law applies;
    both carry a message id for the reader.
    """
    if not workload.model.name and not workload.model.params_b:
        raise UnknownName("model", "", ())
    if workload.domain == "classical" and workload.model.name:
        from rules.memory.media import classical_spec

        return advise_classical(workload, classical_spec(workload.model.name), catalogue)
    match = catalogue.find_model(workload.model.name, workload.model.params_b, workload.model.active_params_b)
    model = match.spec
    if isinstance(workload, InferenceWorkload) and workload.weights_format is None and match.weights_format:
        workload = replace(workload, weights_format=Given(match.weights_format))
    stated = _stated(workload, catalogue, policy)
    workload, assumptions = _filled(workload, model, stated, policy)
    if isinstance(workload, InferenceWorkload) and stated.device is not None:
        workload, assumptions = _in_a_format_that_runs(workload, model, stated.device, assumptions)
        workload, assumptions = _in_a_format_that_fits(
            workload, model, stated.device, stated.count, policy, assumptions
        )
        workload, assumptions = _in_a_format_that_runs(workload, model, stated.device, assumptions)
    demand = None
    if isinstance(workload, InferenceWorkload):
        demand = demand_of(workload, policy, generates=model.domain in _GENERATES)
        assumptions = (*assumptions, *demand.assumptions) if demand.told and model.domain == "llm" else assumptions
    shown = _shown(workload, model, catalogue, policy, stated, demand)
    if workload.constraints.devices and not shown.options:  # then what would do is said beside the no
        free = replace(workload, constraints=replace(workload.constraints, devices=None), tp=None, pp=None)
        shown = _shown(free, model, catalogue, policy, stated, demand)
    return _compose(workload, catalogue, policy, match, stated, shown, assumptions, as_of, compare_costs)


def _stated(workload: Workload, catalogue: Catalogue, policy: Policy) -> _Stated:
    if not workload.hardware:
        return _Stated(cpu=catalogue.find_cpu(policy.cpu.reference) if workload.constraints.cpu_only else None)
    first = workload.hardware[0]
    count = sum(h.count for h in workload.hardware if h.name == first.name)
    try:
        return _Stated(device=catalogue.find_accelerator(first.name, first.memory_gib), count=count)
    except UnknownName as unknown:
        try:
            return _Stated(cpu=catalogue.find_cpu(first.name), count=count)
        except UnknownName:
            raise unknown from None


def _filled(
    workload: Workload, model: ModelSpec, stated: _Stated, policy: Policy
) -> tuple[Workload, tuple[Assumption, ...]]:
    if isinstance(workload, TrainingWorkload):
        return fill_training(workload, model, policy)
    return fill_inference(workload, model, policy, stated.device, stated.cpu is not None)


def _in_a_format_that_fits(
    workload: InferenceWorkload,
    model: ModelSpec,
    device: Accelerator,
    count: int,
    policy: Policy,
    assumptions: tuple[Assumption, ...],
) -> tuple[InferenceWorkload, tuple[Assumption, ...]]:
    """Where nobody stated a format and the published one does not fit: the largest usual one that does, else 4 bits."""
    given = workload.weights_format
    settled = given is None or given.origin == "stated" or given.reason == "default_format_of_bits"
    if settled or model.domain != "llm" or model.native_quant or judge(workload, model, device, count, policy).fits:
        return workload, assumptions
    smaller, taken = workload, ""
    for taken in smaller_formats(workload):
        given = Given(taken, origin="assumed", reason="default_format_that_fits")
        smaller = replace(workload, weights_format=given)
        if judge(smaller, model, device, count, policy).fits:
            break
    kept = tuple(a for a in assumptions if a.field != "weights_format")
    return smaller, (Assumption("weights_format", taken, "default_format_that_fits"), *kept)


def _in_a_format_that_runs(
    workload: InferenceWorkload, model: ModelSpec, device: Accelerator, assumptions: tuple[Assumption, ...]
) -> tuple[InferenceWorkload, tuple[Assumption, ...]]:
    """Where nobody stated the format and the device has no kernels for it: one of as many bits that it runs."""
    given = workload.weights_format
    if given is None or given.origin == "stated" or blocking(device, wants_of(workload, model)) is None:
        return workload, assumptions
    other = way_round(workload, model, device)
    if not isinstance(other, InferenceWorkload) or other.weights_format is None:
        return workload, assumptions
    taken = [Assumption("weights_format", other.weights_format.value, other.weights_format.reason or "")]
    if other.engine is not None and other.engine != workload.engine:
        taken.append(Assumption("engine", other.engine.value, "default_engine_llama_cpp"))
    kept = (a for a in assumptions if a.field not in {each.field for each in taken})
    return other, (*taken, *kept)


def _shown(
    workload: Workload,
    model: ModelSpec,
    catalogue: Catalogue,
    policy: Policy,
    stated: _Stated,
    demand: Demand | None,
) -> _Shown:
    """The stated hardware first, then the team's own hosts, then the market's choices; a CPU where it may serve."""
    wants = wants_of(workload, model)
    found: list[Proposal] = []
    cpu: Option | None = None
    if stated.device is not None:
        judged = judge(workload, model, stated.device, stated.count, policy)
        found.append(proposal(stated.device, judged, model, policy, (Note("option_stated"),), wants))
    elif isinstance(workload, InferenceWorkload) and not workload.constraints.devices:
        processor = stated.cpu or catalogue.find_cpu(policy.cpu.reference)
        cpu = cpu_option(workload, model, processor, policy)
        if cpu is not None and demand is not None:
            cpu = cpu_with_figures(cpu, workload, model, processor, catalogue, policy, demand)
        if stated.cpu is not None and cpu is not None:
            return _Shown((cpu,), on_cpu=cpu_footprint(workload, model), demand=demand)
    found.extend(owned(workload, model, catalogue, policy, wants))
    needs = ReferenceNeeds(workload, model, catalogue.find_accelerator(policy.candidates.reference), policy)
    most = policy.candidates.options_shown - (1 if cpu is not None else 0)
    known = {(each.option.hardware, each.option.count) for each in found}
    named = stated.device
    least_gb = named.memory_gb_marketed if named is not None and named.origin == "generic" else 0.0
    market, excluded = recommended(workload, model, catalogue, needs, policy, wants, demand, most, least_gb)
    found.extend(each for each in market if (each.option.hardware, each.option.devices) not in known)
    told = [with_figures(each, model, catalogue, policy, demand, curve=at == 0) for at, each in enumerate(found[:most])]
    if cpu is not None and stated.device is None and _is_enough(cpu, model, policy):
        options = (cpu, *told)
        assert isinstance(workload, InferenceWorkload)
        return _Shown(options, on_cpu=cpu_footprint(workload, model), demand=demand, excluded=excluded)
    options = tuple(told if cpu is None else (*told, cpu))
    if found:
        first = found[0]
        return _Shown(options, first.judged, first.device, first.option.count, demand=demand, excluded=excluded)
    on_cpu = cpu_footprint(workload, model) if cpu is not None and isinstance(workload, InferenceWorkload) else None
    return _Shown(options, on_cpu=on_cpu, demand=demand, excluded=excluded)


def _is_enough(cpu: Option, model: ModelSpec, policy: Policy) -> bool:
    """True where traffic was told and a CPU carries a small model in time: then it is the answer (I1, I13)."""
    small = model.domain != "llm" or model.params_active <= policy.cpu.first_active_params_b * 1e9
    return small and cpu.capacity is not None and cpu.capacity.meets is True and cpu.capacity.share is not None


def _compose(
    workload: Workload,
    catalogue: Catalogue,
    policy: Policy,
    match: ModelMatch,
    stated: _Stated,
    shown: _Shown,
    assumptions: tuple[Assumption, ...],
    as_of: date | None,
    compare_costs: bool,
) -> Advice:
    model, judged = match.spec, shown.judged
    if shown.on_cpu is not None and isinstance(workload, InferenceWorkload):
        workload = on_cpu(workload, model)
        assumptions = tuple(_as_taken(each, workload) for each in assumptions)
    most = Limits()
    if judged is not None and shown.device is not None:
        most = limits(workload, model, shown.device, shown.count, policy)
    blocked = bool(shown.options) and shown.options[0].blocked is not None  # then memory is beside the point
    plan = None if blocked else _plan(shown)
    footprint = judged.footprint if judged else shown.on_cpu
    rule_of_thumb = None if blocked else quick_rule(workload, model, footprint, policy)
    facts = Facts(
        workload=workload,
        model=model,
        policy=policy,
        device=stated.device,
        count=stated.count,
        judged=judged,
        options=shown.options,
        limits=most,
        quick_rule=rule_of_thumb,
    )
    notes, fired = apply_rules(facts, registered())
    options = shown.options
    moves: tuple[Lever, ...] = ()
    if judged is not None and stated.device is not None:
        moves = levers(workload, model, stated.device, stated.count, policy, judged)
        outcome = options[0].outcome
        if blocked:
            verdict = blocked_verdict(workload, model, stated.device, options, policy)
        else:
            verdict = stated_verdict(workload, model, stated.device, judged, options[0], most)
    elif shown.options and shown.options[0].kind != "cpu":
        outcome, verdict = option_verdict(workload, model, shown.options)
    else:
        outcome, verdict = cpu_verdict(workload, model, shown.options)
    money = None
    if compare_costs:
        from rules.advice.rent_or_buy import rent_or_buy

        money = rent_or_buy(workload, options, catalogue, policy, stated=stated.device is not None)
    warnings = (
        *_told_count(workload, stated),
        *(shown.options[0].warnings if shown.options else ()),
        *(footprint.notes if footprint else ()),
        *notes,
    )
    return Advice(
        outcome=outcome,
        verdict=verdict,
        because=plan.parts[:_BECAUSE_PARTS] if plan else (),
        model=_summary(match),
        workload=workload,
        plan=plan,
        options=options,
        levers=moves,
        limits=most,
        variants=variants(workload, model, policy, shown.device, shown.count, judged) if judged and not blocked else (),
        quick_rule=rule_of_thumb,
        assumptions=assumptions,
        warnings=_unique(warnings),
        fired=fired,
        capacity=options[0].capacity if options else None,
        speed=options[0].speed if options else None,
        rent_or_buy=money,
        headlines=_headlines(options, shown.demand, policy, money)
        | _beside(workload, model, options, catalogue, policy, shown.demand, stated.device is not None),
        excluded=shown.excluded,
        price_warning=_stale(options, as_of, policy) if as_of is not None else None,
        catalogue_date=catalogue.as_of.isoformat(),
    )


def _told_count(workload: Workload, stated: _Stated) -> tuple[Note, ...]:
    """That a number of cards was told without their kind."""
    told = workload.constraints.devices
    if not told or stated.device is not None or stated.cpu is not None:
        return ()
    return (Note("count_without_card", {"count": told}),)


def _headlines(
    options: tuple[Option, ...], demand: Demand | None, policy: Policy, money: RentOrBuy | None
) -> dict[str, Note]:
    """What answers a question of time, capacity or cost, by the intent."""
    if not options:
        return {}
    first = options[0]
    found = {
        "time": time_headline(first),
        "capacity": capacity_headline(first, demand, policy) if demand is not None else None,
        "load": per_stream_note(first),
        "binds": binds_note(first),
        "run_cost": run_cost_headline(options),
        "cost": money.verdict if money is not None else None,
    }
    return {name: note for name, note in found.items() if note is not None}


def _beside(
    workload: Workload,
    model: ModelSpec,
    options: tuple[Option, ...],
    catalogue: Catalogue,
    policy: Policy,
    demand: Demand | None,
    stated: bool,
) -> dict[str, Note]:
    """Other ways to serve it: an endpoint, replicas that follow the load, a CPU or a GPU (I4, I8, I10)."""
    if demand is None or not isinstance(workload, InferenceWorkload) or not options or options[0].blocked is not None:
        return {}
    from rules.advice.managed_option import managed_note
    from rules.advice.scaling import crossing_note, scaling_note

    known = demand.mean_requests_s is not None
    found = {
        "managed": managed_note(workload, model, options, catalogue, policy, demand) if known or not stated else None,
        "scaling": scaling_note(options, demand),
        "crossing": crossing_note(workload, model, options, catalogue, policy, demand),
    }
    return {name: note for name, note in found.items() if note is not None}


def _stale(options: tuple[Option, ...], as_of: date, policy: Policy) -> Note | None:
    quotes = [option.cost.quote for option in options if option.cost is not None and option.cost.quote is not None]
    return stale(quotes, as_of, policy.prices)


def _as_taken(assumption: Assumption, workload: InferenceWorkload) -> Assumption:
    """The assumption with the value that the CPU's engine and format really have."""
    taken = getattr(workload, assumption.field, None)
    if taken is None or taken.origin != "assumed" or taken.reason is None:
        return assumption
    return Assumption(assumption.field, taken.value, taken.reason)


def _plan(shown: _Shown) -> MemoryPlan | None:
    if shown.judged is not None:
        return plan_of(shown.judged)
    if shown.on_cpu is not None:
        return cpu_plan(shown.on_cpu, shown.options[0].hardware)
    return None


def _summary(match: ModelMatch) -> ModelSummary:
    model = match.spec
    return ModelSummary(
        name=model.display_name,
        how=match.how,
        params_b=model.params_b,
        active_params_b=model.params_active / 1e9,
        note=Note(match.note, match.note_params or {}) if match.note else None,
    )


def _unique(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    seen: dict[tuple[str, str], Note] = {}
    for note in notes:
        seen.setdefault((note.message, str(sorted(note.params.items()))), note)
    return tuple(seen.values())
