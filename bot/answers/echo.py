"""The workload as understood, in one line, so that any field of it can be corrected in the next message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bot.answers.words import Words
from bot.questions.followup import TRAINING
from bot.questions.parsed import Parsed
from rules.catalog.display_names import display_name

_SIZED = re.compile(r"\d[bm](?![a-z])", re.IGNORECASE)  # names like Llama-3-8B, which people write with spaces
# Fields and extras in the order in which they are said; each is the message `echo_<name>` with its `value`.
_ORDER = (
    "framework optimizer lora_rank context input_len output_len batch concurrency users requests_per_s "
    "requests_per_day tokens_per_day latency_ms ttft_ms samples dataset_tokens epochs resolution frames sharding "
    "kv_dtype offload tp pp cp ep global_batch grad_accum attention gpu_layers gpu_memory_utilization "
    "mem_fraction_static max_num_seqs max_batched_tokens n_batch n_ubatch kv_cache_tokens requested_gib ram_gb tok_s "
    "location purchase goal hours_per_week months"
).split()
# What is on or off: `echo_<name>` where it is on, `echo_no_<name>` where it was switched off.
_SWITCHES = ("checkpointing packed compile fused_loss double_quant flash_attention cuda_graphs experts_on_cpu").split()


def understood(parsed: Parsed, words: Words, model: str | None = None) -> str:
    """The line, without its heading; empty where nothing was understood. `model`: its name as people write it."""
    if model and "model" in parsed.fields:
        parsed = replace(parsed, fields={**parsed.fields, "model": model})
    return " · ".join(part for make in _PARTS for part in make(parsed, words))


def alternative_label(change: Mapping[str, Any], words: Words) -> str:
    """What makes one set-up of a comparison: its devices, model, format or method, as people write them."""
    if "hardware" in change:
        return machines(change["hardware"], words)
    if "weights_format" in change:
        return words.term("echo_format", change["weights_format"])
    if "method" in change:
        return words.term("method", change["method"])
    if change.get("model"):
        return str(change["model"])
    return words.say("echo_size", {"params_b": change.get("params_b")})


def machines(items: list[dict[str, Any]], words: Words) -> str:
    """Devices with their counts: "2 x RTX 4090"."""
    return " + ".join(words.say("machine", {"count": i["count"], "device": i["name"]}) for i in items)


def _alternatives(parsed: Parsed, words: Words) -> Iterator[str]:
    if told := parsed.extra.get("compare"):
        yield f" {words('echo_versus')} ".join(alternative_label(change, words) for change in told)


def _model(parsed: Parsed, words: Words) -> Iterator[str]:
    fields = parsed.fields
    if _compared(parsed, "model"):
        return
    if name := fields.get("model"):
        known = words.term("classical", str(name))
        yield display_name(known, "") if known == name and _SIZED.search(known) else known
    elif size := fields.get("params_b"):
        active = fields.get("active_params_b")
        params = {"params_b": size, "active_b": active}
        yield words.say("echo_size_active" if active else "echo_size", params)


def _task(parsed: Parsed, words: Words) -> Iterator[str]:
    fields = parsed.fields
    method = fields.get("method")
    if method and not _compared(parsed, "method"):
        yield words.term("method", method)
    elif task := fields.get("task"):
        yield words(f"echo_task_{task}")


def _format(parsed: Parsed, words: Words) -> Iterator[str]:
    for name in ("weights_format", "precision"):
        if (value := parsed.fields.get(name)) and not _compared(parsed, "weights_format"):
            yield words.term("echo_format", value)
    if (master := parsed.extra.get("mixed_precision")) is not None and parsed.fields.get("task") in TRAINING:
        yield words("echo_fp32_master" if master else "echo_pure_bf16")


def _hardware(parsed: Parsed, words: Words) -> Iterator[str]:
    fields = parsed.fields
    items = fields.get("hardware")
    memory = fields.get("gpu_mem_gb")
    if _compared(parsed, "hardware"):
        return
    if items:
        shown = machines(items, words)
        folded = f"{memory:g}GB" if memory else ""
        yield (
            words.say("echo_with_memory", {"machine": shown, "gb": memory}) if memory and folded not in shown else shown
        )
    elif memory:
        yield words.say("machine", {"count": parsed.extra.get("gpu_count", 1), "device": f"{memory:g} GB GPU"})
    if fields.get("cpu_only"):
        yield words("echo_cpu_only")


def _rest(parsed: Parsed, words: Words) -> Iterator[str]:
    known = {**parsed.extra, **parsed.fields}
    if known.get("users") == known.get("concurrency"):
        known.pop("concurrency", None)
    for name in _ORDER:
        if known.get(name) is not None:
            yield words.say(f"echo_{name}", {"value": known[name]})
    for name in _SWITCHES:
        if known.get(name) is not None:
            yield words(f"echo_{name}" if known[name] else f"echo_no_{name}")
    if providers := parsed.extra.get("providers"):
        yield words.say("echo_providers", {"value": ", ".join(providers)})
    if budget := parsed.fields.get("budget"):
        yield words.say(f"echo_budget_{budget['per']}", budget)


def _compared(parsed: Parsed, name: str) -> bool:
    return any(name in change for change in parsed.extra.get("compare", ()))


_PARTS: tuple[Callable[[Parsed, Words], Iterator[str]], ...] = (_model, _task, _format, _alternatives, _hardware, _rest)
