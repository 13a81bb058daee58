"""A follow-up ("and in 8-bit?", "on two of them?", "what about a 3090") merged into the question before it.

What it says replaces, what it leaves out stays, and what a new value contradicts goes. Where it contradicts itself or
points at nothing ("on two of them" with no card named), a remark says how it was taken.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from bot.questions import numbers
from bot.questions.lexicon import cue, remembered, word
from bot.questions.parse import NameSource, finish, parse
from bot.questions.parsed import Parsed
from bot.questions.text import clean
from rules.catalog.errors import UnknownName
from rules.memory.footprint import Note
from rules.records import dataclass

MAX_FOLLOWUP_CHARS = 120
TRAINING = frozenset(("fine_tuning", "training", "pretraining"))
_SIZE_OF = {"model": ("params_b", "active_params_b"), "params_b": ("model", "active_params_b")}
_SIZE_IN_NAME = re.compile(r"(?<![\d.])\d+(?:\.\d+)?B(?![a-zA-Z])")
_FOUR_BITS = ("int4", "nf4", "awq", "gptq-4bit", "4bit")
_EIGHT_BITS = ("int8", "fp8", "8bit")
_CACHE_OF = {"fp8": "fp8", "int8": "q8_0", "int4": "q4_0", "fp16": "fp16", "bf16": "fp16"}
_CACHE = re.compile(r"\b(?:kv|cache)\b")
_MEMORY_IN_NAME = re.compile(r"\d+(?=GB$)")
_INHERITED = ("fit", "recommend", "capacity", "compare", "cost", "time")
_OF_TRAINING = (
    "method optimizer lora_rank batch samples dataset_tokens precision framework sharding offload checkpointing packed "
    "grad_accum weights_dtype mixed_precision epochs double_quant compile batch_per_device"
).split()
_OF_SERVING = (
    "weights_format framework concurrency requests_per_s requests_per_day tokens_per_day latency_ms ttft_ms users "
    "tok_s kv_dtype input_len output_len gpu_layers"
).split()
_ALTERNATIVES = ("hardware", "model", "params_b", "weights_format", "method")


@dataclass(frozen=True, slots=True)
class Merged:
    """The question that a message means; `follows` is False where it is a question of its own.

    `asks`: the message itself says what it wants to know, be it nothing new about the workload.
    """

    parsed: Parsed
    follows: bool
    asks: bool = True
    remarks: tuple[Note, ...] = ()


@remembered
def _of_them() -> re.Pattern[str]:
    count = numbers.count_source()
    return re.compile(
        rf"\b(?P<count>{count})(?:x|\s(?:of\sthem|of\sthose|de\sellas|de\sesas|{word('gpu')}))(?![a-z0-9])"
        rf"|^(?:y\s|and\s)?(?:with|on|con|en|what\sabout)\s(?P<bare>{count})\s?(?:instead)?\s?\?*$"
    )


@remembered
def _leads_on() -> re.Pattern[str]:
    return re.compile(rf"{word('followup')}\b")


def follow(previous: Parsed, text: str, catalogue: NameSource) -> Merged:
    """The question that a follow-up means.

    A message that names both a model and what to do with it is a new question and replaces the old one.
    """
    new = parse(text, catalogue)
    if _stands_alone(new) or new.intent == "help" or not previous.fields:
        return Merged(new, follows=False)
    spoilt = {p.field for p in previous.problems}
    fields: dict[str, Any] = {k: v for k, v in previous.fields.items() if k not in spoilt}
    extra = dict(previous.extra)
    said = dict(new.fields)
    if "task" in new.assumed:
        said.pop("task", None)
    remarks: list[Note] = []
    settle_task(fields, extra, said)
    cache = _settle_cache(extra, said, new)
    _retarget(fields, extra, said, new, catalogue)
    _settle_format(fields, extra, said, remarks)
    _settle_count(fields, said, new, remarks)
    fields |= said
    extra |= new.extra
    kept = tuple(p for p in previous.problems if p.field is not None and p.field not in fields)
    assumed = {"task": "inference"} if "task" in previous.assumed and "task" not in said else {}
    merged = dataclasses.replace(
        new,
        intent=_intent(previous, new, fields, said, cache),
        fields=fields,
        extra=extra,
        assumed=assumed,
        problems=(*kept, *new.problems),
    )
    asks = new.intent not in ("unclear", "followup")
    return Merged(finish(merged, answered=frozenset()), follows=True, asks=asks, remarks=tuple(remarks))


def cheaper(parsed: Parsed, stated: bool) -> tuple[Parsed, Note]:
    """What "cheaper" asks for: the cheapest hardware first, then a set-up that needs less of it.

    `stated`: the question before named its hardware, which is then left open.
    """
    parsed = dataclasses.replace(parsed, extra={**parsed.extra, "goal": "cheapest"})
    if stated:
        return other_hardware(parsed), Note("remark_cheaper_smallest")
    training = parsed.fields.get("task") in TRAINING
    if training and parsed.fields.get("method") in (None, "full"):
        return _with(parsed, {"method": "lora"}), Note("remark_cheaper_method", {"method": "LoRA"})
    if training and parsed.fields.get("method") == "lora":
        return _with(parsed, {"method": "qlora"}), Note("remark_cheaper_method", {"method": "QLoRA"})
    if not training and parsed.fields.get("weights_format") not in _FOUR_BITS:
        return _with(parsed, {"weights_format": "int4"}), Note("remark_cheaper_4_bit")
    return parsed, Note("remark_cheaper_already")


def faster(parsed: Parsed) -> tuple[Parsed, Note]:
    """What "faster" asks for: the fastest hardware first, whatever was named before."""
    return other_hardware(dataclasses.replace(parsed, extra={**parsed.extra, "goal": "fastest"})), Note("remark_faster")


def other_hardware(parsed: Parsed) -> Parsed:
    """The question with its hardware left open."""
    dropped = ("hardware", "gpu_mem_gb", "gpu_count", "cpu_only", "compare")
    return _with(parsed, {}, drop=dropped, intent="recommend")


def side_by_side(before: Parsed, after: Parsed) -> Parsed | None:
    """The question before compared with its change; None where nothing comparable changed."""
    for name in _ALTERNATIVES:
        old, new = before.fields.get(name), after.fields.get(name)
        if old is not None and new is not None and old != new and "compare" not in before.extra:
            changed: Parsed = _with(before, {}, intent="compare", extra={"compare": [{name: old}, {name: new}]})
            return dataclasses.replace(changed, text=after.text, lang=after.lang)
    return None


def _with(
    parsed: Parsed,
    fields: Mapping[str, Any],
    *,
    drop: tuple[str, ...] = (),
    intent: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Parsed:
    kept = {k: v for k, v in parsed.fields.items() if k not in drop}
    facts = {k: v for k, v in parsed.extra.items() if k not in drop}
    changed = dataclasses.replace(
        parsed, intent=intent or parsed.intent, fields=kept | dict(fields), extra=facts | dict(extra or {})
    )
    return finish(changed, frozenset(("hardware",)))


def _intent(previous: Parsed, new: Parsed, fields: Mapping[str, Any], said: Mapping[str, Any], cache: bool) -> Any:
    """The new message's own intent where it has one; otherwise that of the question before."""
    if new.intent not in ("unclear", "fit", "followup") and not cache:
        return new.intent
    inherited = previous.intent if previous.intent in _INHERITED else "fit"
    if inherited == "recommend" and {"hardware", "gpu_mem_gb"} & said.keys():
        return "fit"
    if inherited == "compare" and "compare" not in previous.extra:
        return "fit"
    workload = fields.keys() & {"model", "params_b", "active_params_b"}
    return inherited if workload or inherited != "fit" else "unclear"


