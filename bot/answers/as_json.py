"""`Advice` as plain JSON data: every note carries its id, its parameters and its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from bot.answers.words import Words
from rules.advice.types import Advice, PlanPart
from rules.memory.footprint import Note
from rules.workload import Given


def advice_json(advice: Advice, words: Words) -> dict[str, Any]:
    """The whole advice; silent fields of the workload are left out."""
    form = _plain(advice, words)
    assert isinstance(form, dict)
    return form


def _plain(value: Any, words: Words) -> Any:
    if isinstance(value, Note):
        note: dict[str, Any] = {"id": value.message, "params": _plain(value.params, words), "text": words.say(value)}
        if value.requirement:
            note["requirement"] = value.requirement
        return note
    if isinstance(value, Given):
        return {"value": value.value, "origin": value.origin}
    if isinstance(value, PlanPart):
        return {
            "part": value.part,
            "name": words(f"part_{value.part}"),
            "gib": value.gib,
            "why": words.say(value.why, value.params),
        }
    if is_dataclass(value):
        return {
            f.name: _plain(getattr(value, f.name), words)
            for f in fields(value)
            if getattr(value, f.name) is not None or f.name in ("speed", "cost", "plan")
        }
    if isinstance(value, Mapping):
        return {str(key): _plain(item, words) for key, item in value.items()}
    if isinstance(value, Decimal):
        return format(value, "f")  # money stays exact: text, as in a question's budget
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (tuple, list)):
        return [_plain(item, words) for item in value]
    return value
