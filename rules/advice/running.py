"""Whether a device can run the asked number formats at all, and in which form it can instead (T1).

Memory is one question, arithmetic and kernels another: a card may hold weights that nothing on it computes with.
"""

from __future__ import annotations

from dataclasses import replace

from rules.catalog.accelerators import Accelerator
from rules.catalog.capabilities import Finding, Wants, assess, capability_of, formats_instead
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note
from rules.workload import Given, TrainingWorkload, Workload

_FILE_ENGINES = ("llama.cpp", "ik_llama.cpp", "ollama", "mlx")
_STORED_ANYWHERE = ("fp8", "mxfp4")  # formats that some software only stores: the card computes in 16 or 32 bits
_OF_PLACE = "T5"


def wants_of(workload: Workload, model: ModelSpec) -> Wants:
    """The hardware features that the workload's number formats and kernels ask for."""
    if isinstance(workload, TrainingWorkload):
        compute = workload.compute_dtype.value if workload.compute_dtype else "bf16"
        attention = workload.attention.value if workload.attention else "flash"
        return Wants(compute_dtype=compute, flash_attention=attention == "flash", training=True)
    fmt = workload.weights_format.value if workload.weights_format else "bf16"
    engine = workload.engine.value.lower() if workload.engine else ""
    only_stored = model.domain != "llm" or engine in _FILE_ENGINES
    asked = None if only_stored and fmt.lower().startswith(_STORED_ANYWHERE) else fmt
    return Wants(compute_dtype="bf16", weights_format=asked, flash_attention=False, training=False)


def blocking(device: Accelerator, wants: Wants) -> Finding | None:
    """Why the device cannot run it, whatever its memory; None where it can. Where it may stand is no part of this."""
    return next((f for f in assess(device, wants) if f.verdict == "exclude" and f.requirement != _OF_PLACE), None)


def note_of(finding: Finding) -> Note:
    """A finding as the advice says it."""
    return Note(finding.message, finding.params, finding.requirement)


def way_round(workload: Workload, model: ModelSpec, device: Accelerator) -> Workload | None:
    """The same work in a form that the device runs; None where there is none.

    Training changes the arithmetic. Weights change to a format of about as many bits whose kernels run there; files of
    llama.cpp bring their engine with them.
    """
    if isinstance(workload, TrainingWorkload):
        wants = wants_of(workload, model)
        compute = "bf16" if capability_of(device).bf16 == "native" else "fp16"
        changed: Workload = replace(workload, compute_dtype=_taken(compute))
        return (
            changed if wants.compute_dtype != compute and blocking(device, wants_of(changed, model)) is None else None
        )
    given = workload.weights_format
    if given is None or model.domain != "llm":
        return None
    for name in formats_instead(given.value):
        engine = _taken("llama.cpp") if name.startswith("gguf") else workload.engine
        if engine is not None and not name.startswith("gguf") and engine.value.lower() in _FILE_ENGINES:
            continue
        changed = replace(workload, weights_format=_taken(name), engine=engine)
        if blocking(device, wants_of(changed, model)) is None:
            return changed
    return None


def _taken(value: str) -> Given[str]:
    return Given(value, origin="assumed", reason="default_format_that_runs")