def _stands_alone(new: Parsed) -> bool:
    if _leads_on().match(new.text.lower().lstrip("¿ ")) and len(new.text) <= MAX_FOLLOWUP_CHARS:
        return False
    named = new.fields.keys() & {"model", "params_b"}
    if new.intent == "concept" and new.fields.keys() & {"model", "params_b", "active_params_b", "hardware", "method"}:
        return True
    told = "task" in new.fields and "task" not in new.assumed
    return bool(named and (told or "hardware" in new.fields)) or len(new.text) > MAX_FOLLOWUP_CHARS


def settle_task(fields: dict[str, Any], extra: dict[str, Any], said: dict[str, Any]) -> None:
    """A change from running to training or back takes along what still makes sense."""
    was = fields.get("task") in TRAINING
    if "task" not in said:
        return
    if said["task"] == "training" and fields.keys() & {"model", "params_b"}:
        said["task"] = "fine_tuning" if fields.get("task") not in TRAINING else fields["task"]
    now = said["task"] in TRAINING
    if was == now:
        return
    if now and fields.get("weights_format") in _FOUR_BITS:
        said.setdefault("method", "qlora")
    for name in _OF_SERVING if now else _OF_TRAINING:
        fields.pop(name, None)
        extra.pop(name, None)


def _settle_cache(extra: dict[str, Any], said: dict[str, Any], new: Parsed) -> bool:
    """A format that is said of the cache ("the KV cache in 8 bits") is not that of the weights."""
    if "kv_dtype" in new.extra and _leads_on().match(new.text.lower().lstrip("¿ ")):
        return True
    given = said.get("weights_format", said.get("precision"))
    if given is None or given not in _CACHE_OF or _CACHE.search(clean(new.text).folded) is None:
        return False
    said.pop("weights_format", None)
    said.pop("precision", None)
    extra["kv_dtype"] = _CACHE_OF[given]
    return True


