"""Reported figures as cases of the published-case format (tests/accuracy/cases/SCHEMA.md).

A case holds what the person stated and what was measured, and nothing that says who they are: no id of a person or
channel, no word that they wrote. What they left out is left out, so that every law assumes it as for any other case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from bot.questions.workload import to_workload
from bot.store.records import Asked, Feedback
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import UnknownName
from rules.workload import Given, Hardware, Workload

MEMORY_KEYS = {"training": "peak_gib_per_gpu", "inference": "total_gib"}  # the figure that "it took 21.3 GiB" is
SPEED_KEYS = {
    "training": ("tokens_per_s_per_gpu", "samples_per_s", "step_s"),
    "inference": (
        "decode_tok_s",
        "total_tok_s",
        "prefill_tok_s",
        "ttft_ms",
        "tpot_ms",
        "requests_s",
        "latency_ms",
    ),
}
_SHORT = {"training": "train", "inference": "infer"}
_RENAMED = {
    "compute_dtype": "compute",
    "engine_version": "framework_version",
    "gpu_layers": "offloaded_layers",
    "attention_impl": "attn_impl",
    "max_batched_tokens": "max_num_batched_tokens",
}
_FOLDED = ("checkpointing", "attention", "trainable_params", "software_month")


def cases_of(feedback: Feedback, asked: Asked, catalogue: Catalogue) -> Iterator[dict[str, Any]]:
    """One case for a measured figure and one for an outcome; none where the question names no model or no machine, or
    where the figure is not one of its kind of workload."""
    workload = to_workload(asked.parsed, catalogue) if asked.parsed is not None else None
    if workload is None or len(workload.hardware) != 1 or not (workload.model.name or workload.model.params_b):
        return
    told = feedback.reported
    if told is not None and (kind := _kind(workload, told.key)) is not None:
        yield _case(workload, feedback, asked, catalogue, kind) | {
            "measured": {told.key: told.value, "as_reported": f"{told.value:g}"}
        }
    if feedback.outcome is not None:
        task = {"task": workload.kind}
        yield _case(workload, feedback, asked, catalogue, "verdict") | task | {"outcome": feedback.outcome}


def _kind(workload: Workload, key: str) -> str | None:
    if key == MEMORY_KEYS[workload.kind]:
        return f"{_SHORT[workload.kind]}_memory"
    return f"{_SHORT[workload.kind]}_speed" if key in SPEED_KEYS[workload.kind] else None


def _case(workload: Workload, feedback: Feedback, asked: Asked, catalogue: Catalogue, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256("\0".join((asked.id, feedback.who.workspace, feedback.who.user, kind)).encode())
    machine = workload.hardware[0]
    return {
        "id": f"reported-{digest.hexdigest()[:16]}",
        "kind": kind,
        "source": {"repo": None, "where": "reported by a user of the bot", "seen": feedback.at.date().isoformat()},
        "model": workload.model.name,
        "params_b": workload.model.params_b,
        "active_params_b": workload.model.active_params_b,
        "gpu": machine.name,
        "n_gpus": machine.count,
        "gpu_mem_gib": _memory_gib(machine, catalogue),
        "domain": workload.domain,
        "statistic": None,
        **_stated(workload),
        "confidence": "low",
        "notes": f"rules {asked.rules}, catalogue {asked.catalogue}",
    }


def _memory_gib(machine: Hardware, catalogue: Catalogue) -> float | None:
    if machine.memory_gib is not None:
        return machine.memory_gib
    try:
        return catalogue.find_accelerator(machine.name).memory_gib
    except UnknownName:
        return None


def _stated(workload: Workload) -> dict[str, Any]:
    """The set-up in the words of a case, with the names of what was inferred."""
    fields: dict[str, Any] = {}
    inferred: list[str] = []
    for name in workload.__slots__:
        given = getattr(workload, name)
        if not isinstance(given, Given) or name == "software_month":
            continue
        key, value = _folded(name, given.value) if name in _FOLDED else (_RENAMED.get(name, name), given.value)
        fields[key] = list(value) if isinstance(value, tuple) else value
        if given.origin == "assumed":
            inferred.append(key)
    return fields | {"inferred": inferred}


def _folded(name: str, value: Any) -> tuple[str, Any]:
    if name == "trainable_params":
        return "trainable_params_m", value / 1e6
    if name == "checkpointing":
        return ("recompute", value) if value == "selective" else ("gradient_checkpointing", value != "none")
    return ("flash_attention", value == "flash") if value in ("flash", "eager") else ("attn_impl", value)
