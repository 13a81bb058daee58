"""Classical small models: regression, trees, light networks. A CPU; kilobytes to megabytes, and the data in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Part, Range
from rules.memory.media.asked import stated
from rules.memory.media.facts import tables
from rules.workload import Given, TrainingWorkload

_OTHER = "small neural network"


def classical_kinds() -> tuple[str, ...]:
    """Names of the kinds that this room knows."""
    return tuple(tables()["classical"])


def recognise_classical(text: str) -> str | None:
    """The kind of classical model that a text names (English or Spanish), None where it names none."""
    lower = text.lower()
    rows: Mapping[str, Mapping[str, Any]] = tables()["classical"]
    found = [(lower.find(word), kind) for kind, row in rows.items() for word in (kind, *row["match"]) if word in lower]
    return min(found)[1] if found else None


def classical_spec(kind: str) -> ModelSpec:
    """A model of that kind; raises `UnsupportedWorkload` for a text that names none.

    `params_total` is the usual size in 8-byte values, for display only.
    """
    known = recognise_classical(kind)
    if known is None:
        raise UnsupportedWorkload("media_unknown_classical", kind=kind)
    values = max(1, int(tables()["classical"][known]["model_bytes"][1] // 8))
    return ModelSpec(
        hf_id=known,
        family="classical",
        arch_type="classical",
        modality="tabular",
        params_total=values,
        params_active=values,
        native_dtype="fp32",
        origin="neighbour",
    )


def _range(values: list[float]) -> Range:
    return Range(float(values[0]), float(values[1]), float(values[2]))


def _row(model: ModelSpec) -> Mapping[str, Any]:
    kind = recognise_classical(model.hf_id) or recognise_classical(model.family) or _OTHER
    row: Mapping[str, Any] = tables()["classical"][kind]
    return row


def classical_footprint(model: ModelSpec) -> Footprint:
    """Memory of serving the model from a CPU process: the model itself is small beside the interpreter."""
    size = _range(_row(model)["model_bytes"])
    return _assemble(size, Range(0.0, 0.0, 0.0), [Note("media_classical_serving", {"kib": size.expected / 1024})])


def classical_training_footprint(workload: TrainingWorkload, model: ModelSpec) -> Footprint:
    """Memory of fitting the model: copies of the data set in RAM; raises `UnsupportedWorkload` without its size."""
    samples = _samples(workload.dataset_samples)
    if samples is None:
        raise UnsupportedWorkload("classical_training_needs_data_size")
    run, row = tables()["classical_run"], _row(model)
    data = samples * float(run["features"]) * float(run["value_bytes"]) * float(row["data_copies"])
    notes = [
        Note("media_assumed", {"field": "features", "value": int(run["features"]), "reason": "media_default_features"}),
        Note("media_classical_training", {"samples": samples}),
    ]
    narrow, wide = run["data_range"]
    return _assemble(_range(row["model_bytes"]), Range(data * narrow, data, data * wide), notes)


def _samples(given: Given[float] | None) -> float | None:
    value = stated(given)
    try:
        number = float(value) if value is not None else 0.0
    except (TypeError, ValueError):
        return None
    return number if 0 < number < 1e15 else None


def _assemble(size: Range, data: Range, notes: list[Note]) -> Footprint:
    runtime = _range(tables()["classical_run"]["runtime_bytes"])
    total = size.plus(runtime).plus(data)
    parts = [Part("weights", size.expected, "media_classical_model", {}, size.low, size.high)]
    if data.expected:
        parts.append(Part("data", data.expected, "media_classical_data", {}, data.low, data.high))
    parts.append(Part("runtime", runtime.expected, "media_runtime_cpu", {}, runtime.low, runtime.high))
    return Footprint(
        phase="serve" if not data.expected else "fit",
        parts=tuple(parts),
        phases={"all": total.expected},
        allocated=total,
        reserved=total,
        device=total,
        components={"weights": size.expected},
        cpu_bytes=total.expected,
        notes=tuple(notes),
    )