def _settle_format(fields: Mapping[str, Any], extra: dict[str, Any], said: dict[str, Any], remarks: list[Note]) -> None:
    """In training, a weights format says method or precision: 4 bits is QLoRA, and quantised weights train adapters."""
    task = said.get("task", fields.get("task"))
    given = said.get("weights_format", said.get("precision"))
    if task not in TRAINING or given is None:
        return
    said.pop("weights_format", None)
    said["precision"] = given
    for name in ("weights_dtype", "mixed_precision"):
        extra.pop(name, None)
    method = said.get("method", fields.get("method"))
    if given in _FOUR_BITS:
        said.pop("precision")
        said["method"] = "qlora"
        if method in ("full", "freeze"):
            remarks.append(Note("remark_quantised_not_full", {"bits": 4, "method": "QLoRA"}))
    elif given in _EIGHT_BITS and method in ("full", "freeze", "qlora"):
        said["method"] = "lora"
        message = "remark_qlora_is_4_bit" if method == "qlora" else "remark_quantised_not_full"
        remarks.append(Note(message, {"bits": 8, "method": "LoRA"}))
    elif given not in _EIGHT_BITS and method == "qlora":
        said["method"] = "lora"


def _settle_count(fields: dict[str, Any], said: dict[str, Any], new: Parsed, remarks: list[Note]) -> None:
    """A count that stands for the cards named before ("on two of them")."""
    again = _of_them().search(new.text.lower().lstrip("¿¡ "))
    if not again or "hardware" in said:
        return
    count = numbers.count(again.group("count") or again.group("bare"))
    said.pop("params_b", None)
    if not fields.get("hardware"):
        remarks.append(Note("remark_no_hardware_named"))
    elif count < 1:
        name = fields["hardware"][0]["name"]
        remarks.append(Note("device_count_impossible", {"name": name, "count": count}))
    else:
        fields["hardware"] = [{**item, "count": count} for item in fields["hardware"]]


def _retarget(
    fields: dict[str, Any], extra: dict[str, Any], said: dict[str, Any], new: Parsed, catalogue: NameSource
) -> None:
    """Drops what a new model, device or load contradicts."""
    if "params_b" in said and "model" not in said and (name := _sibling(fields, said["params_b"], catalogue)):
        said["model"] = name
    if said.get("gpu_mem_gb") and "hardware" not in said and (variant := _variant(fields, said, new, catalogue)):
        del said["gpu_mem_gb"]
        said["hardware"] = variant
    for field, others in _SIZE_OF.items():
        if field in said:
            for other in others:
                fields.pop(other, None)
    if "hardware" in said or "gpu_mem_gb" in said or said.get("cpu_only"):
        for field in ("hardware", "gpu_mem_gb", "cpu_only"):
            fields.pop(field, None)
        extra.pop("gpu_count", None)
    if any(said.keys() & change.keys() for change in extra.get("compare", ())):
        extra.pop("compare")
    if "users" in new.extra or "concurrency" in said:
        extra.pop("users", None)
        fields.pop("concurrency", None)
    if said.get("task") == "inference" and cue("tasks", "fine_tuning").search(new.text.lower()) is None:
        fields.pop("method", None)


def _variant(
    fields: Mapping[str, Any], said: Mapping[str, Any], new: Parsed, catalogue: NameSource
) -> list[dict[str, Any]] | None:
    """The machine named before with another memory ("and with 192 GB?"), where there is such a variant."""
    items = fields.get("hardware", ())
    if len(items) != 1 or not _MEMORY_IN_NAME.search(items[0]["name"]) or cue("words", "gpu").search(new.text.lower()):
        return None
    name = _MEMORY_IN_NAME.sub(f"{said['gpu_mem_gb']:g}", items[0]["name"])
    try:
        device = catalogue.find_accelerator(name)
    except UnknownName:
        return None
    sold = device.unified_memory or round(device.memory_gb_marketed) == said["gpu_mem_gb"]
    return [{**items[0], "name": name}] if sold and "gpu_count" not in new.extra else None


def _sibling(fields: Mapping[str, Any], params_b: float, catalogue: NameSource) -> str | None:
    """The model of the same family with another size: after Llama-3-8B, "and the 70b?" is Llama-3-70B."""
    name = fields.get("model", "")
    size = _SIZE_IN_NAME.search(name)
    if size is None:
        return None
    other = _SIZE_IN_NAME.sub(f"{params_b:g}B", name)
    ids = [each.rpartition("/")[2] for each in catalogue.model_ids]
    if any(_plain(other) in _plain(each) for each in ids):
        return other
    stem = name[: size.start()].strip("-").rpartition("-")[0]  # a distilled model of the same name over another base
    found = [each for each in ids if stem.count("-") and each.startswith(stem) and f"-{params_b:g}B" in each]
    return found[0] if found else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "")
