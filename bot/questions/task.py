"""What is to be done in a question: training kind, method, engine, optimizer, sharding, place, and switches."""

from __future__ import annotations

import re

from bot.questions.lexicon import (
    EDGE_AFTER,
    EDGE_BEFORE,
    Alternatives,
    Needing,
    choices,
    cue,
    languages,
    remembered,
    source,
    table,
    word,
)
from bot.questions.number_formats import Formats
from bot.questions.reader import Reader

_PRETRAINING_TOKENS = 1e9  # data sets of this size are for pretraining unless a method says otherwise
_TRAINED_FROM_PRETRAINED = frozenset(("llm", "encoder", "audio", "diffusion", "dual-encoder"))


_TENSOR_PARALLEL = Needing(rf"{EDGE_BEFORE}(?:tp|tensor[\s\-]parallel\w*){EDGE_AFTER}", ("tp", "tensor"))
_SAID_BY = {"fine_tuning": ("fine_tuning", "training")}


@remembered
def _frameworks(kind: str) -> tuple[tuple[str, Alternatives], ...]:
    return tuple((name, Alternatives(options)) for name, options in table("common")["frameworks"][kind].items())


@remembered
def _switch(name: str) -> Needing:
    options = table("common")["switches"][name]
    off = r"(?P<off>\s?[:=]?\s?(?:off|disabled|false))?"
    return Needing(rf"{EDGE_BEFORE}(?P<no>{word('not')}\s)?{EDGE_BEFORE}{source(options)}{EDGE_AFTER}{off}", options)


def read_tools(reader: Reader) -> None:
    """Fills `framework`, `optimizer` and the extras `sharding`, `offload`, `nvlink`, `checkpointing` and switches."""
    optimizers = [(hit, name) for name, pattern in choices("optimizers") for hit in [reader.search(pattern)] if hit]
    if optimizers:
        longest, name = max(optimizers, key=lambda o: (o[0].end() - o[0].start(), -o[0].start()))
        reader.give("optimizer", name, longest)
    for name, pattern in choices("sharding"):
        if reader.has(pattern):
            reader.extra.setdefault("sharding", name)
    for name, pattern in choices("offload"):
        if m := reader.search(pattern):
            reader.give_extra("offload", "params_cpu" if name == "any" else name, m)
    for name in ("checkpointing", "flash_attention", "nvlink", "packed", "double_quant", "compile"):
        if m := reader.search(_switch(name)):
            reader.give_extra(name, not (m.group("no") or m.group("off")), m)
    found = [
        (hit.start(), name, hit)
        for kind in ("serves", "trains", "pretrains", "either")
        for name, pattern in _frameworks(kind)
        for hit in [reader.search(pattern)]
        if hit
    ]
    for _, name, hit in sorted(found, key=lambda f: f[0]):
        reader.name("framework", framework=name)
        reader.give("framework", name, hit)


@remembered
def _regions() -> tuple[tuple[str, Alternatives], ...]:
    names = dict.fromkeys(name for lang in languages() for name in table(lang).get("regions", {}))
    return tuple((name, cue("regions", name)) for name in names)


def read_place(reader: Reader) -> None:
    """Fills `location` (cloud or on_prem) where the text names exactly one."""
    shunned = reader.has(cue("place", "not_cloud"))
    cloud = not shunned and (reader.has(cue("place", "cloud")) or "rent_per_hour" in reader.extra)
    on_prem = shunned or reader.has(cue("place", "on_prem")) or reader.has(cue("words", "buying"))
    if cloud != on_prem:
        reader.fields["location"] = "cloud" if cloud else "on_prem"
    for region, words in _regions():
        if m := reader.search(words):
            reader.give_extra("region", region, m)


def read_method(reader: Reader) -> None:
    """Fills `method` (full, lora, qlora, dora, freeze) where the text names it."""
    rare = cue("methods", "rare").search(reader.whole)
    for method in ("qlora", "dora", "lora", "full", "freeze"):
        m = cue("methods", method).search(reader.whole)
        if m and rare and 0 <= m.start() - rare.end() < 20:
            continue
        if m:
            reader.give("method", method, m)
            return
    near = cue("methods", "full_near").search(reader.whole)
    if near and cue("tasks", "fine_tuning").search(reader.whole[max(0, near.start() - 30) : near.end() + 30]):
        reader.give("method", "full", near, 0.8)


