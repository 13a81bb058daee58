"""A parsed question as a `Workload`: what the text says is stated, what it leaves out stays None for the advice."""

from __future__ import annotations

from typing import Any

from bot.questions.known import written_memory_gb
from bot.questions.parsed import Parsed
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import UnknownName
from rules.units import SECONDS_PER_DAY
from rules.workload import (
    Constraints,
    Given,
    Hardware,
    InferenceWorkload,
    ModelRef,
    Money,
    Traffic,
    TrainingWorkload,
    Workload,
)

_TRAINING = frozenset(("fine_tuning", "training", "pretraining"))
_SIXTEEN_BITS = ("bf16", "fp16")
_SHARDERS = ("fsdp", "deepspeed", "ddp")  # named as a framework, but they say how a run is split
_PLACES = {"cloud": "cloud", "on_prem": "on_premises"}
_TRAINING_EXTRAS = (
    "grad_accum global_batch mixed_precision packed compile double_quant fused_loss attention sharding offload tp pp "
    "cp epochs"
).split()
_INFERENCE_EXTRAS = (
    "kv_dtype input_len output_len tp pp ep dp_attention gpu_layers flash_attention n_ubatch n_batch max_num_seqs "
    "max_batched_tokens gpu_memory_utilization mem_fraction_static block_size cuda_graphs split_mode "
    "experts_on_cpu compile"
).split()
_GLOBAL_BATCH = 64  # sequences; more than one card takes at a time in common runs


def to_workload(parsed: Parsed, catalogue: Catalogue) -> Workload | None:
    """The workload that was asked about; None where no model, size or task was understood.

    A field that the parser called impossible is left out. A CPU that the catalogue does not hold counts as "on a CPU".
    """
    spoilt = {p.field for p in parsed.problems}
    fields = {k: v for k, v in parsed.fields.items() if k not in spoilt}
    if parsed.intent == "help" or not fields.keys() & {"model", "params_b", "active_params_b", "task"}:
        return None
    hardware, cpu_only = _hardware(fields, parsed.extra, catalogue)
    shared: dict[str, Any] = {
        "model": ModelRef(
            name=fields.get("model"),
            params_b=fields.get("params_b"),
            active_params_b=fields.get("active_params_b") if "params_b" in fields or "model" in fields else None,
        ),
        "hardware": hardware,
        "domain": parsed.extra.get("domain"),
        "traffic": _traffic(fields, parsed.extra),
        "constraints": Constraints(
            cpu_only=cpu_only,
            location=parsed.extra.get("region"),
            where=_PLACES.get(fields.get("location", "")),  # type: ignore[arg-type]
            budget=_money(fields),
            providers=tuple(parsed.extra.get("providers", ())),
            purchase=parsed.extra.get("purchase"),
            goal=parsed.extra.get("goal"),
            kwh_price=_kwh_price(parsed.extra),
            devices=parsed.extra.get("gpu_count") if not hardware and not cpu_only else None,
        ),
    }
    if fields.get("task") in _TRAINING:
        return TrainingWorkload(**shared, **_training(fields, parsed.extra))
    return InferenceWorkload(**shared, **_inference(fields, parsed.extra))


def _hardware(fields: dict[str, Any], extra: Any, catalogue: Catalogue) -> tuple[tuple[Hardware, ...], bool]:
    memory = fields.get("gpu_mem_gb")
    items = fields.get("hardware", [])
    cpu_only = bool(fields.get("cpu_only"))
    if cpu_only and items:
        try:
            catalogue.find_cpu(items[0]["name"])
        except UnknownName:
            items = []
        memory = extra.get("ram_gb")
    if items:
        alone = memory if len(items) == 1 else None
        return tuple(_device(i["name"], i["count"], alone, cpu_only, catalogue) for i in items), cpu_only
    if memory and not cpu_only:
        return (Hardware(name=f"{memory:g} GB GPU", count=extra.get("gpu_count", 1), memory_gib=memory),), False
    return (), cpu_only


def _device(name: str, count: int, memory_gb: float | None, cpu: bool, catalogue: Catalogue) -> Hardware:
    """A card that the catalogue does not hold is taken by its memory, as the parser's problem says."""
    if not cpu:
        try:
            catalogue.find_accelerator(name, memory_gb)
        except UnknownName:
            memory_gb = memory_gb or written_memory_gb(name)
            if memory_gb:
                return Hardware(name=f"{memory_gb:g} GB GPU", count=count, memory_gib=memory_gb)
    return Hardware(name=name, count=count, memory_gib=memory_gb)


