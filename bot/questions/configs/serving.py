"""An engine's facts as the question's fields: weights and cache formats, lengths, parallelism, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bot.questions.configs.config_read import Fact, Told
from bot.questions.configs.names import Named
from bot.questions.configs.training import devices

_SAME = ("context", "batch", "input_len", "output_len", "tp", "pp", "ep", "gpu_layers", "kv_dtype", "n_ubatch",
         "n_batch", "max_num_seqs", "max_batched_tokens", "gpu_memory_utilization", "mem_fraction_static",
         "block_size", "cuda_graphs", "compile", "cpu_offload_gb", "max_batch_total_tokens")  # fmt: skip
_SPLIT_MODES = ("layer", "row", "none", "tensor")


def settle(facts: Mapping[str, Fact], named: Named | None, engine: str) -> Iterator[Told]:
    """The fields that the facts give."""
    yield from _weights(facts, named)
    yield from (Told(name, facts[name].value, facts[name]) for name in _SAME if name in facts)
    yield from _slots(facts)
    yield from _cache(facts)
    yield from _experts(facts)
    if (fact := facts.get("enforce_eager")) and fact.value:
        yield Told("cuda_graphs", False, fact)
    if (fact := facts.get("graph_list")) and str(fact.value) == "0":
        yield Told("cuda_graphs", False, fact)
    if (fact := facts.get("flash")) is not None:
        yield Told("flash_attention", fact.value, fact)
    if (fact := facts.get("split_mode")) and str(fact.value).lower() in _SPLIT_MODES:
        yield Told("split_mode", str(fact.value).lower(), fact)
    if fact := facts.get("draft_model"):
        yield Told("draft_model", str(fact.value), fact)
    yield from _devices(facts, engine)


def _weights(facts: Mapping[str, Fact], named: Named | None) -> Iterator[Told]:
    if (file := facts.get("file_weights")) is not None:
        yield Told("weights_format", file.value, file)
        return
    by_name = named.weights if named else None
    model = facts.get("model")
    quant = facts.get("quant")
    load = facts.get("load_format")
    four = facts.get("load_in_4bit")
    eight = facts.get("load_in_8bit")
    if by_name and model and (quant is None or _kin(by_name, str(quant.value))):
        yield Told("weights_format", by_name, model)
    elif quant:
        yield Told("weights_format", quant.value, quant)
    elif load and str(load.value).lower() == "bitsandbytes":
        yield Told("weights_format", "nf4", load)
    elif four and four.value:
        yield Told("weights_format", "nf4", four)
    elif eight and eight.value:
        yield Told("weights_format", "int8", eight)
    elif fact := facts.get("weights_dtype"):
        yield Told("weights_format", fact.value, fact)


def _kin(by_name: str, quant: str) -> bool:
    """Whether a name's format is the option's, said more exactly (gptq-8bit for gptq)."""
    return by_name.split("-")[0].split(":")[0] == quant.split("-")[0].split(":")[0]


def _slots(facts: Mapping[str, Fact]) -> Iterator[Told]:
    """llama.cpp shares its context among its slots."""
    total, slots = facts.get("total_context"), facts.get("slots")
    count = slots.value if slots and slots.value else 1
    if total:
        yield Told("context", max(1, total.value // count), total)
    if slots and count > 1:
        yield Told("batch", count, slots)


def _cache(facts: Mapping[str, Fact]) -> Iterator[Told]:
    key, value = facts.get("key_dtype"), facts.get("value_dtype")
    if key and value and str(key.value) != str(value.value):
        yield Told("kv_dtype", f"K {str(key.value).lower()}, V {str(value.value).lower()}", key)
    elif key and value:
        yield Told("kv_dtype", str(key.value).lower(), key)
    elif key:
        yield Told("kv_dtype", f"K {str(key.value).lower()}, V f16", key)
    elif value:
        yield Told("kv_dtype", f"K f16, V {str(value.value).lower()}", value)
    if (fact := facts.get("kv_on_cpu")) and fact.value:
        yield Told("kv_on_cpu", True, fact)


def _experts(facts: Mapping[str, Fact]) -> Iterator[Told]:
    override = facts.get("override")
    if (fact := facts.get("cpu_moe")) and fact.value:
        yield Told("experts_on_cpu", True, fact)
    elif fact := facts.get("experts_on_cpu"):
        yield Told("experts_on_cpu", fact.value, fact)
    elif override and "exps" in str(override.value) and "cpu" in str(override.value).lower():
        yield Told("experts_on_cpu", True, override)
    if (fact := facts.get("expert_parallel")) and fact.value:
        degree = (facts["tp"].value if "tp" in facts else 1) * (facts["dp"].value if "dp" in facts else 1)
        if degree > 1:
            yield Told("ep", degree, fact)


def _devices(facts: Mapping[str, Fact], engine: str) -> Iterator[Told]:
    tp, pp, dp = (facts.get(n) for n in ("tp", "pp", "dp"))
    on = facts.get("dp_attention_on")
    if dp and on and on.value:
        yield Told("dp_attention", dp.value, dp)
        dp = None  # SGLang's attention replicas are the tensor-parallel devices
    degree = 1
    source: Fact | None = None
    for fact in (tp, pp, dp):
        if fact and fact.value:
            degree, source = degree * fact.value, source or fact
    if dp and dp.value > 1:
        yield Told("replicas", dp.value, dp)
    if source and degree > 1:
        yield Told("gpu_count", degree, source)
    elif (fact := devices(facts)) and engine in ("llama.cpp", "ollama", "transformers"):
        yield Told("gpu_count", fact.value, fact)
