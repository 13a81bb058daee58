"""Predicts what a published case measured: the estimator behind `gpufit estimate` and `gpufit evaluate`.

One case (format: tests/accuracy/cases/SCHEMA.md) becomes a workload, a model and a device of the catalogue; the memory
laws give the footprint, the verdict rule the outcome. A case that cannot be answered gives an answer that says why;
nothing here raises for what a case contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bot.answers.words import words
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.cpus import Cpu
from rules.catalog.errors import CatalogError, UnknownName
from rules.catalog.model_names import ModelMatch
from rules.catalog.models import ModelSpec
from rules.evidence import CaseError, workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint, Note, Range
from rules.memory.law import footprint
from rules.memory.verdict import Fit, verdict
from rules.policy import Policy, default_policy
from rules.records import dataclass
from rules.units import to_gib
from rules.workload import Given, InferenceWorkload, TrainingWorkload, Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """A workload placed on a device: what it needs and whether that fits. `fit` is None where no device was named."""

    workload: Workload
    model: ModelSpec
    device: Accelerator | None
    footprint: Footprint
    fit: Fit | None
    notes: tuple[Note, ...]


class Estimator:
    """Answers cases from one catalogue under one policy."""

    def __init__(self, catalogue: Catalogue | None = None, policy: Policy | None = None) -> None:
        self.catalogue = catalogue or Catalogue.load()
        self.policy = policy or default_policy()

    def lines(self, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
        """One answer for each line that is not blank, in order; a line that is no case gives an error object."""
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            yield self.text(line, f"line {number}")

    def text(self, text: str, where: str = "input") -> dict[str, Any]:
        """The answer to one case written as JSON."""
        try:
            case = json.loads(text)
        except (ValueError, RecursionError) as exc:
            return {"id": None, "error": f"{where}: not JSON ({exc})"}
        return self.answer(case)

    def answer(self, case: object) -> dict[str, Any]:
        """The answer to one case: `predicted` and so on, `unsupported` with the reason, or `error` for no case."""
        if not isinstance(case, Mapping):
            return {"id": None, "error": "a case is a JSON object"}
        name = case.get("id")
        try:
            workload = workload_of(case)
            if str(case.get("kind", "")).endswith("_speed"):
                return {"id": name, **self._speed(workload)}
            plan = self.plan(workload)
        except CaseError as exc:
            return {"id": name, "error": str(exc)}
        except (CatalogError, UnsupportedWorkload) as exc:
            return {**_EMPTY, "id": name, "unsupported": _reason(exc)}
        except (ArithmeticError, ValueError) as exc:
            return {**_EMPTY, "id": name, "unsupported": f"out_of_range: {exc}"}
        return {"id": name, **_answer(plan, case.get("statistic"))}

    def plan(self, workload: Workload) -> Plan:
        """Places a workload on its own hardware.

        Raises `CatalogError` for an unknown model, `UnsupportedWorkload` where no law applies.
        """
        match = self.catalogue.find_model(workload.model.name, workload.model.params_b, workload.model.active_params_b)
        workload = _with_implied_format(workload, match)
        device, device_note = self._device(workload)
        result = footprint(workload, match.spec, device)
        fit = verdict(workload, result, device, _device_count(workload), self.policy) if device else None
        notes = [*result.notes]
        if match.note:
            notes.insert(0, Note(match.note, match.note_params or {}))
        if device_note:
            notes.insert(0, device_note)
        return Plan(workload, match.spec, device, result, fit, tuple(notes))

    def _speed(self, workload: Workload) -> dict[str, Any]:
        """The answer to a speed case; memory stands beside it where its law applies too."""
        from bot.estimate_speed import speed_predictions

        figures = speed_predictions(self, workload)
        try:
            memory = _answer(self.plan(workload), None)
        except (CatalogError, UnsupportedWorkload, ArithmeticError, ValueError):
            memory = {key: value for key, value in _EMPTY.items() if key != "id"}
        for part, end in (("predicted", "expected"), ("low", "low"), ("high", "high")):
            told = {key: _figure(getattr(value, end)) for key, value in figures.items()}
            memory[part] = {**memory[part], **told}
        return memory

    def gpu_class(self, case: Mapping[str, Any]) -> str:
        """`datacenter`, `workstation`, `consumer`, `integrated`, `cpu` or `not known`."""
        if case.get("cpu") and not case.get("gpu"):
            return "cpu"
        try:
            return self.catalogue.find_accelerator(str(case.get("gpu") or ""), case.get("gpu_mem_gib")).tier
        except CatalogError:
            return "not known"

    def _device(self, workload: Workload) -> tuple[Accelerator | None, Note | None]:
        if not workload.hardware:
            return None, None
        asked = workload.hardware[0]
        try:
            return self.catalogue.find_accelerator(asked.name, asked.memory_gib), None
        except CatalogError as exc:
            if not asked.memory_gib:
                return None, Note("device_unknown", {"device": asked.name})
            generic = self.catalogue.find_accelerator("", asked.memory_gib)
            return generic, Note("device_known_by_memory_alone", {"device": asked.name, "detail": str(exc)})


def placed(estimator: Estimator, workload: Workload) -> tuple[Workload, ModelSpec, Accelerator | Cpu | None, int]:
    """A workload with its format, its model, the device or CPU it names (None: not known) and how many of them.

    Raises `CatalogError` for an unknown model.
    """
    catalogue = estimator.catalogue
    match = catalogue.find_model(workload.model.name, workload.model.params_b, workload.model.active_params_b)
    workload = _with_implied_format(workload, match)
    device: Accelerator | Cpu | None = None
    count = _device_count(workload)
    if workload.hardware and workload.hardware[0].name:
        asked = workload.hardware[0]
        name, sockets = _sockets(asked.name)
        try:
            if name != asked.name:
                raise UnknownName("accelerator", asked.name, ())
            device = catalogue.find_accelerator(asked.name, asked.memory_gib)
        except CatalogError:
            try:
                device, count = catalogue.find_cpu(name), max(count, sockets)
            except CatalogError:
                device = None
    return workload, match.spec, device, count


def host_cpu(estimator: Estimator, workload: Workload) -> tuple[Cpu, int] | None:
    """The CPU around the accelerators and its sockets, where the workload names one that the catalogue holds."""
    given = workload.host_cpu if isinstance(workload, InferenceWorkload) else None
    if given is None:
        return None
    name, sockets = _sockets(given.value)
    try:
        return estimator.catalogue.find_cpu(name), sockets
    except CatalogError:
        return None


_SOCKETS = re.compile(r"^(?:cpu:\s*)?(?:(\d)\s*x\s+)?(.*)$", re.IGNORECASE)


def _sockets(name: str) -> tuple[str, int]:
    """ "2x Xeon Gold 6454S" as a CPU's name and its sockets."""
    found = _SOCKETS.match(name)
    if found is None or (found.group(1) is None and not name.lower().startswith("cpu:")):
        return name, 1
    return found.group(2), int(found.group(1) or 1)


