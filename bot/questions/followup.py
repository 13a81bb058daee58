"""A follow-up ("and in 8-bit?", "on two of them?", "what about a 3090") merged into the question before it."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from typing import Any

from bot.questions import numbers
from bot.questions.lexicon import cue, word
from bot.questions.parse import NameSource, finish, parse
from bot.questions.parsed import Parsed

MAX_FOLLOWUP_CHARS = 120
_SIZE_OF = {"model": ("params_b", "active_params_b"), "params_b": ("model", "active_params_b")}


@cache
def _of_them() -> re.Pattern[str]:
    return re.compile(
        rf"\b(?P<count>{numbers.count_source()})(?:x|\s(?:of\sthem|of\sthose|de\sellas|de\sesas|{word('gpu')}))(?![a-z0-9])"
        rf"|^(?:y\s|and\s)?(?:with|on|con|en)\s(?P<bare>{numbers.count_source()})\s?\?*$"
    )


@cache
def _leads_on() -> re.Pattern[str]:
    return re.compile(rf"{word('followup')}\b")


def merge(previous: Parsed, text: str, catalogue: NameSource) -> Parsed:
    """The question that a follow-up means: what it says replaces, what it leaves out stays.

    A message that names both a model and what to do is a new question and replaces the old one.
    """
    new = parse(text, catalogue)
    if _stands_alone(new) or new.intent == "help" or not previous.fields:
        return new
    fields: dict[str, Any] = {k: v for k, v in previous.fields.items() if not _spoilt(previous, k)}
    extra = dict(previous.extra)
    said = dict(new.fields)
    if "task" in new.assumed:
        said.pop("task", None)
    _retarget(fields, extra, said, new)
    again = _of_them().search(new.text.lower())
    if again and "hardware" not in said and fields.get("hardware"):
        count = numbers.count(again.group("count") or again.group("bare"))
        fields["hardware"] = [{**item, "count": count} for item in fields["hardware"]]
        said.pop("params_b", None)
    fields |= said
    extra |= new.extra
    intent = (
        previous.intent if new.intent in ("unclear", "fit", "followup") and previous.intent != "unclear" else new.intent
    )
    if intent == "unclear" and fields.keys() & {"model", "params_b"}:
        intent = "fit"
    kept = tuple(p for p in previous.problems if p.field is not None and p.field not in fields)
    return finish(
        dataclasses.replace(new, intent=intent, fields=fields, extra=extra, problems=(*kept, *new.problems)),
        answered=frozenset(),
    )


def _spoilt(previous: Parsed, field: str) -> bool:
    return any(p.field == field for p in previous.problems)


def _stands_alone(new: Parsed) -> bool:
    if _leads_on().match(new.text.lower().lstrip("¿ ")) and len(new.text) <= MAX_FOLLOWUP_CHARS:
        return False
    named = new.fields.keys() & {"model", "params_b"}
    told = "task" in new.fields and "task" not in new.assumed
    return bool(named and (told or "hardware" in new.fields)) or len(new.text) > MAX_FOLLOWUP_CHARS


def _retarget(fields: dict[str, Any], extra: dict[str, Any], said: dict[str, Any], new: Parsed) -> None:
    """Drops what a new value contradicts and renames a format to the field of the task at hand."""
    for field, others in _SIZE_OF.items():
        if field in said:
            for other in others:
                fields.pop(other, None)
    if "hardware" in said or "gpu_mem_gb" in said:
        for field in ("hardware", "gpu_mem_gb", "cpu_only"):
            fields.pop(field, None)
        extra.pop("gpu_count", None)
    if said.get("cpu_only"):
        fields.pop("hardware", None)
        fields.pop("gpu_mem_gb", None)
    training = fields.get("task") in ("fine_tuning", "training", "pretraining") and "task" not in said
    fmt = said.get("weights_format")
    if training and fmt is not None:
        del said["weights_format"]
        if fmt == "int4" and fields.get("method") in (None, "lora", "qlora"):
            said["method"] = "qlora"
        else:
            said["precision"] = fmt
            if fields.get("method") == "qlora" and fmt in ("bf16", "fp16", "fp32"):
                said["method"] = "lora"
    if "users" in new.extra or "concurrency" in said:
        extra.pop("users", None)
    if (
        not training
        and said.get("task") == "inference"
        and cue("tasks", "fine_tuning").search(new.text.lower()) is None
    ):
        fields.pop("method", None)
