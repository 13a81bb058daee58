"""Classical small models (regression, trees, light networks): a CPU, and the data in memory is what counts."""

from __future__ import annotations

from rules.advice.placement import SINGLE
from rules.advice.plan_view import cpu_plan, gib_range
from rules.advice.types import Advice, Fired, ModelSummary, Option
from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note
from rules.workload import Hardware, InferenceWorkload, Workload

_ANY_CPU = "any_cpu"  # a name that the texts know


def advise_classical(workload: Workload, model: ModelSpec, catalogue: Catalogue) -> Advice:
    """A CPU is enough; says the kilobytes or megabytes and why a GPU would idle (I1)."""
    from rules.memory.media import inference_footprint

    run = InferenceWorkload(model=workload.model, hardware=(Hardware(name="cpu"),))
    need = inference_footprint(run, model, None)
    shown = gib_range(need.device)
    plan = cpu_plan(need, "cpu")
    reason = Note("classical_on_cpu", {"model": model.display_name}, "I1")
    option = Option(
        hardware=_ANY_CPU,
        count=1,
        kind="cpu",
        tier="cpu",
        parallelism=SINGLE,
        outcome="fits",
        need=shown,
        usable_gib=shown.high_gib,
        headroom_gib=0.0,
        reasons=(reason,),
    )
    return Advice(
        outcome="cpu",
        verdict=Note("verdict_classical", {"model": model.display_name, "mib": shown.expected_gib * 1024}),
        because=plan.parts,
        model=ModelSummary(
            name=model.display_name, how="classical", params_b=model.params_b, active_params_b=model.params_b
        ),
        workload=workload,
        plan=plan,
        options=(option,),
        warnings=need.notes,
        fired=(Fired("classical.cpu", "I1", {"model": model.display_name}),),
        catalogue_date=catalogue.as_of.isoformat(),
    )
