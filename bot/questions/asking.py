"""What a question leaves out: which missing fields are asked and which are assumed.

`asking.toml` says what decides an answer; the values assumed are those of the advice's own table of defaults, so that
the question and the answer assume the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import tomli

from bot.questions.parsed import Intent

_SAME = {"context": ("input_len",), "precision": ("weights_format",), "batch": ("batches",),
         "model": ("params_b", "active_params_b"), "hardware": ("gpu_mem_gb", "cpu_only"),
         "latency_ms": ("ttft_ms", "tok_s")}  # fmt: skip
UNSAID = "unsaid"  # the task of a row for questions that say none
_UNSURE = ("unclear", "followup")
_LARGE_PARAMS_B = 1.5  # as the advice's table counts a model as large


@cache
def _table() -> Mapping[str, Any]:
    return tomli.loads(Path(__file__).with_name("asking.toml").read_text("utf-8"))


@cache
def _defaults() -> Mapping[str, Any]:
    return tomli.loads(resources.files("rules.advice").joinpath("data/defaults.toml").read_text("utf-8"))


def missing(
    intent: Intent,
    fields: Mapping[str, Any],
    extra: Mapping[str, Any],
    invalid: frozenset[str],
    answered: frozenset[str],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(fields to ask, defaults assumed). An invalid field is asked first, one that the question asks for (`answered`)
    never."""
    domain = str(extra.get("domain", "llm"))
    row = next(n for n in _table()["need"] if _applies(n, intent, fields.get("task", UNSAID)))
    ask: list[str] = sorted(invalid)
    assumed: dict[str, Any] = {}
    wanted = [] if invalid else list(row.get("ask", ()))
    for field in (*row.get("ask", ()), *row.get("assume", ())):
        skip = field in invalid or field in answered or domain in _table()["not_for"].get(field, ())
        if skip or _known(field, fields, extra):
            continue
        default = _default(field, fields, domain)
        people = field == "concurrency" and "users" in extra  # registered users, not sequences at once
        if people or (field in wanted and (default is None or intent in _UNSURE)):
            ask.append(field)
        else:
            taken = _table()["assume"].get(field) if default is None else default
            if taken is not None:
                assumed[field] = taken
    return tuple(ask), assumed


def _applies(row: Mapping[str, Any], intent: Intent, task: str) -> bool:
    return intent in row.get("intent", (intent,)) and task in row.get("task", (task,))


def _known(field: str, fields: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    return any(f in fields or f in extra for f in (field, *_SAME.get(field, ())))


def _default(field: str, fields: Mapping[str, Any], domain: str) -> Any:
    task = "inference" if fields.get("task", "inference") == "inference" else "training"
    name = _table()["names"].get(task, {}).get(field, field)
    size = fields.get("params_b")
    facts = {
        "domain": domain,
        "large": size is None or size >= _LARGE_PARAMS_B,
        "detector": domain == "vision",
        "method": fields.get("method"),
    }
    for row in _defaults()[task]:
        if row["field"] == name and all(facts.get(k) in allowed for k, allowed in row.get("when", {}).items()):
            return row["value"]
    return None
