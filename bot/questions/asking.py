"""What a question leaves out: which missing fields are asked and which are assumed (table in `asking.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from bot.questions.parsed import Intent

_SAME = {"context": ("input_len",), "concurrency": ("users",), "precision": ("weights_format",),
         "model": ("params_b", "active_params_b"), "batch": ("batches",)}  # fmt: skip


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("asking.toml").read_text("utf-8"))


def missing(
    intent: Intent, fields: Mapping[str, Any], extra: Mapping[str, Any], invalid: frozenset[str], domain: str
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(fields to ask, defaults assumed) of a question; an invalid field is asked first."""
    row = next(n for n in _table()["need"] if _applies(n, intent, fields.get("task")))
    ask: list[str] = sorted(invalid)
    assumed: dict[str, Any] = {}
    for field in row["fields"]:
        if field in invalid or _known(field, fields, extra) or domain in _table()["not_for"].get(field, ()):
            continue
        default = _table()["assume"].get(field)
        if isinstance(default, dict):
            default = default.get(domain, default["llm"])
        if default is None or intent == "unclear":
            ask.append(field)
        else:
            assumed[field] = default
    return tuple(ask), assumed


def _applies(row: Mapping[str, Any], intent: Intent, task: str | None) -> bool:
    return intent in row.get("intent", (intent,)) and task in row.get("task", (task,))


def _known(field: str, fields: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    return any(f in fields or f in extra for f in (field, *_SAME.get(field, ())))