def decide_task(reader: Reader, formats: Formats, compares_formats: bool) -> bool:
    """Fills `task` where words, method or engine say it, and the format's field; True if the words said it."""
    stated = _stated_task(reader)
    if stated:
        reader.fields["task"] = stated
        for kind in _SAID_BY.get(stated, (stated,)):
            if said := cue("tasks", kind).search(reader.whole):
                reader.read("task", *said.span())
                break
    training = stated not in (None, "inference")
    if training and "lora_rank" in reader.fields:
        reader.fields.setdefault("method", "lora")  # only adapters have a rank
    _place_formats(reader, formats, training, compares_formats)
    return stated is not None


def _stated_task(reader: Reader) -> str | None:
    if "task" in reader.fields:  # a config says it
        return str(reader.fields["task"])
    engine = reader.fields.get("framework")
    trains = engine in dict(_frameworks("trains")) or "sharding" in reader.extra
    serves = engine in dict(_frameworks("serves"))
    domain = reader.extra.get("domain")
    pre, tune, train = (reader.has(cue("tasks", t)) for t in ("pretraining", "fine_tuning", "training"))
    pre = pre or (engine in dict(_frameworks("pretrains")) and "method" not in reader.fields and not tune)
    huge = reader.fields.get("dataset_tokens", 0) >= _PRETRAINING_TOKENS and "method" not in reader.fields
    if pre or (huge and not tune):
        return "pretraining"
    if "method" in reader.fields or (tune and not _only_named(reader)):
        return "fine_tuning"
    if train:
        named = "model" in reader.fields or "params_b" in reader.fields
        return "fine_tuning" if named and (domain in _TRAINED_FROM_PRETRAINED or domain is None) else "training"
    about = any(f in reader.fields for f in ("model", "params_b", "hardware", "batch", "context"))
    if (trains and about) or "lora_rank" in reader.fields or "optimizer" in reader.fields:
        return "fine_tuning"
    if domain == "classical" or (domain == "vision" and "batch" in reader.fields):
        return "training"
    named = any(f in reader.fields for f in ("model", "params_b"))
    if serves or _load(reader) or (named and reader.has(cue("tasks", "inference"))):
        return "inference"
    return None


def _only_named(reader: Reader) -> bool:
    """Whether the only tuning said is in a description such as "instruct-tuned"."""
    return re.search(r"(?:instruct(?:ion)?|chat)[\s\-]tuned", reader.whole) is not None


def _load(reader: Reader) -> bool:
    if "tp" in reader.extra or (reader.has(_TENSOR_PARALLEL) and "hardware" in reader.fields):
        return True
    served = ("concurrency", "requests_per_s", "tokens_per_day", "latency_ms")
    return any(f in reader.fields for f in served) or any(
        f in reader.extra for f in ("users", "tok_s", "kv_dtype", "gpu_layers")
    )


def _place_formats(reader: Reader, formats: Formats, training: bool, compared: bool) -> None:
    if not formats.weights:
        return
    for value in formats.weights:
        reader.name("weights_format", weights_format=value)
    first = formats.weights[0]
    four_bit = first in ("int4", "nf4", "gptq-4bit", "awq")
    if not training:
        reader.offer("weights_format", first, *formats.places[0])
        return
    method = reader.fields.get("method")
    if four_bit and method in (None, "lora") and not compared and reader.fields.get("task") == "fine_tuning":
        reader.fields["method"] = "qlora"
        reader.read("method", *formats.places[0], 0.8)
    elif not (four_bit and method == "qlora"):
        reader.offer("precision", first, *formats.places[0])


@remembered
def _host_patterns() -> tuple[re.Pattern[str], ...]:
    name = r"(?P<host>[a-z][a-z0-9]{1,20}(?:[\-_.][a-z0-9]{1,20}){0,4})"
    part = word("host_part")
    return (
        re.compile(
            rf"{EDGE_BEFORE}(?:{word('host')}\s(?:=|:)?\s?{name}"
            rf"|(?P<named>(?:[a-z0-9]{{1,20}}[\-_.]){{0,3}}{part}[\-_.]?(?:[a-z0-9]{{1,12}}[\-_.]){{0,2}}\d{{1,3}})){EDGE_AFTER}"
        ),
        re.compile(rf"{EDGE_BEFORE}(?:on|en|at|in)\s(?:the\s|el\s)?{name}(?P<named>)?{EDGE_AFTER}"),
    )


def read_host(reader: Reader, named_so: bool) -> None:
    """Fills `host` of a benchmark request: a name with a digit.

    `named_so`: after the word host, before devices are read, because hosts are called after them (a100-2); otherwise
    after "on", once everything else was understood.
    """
    for m in list(reader.matches(_host_patterns()[0 if named_so else 1])):
        kind = "host" if m.group("host") else "named"
        if any(c.isdigit() for c in m.group(kind)):
            span = m.span(kind)
            reader.offer("host", reader.shown[slice(*span)], *span, 0.8)
            reader.claim_range(*span)