_EMPTY: dict[str, Any] = {
    "id": None,
    "predicted": {},
    "low": {},
    "high": {},
    "outcome": None,
    "breakdown": [],
    "assumed": {},
    "unsupported": None,
}


def _reason(exc: CatalogError | UnsupportedWorkload) -> str:
    details = ", ".join(f"{key}={value}" for key, value in exc.params.items() if value != "")
    return f"{exc.message_id} ({details})" if details else exc.message_id


def _with_implied_format(workload: Workload, match: ModelMatch) -> Workload:
    """Takes the weights format from the model's name ("…-AWQ") where nobody stated one."""
    if isinstance(workload, InferenceWorkload) and workload.weights_format is None and match.weights_format:
        given = Given(match.weights_format, "assumed", "weights_format_from_model_name")
        return replace(workload, weights_format=given)
    return workload


def _device_count(workload: Workload) -> int:
    return sum(hardware.count for hardware in workload.hardware) or 1


def _answer(plan: Plan, statistic: object) -> dict[str, Any]:
    ranges = _predictions(plan, statistic if isinstance(statistic, str) else None)
    return {
        "predicted": {key: _figure(value.expected) for key, value in ranges.items()},
        "low": {key: _figure(value.low) for key, value in ranges.items()},
        "high": {key: _figure(value.high) for key, value in ranges.items()},
        "outcome": plan.fit.outcome if plan.fit else None,
        "breakdown": _breakdown(plan.footprint),
        "assumed": _assumed(plan.notes),
        "unsupported": None,
    }


def _breakdown(result: Footprint) -> list[dict[str, Any]]:
    say = words("en")
    return [
        {
            "part": part.name,
            "gib": round(to_gib(part.bytes), 4),
            "why": part.why,
            "params": dict(part.params),
            "text": say.say(part.why, part.params),
        }
        for part in result.parts
    ]


def _assumed(notes: tuple[Note, ...]) -> dict[str, Any]:
    """What the laws assumed, by field; remarks that set no field stand under their message id."""
    found: dict[str, Any] = {}
    for note in notes:
        if "field" in note.params:
            found[str(note.params["field"])] = note.params.get("value")
        else:
            found[note.message] = dict(note.params)
    return found


# What engines print of their memory, by the component of the footprint that it is.
_LOGGED = {
    "weights": "weights_gib",
    "kv": "kv_gib",
    "compute_buffer": "compute_buffer_gib",
    "activation_peak": "activation_peak_gib",
    "non_torch": "non_torch_gib",
    "cuda_graphs": "cuda_graph_gib",
}


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def _predictions(plan: Plan, statistic: str | None) -> dict[str, Range]:
    result = plan.footprint
    figures = {
        "allocated_gib": _gib(result.allocated),
        "reserved_gib": _gib(result.reserved),
        "device_gib": _gib(result.device),
    }
    if isinstance(plan.workload, TrainingWorkload):
        asked = {"allocated": "allocated_gib", "nvidia-smi": "device_gib"}.get(statistic or "", "reserved_gib")
        return {"peak_gib_per_gpu": figures[asked], **figures}
    return {**_inference_predictions(plan, statistic), **figures}


def _inference_predictions(plan: Plan, statistic: str | None) -> dict[str, Range]:
    result = plan.footprint
    values = {"total_gib": _gib(_total(plan, statistic))}
    for component, key in _LOGGED.items():
        if component in result.components:
            value = result.components[component]
            values[key] = _gib(Range(value, value, value))
    if result.cpu_bytes:
        values["cpu_weights_gib"] = _gib(Range(result.cpu_bytes, result.cpu_bytes, result.cpu_bytes))
    if result.kv_cache_tokens is not None:
        tokens = result.kv_cache_tokens
        values["kv_cache_tokens"] = Range(tokens, tokens, tokens)
    return values


def _total(plan: Plan, statistic: str | None) -> Range:
    """The figure that a total of this statistic counts."""
    workload = plan.workload
    engine = workload.engine.value if isinstance(workload, InferenceWorkload) and workload.engine else None
    if plan.model.domain == "llm":
        from rules.memory.inference import inference_total_bytes

        return inference_total_bytes(plan.footprint, statistic, engine)
    from rules.memory.media import media_total_bytes

    return media_total_bytes(plan.footprint, statistic, engine)


def _gib(value: Range) -> Range:
    return Range(to_gib(value.low), to_gib(value.expected), to_gib(value.high))