def _traffic(fields: dict[str, Any], extra: Any) -> Traffic:
    per_day = extra.get("requests_per_day")
    return Traffic(
        users=extra.get("users"),
        concurrency=_at_once(fields, extra),
        requests_per_s=fields.get("requests_per_s") or (per_day / SECONDS_PER_DAY if per_day else None),
        tokens_per_day=fields.get("tokens_per_day"),
        latency_ms=fields.get("latency_ms"),
        ttft_ms=extra.get("ttft_ms"),
        tokens_per_s_per_user=extra.get("tok_s"),
        hours_per_week=fields.get("hours_per_week"),
        months=fields.get("months"),
    )


def _at_once(fields: dict[str, Any], extra: Any) -> int | None:
    """Sequences at once, if the text says so; a number of people alone does not."""
    concurrency: int | None = fields.get("concurrency")
    return None if concurrency == extra.get("users") else concurrency


def _money(fields: dict[str, Any]) -> Money | None:
    budget = fields.get("budget")
    return Money(amount=str(budget["amount"]), currency=budget["currency"], per=budget["per"]) if budget else None


def _kwh_price(extra: Any) -> Money | None:
    price = extra.get("kwh_price")
    return Money(amount=str(price), currency=str(extra.get("currency", "USD")), per="kwh") if price else None


def _given(source: Any, names: dict[str, str]) -> dict[str, Any]:
    return {target: Given(source[name]) for name, target in names.items() if source.get(name) is not None}


def _training(fields: dict[str, Any], extra: Any) -> dict[str, Any]:
    said = _given(
        fields,
        {
            "method": "method",
            "optimizer": "optimizer",
            "lora_rank": "lora_rank",
            "context": "seq_len",
            "samples": "dataset_samples",
            "dataset_tokens": "dataset_tokens",
        },
    )
    if "batch" in fields:
        said[_batch_field(fields, extra)] = Given(fields["batch"])
    said |= _given(extra, {n: n for n in _TRAINING_EXTRAS}) | _given(extra, {"resolution": "image_size"})
    if fields.get("task") == "pretraining":
        said["method"] = Given("pretrain")
    if fields.get("framework") not in (None, *_SHARDERS):
        said["framework"] = Given(fields["framework"])
    if "checkpointing" in extra:
        said["checkpointing"] = Given("full" if extra["checkpointing"] else "none")
    if "flash_attention" in extra:
        said["attention"] = Given("flash" if extra["flash_attention"] else "sdpa")
    if targets := extra.get("lora_targets"):
        said["lora_targets"] = Given(targets if isinstance(targets, str) else tuple(targets))
    precision = fields.get("precision")
    if precision is None or precision == extra.get("compute_dtype"):  # as a config says it, weights apart
        said |= _given(extra, {"compute_dtype": "compute_dtype", "weights_dtype": "weights_dtype"})
    else:
        full = fields.get("method") in (None, "full", "freeze")
        said["compute_dtype" if full and precision in (*_SIXTEEN_BITS, "fp8") else "weights_dtype"] = Given(precision)
    return said


def _batch_field(fields: dict[str, Any], extra: Any) -> str:
    """A large batch on several cards that is not called micro or per card is the batch of all of them."""
    devices = sum(item["count"] for item in fields.get("hardware", ()))
    whole = devices > 1 and fields["batch"] >= _GLOBAL_BATCH and fields["batch"] % devices == 0
    return "global_batch" if whole and "batch_per_device" not in extra else "micro_batch"


def _inference(fields: dict[str, Any], extra: Any) -> dict[str, Any]:
    said = _given(fields, {"framework": "engine", "context": "context", "batch": "batch"})
    said |= _given(extra, {n: n for n in _INFERENCE_EXTRAS})
    said |= _given(extra, {"resolution": "image_size", "frames": "frames"})
    weights = fields.get("weights_format") or fields.get("precision")
    if weights:
        said["weights_format"] = Given(weights)
    at_once = _at_once(fields, extra)
    if at_once is not None:
        said["concurrency"] = Given(at_once)
    if extra.get("domain") == "diffusion":
        said |= _given(extra, {"steps": "steps"})
        if "offload" in extra:
            said["offload"] = Given("model_cpu")
    return said
