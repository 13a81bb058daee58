"""A trainer's facts as the question's fields: method, number formats, batch, length, how the run is split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from bot.questions.configs.config_read import Fact, Told
from bot.questions.configs.names import Named, recipe_method

_SAME = ("lora_rank", "context", "optimizer")
_SAME_EXTRA = ("grad_accum", "global_batch", "epochs", "steps", "packed", "compile", "fused_loss", "double_quant",
               "tp", "pp", "cp", "optimizer_in_backward")  # fmt: skip
_NO_ADAPTER = ("none", "false", "full", "no")
_ALL_LINEAR = ("all", "all-linear", "all_linear")
_STAGE = re.compile(r"z(?:ero)?[_\-]?(?:stage)?[_\-]?([0-3])(?!\d)", re.IGNORECASE)
_OFFLOAD = re.compile(r"offload", re.IGNORECASE)
_HALVES = {"SHARD_GRAD_OP": "zero2", "NO_SHARD": "ddp", "HYBRID_SHARD": "hsdp", "HYBRID_SHARD_ZERO2": "hsdp",
           "2": "zero2", "3": "ddp", "4": "hsdp", "1": "fsdp", "FULL_SHARD": "fsdp"}  # fmt: skip


def settle(facts: Mapping[str, Fact], named: Named | None, without_adapter: str | None) -> Iterator[Told]:
    """The fields that the facts give. `without_adapter` is the method where the config names no adapter."""
    yield from _method(facts, named, without_adapter)
    yield from _formats(facts, named)
    yield from _attention(facts)
    yield from _split(facts)
    for name in (*_SAME, *_SAME_EXTRA):
        if name in facts:
            yield from _optimizer(facts) if name == "optimizer" else [Told(name, facts[name].value, facts[name])]
    if "batch" in facts:
        yield Told("batch", facts["batch"].value, facts["batch"])
        yield Told("batch_per_device", True, facts["batch"])
    yield from _targets(facts)
    if fact := facts.get("checkpointing"):
        yield Told("checkpointing", bool(fact.value), fact)


def _on(facts: Mapping[str, Fact], name: str) -> Fact | None:
    fact = facts.get(name)
    return fact if fact is not None and fact.value else None


def _four_bit(facts: Mapping[str, Fact], named: Named | None) -> Fact | None:
    if fact := _on(facts, "load_in_4bit"):
        return fact
    if (fact := facts.get("quant_bits")) and fact.value == 4:
        return fact
    off = "load_in_4bit" in facts and not facts["load_in_4bit"].value
    by_name = named is not None and named.weights is not None and re.match(r"nf4|int4|gptq-4|awq", named.weights)
    return facts.get("model") if by_name and not off else None


def _method(facts: Mapping[str, Fact], named: Named | None, without_adapter: str | None) -> Iterator[Told]:
    four, dora = _four_bit(facts, named), _on(facts, "use_dora")
    adapter = facts.get("adapter") or facts.get("finetuning_type")
    word = str(adapter.value).lower() if adapter else None
    peft: Fact | None = None
    if word in ("lora", "qlora", "dora"):
        peft = adapter
    elif adapter is None:
        told = facts.get("component_method") or _recipe(facts)
        if told and told.value == "qlora":
            four, peft = four or told, told
        elif told and told.value in ("lora", "dora"):
            dora, peft = dora or (told if told.value == "dora" else None), told
        elif told:
            yield Told("method", "full", told)
            return
        peft = peft or _on(facts, "use_peft") or facts.get("lora_rank") or _on(facts, "lora_all_linear")
    if word == "freeze" or (adapter is None and peft is None and "unfrozen" in facts):
        yield Told("method", "freeze", adapter or facts["unfrozen"])
        return
    if peft is None and word is None and without_adapter in ("lora", "full") and facts:
        source = four or facts.get("model") or next(iter(facts.values()))
        if without_adapter == "full":
            yield Told("method", "full", source)
            return
        peft = source
    if peft is None:
        if word in _NO_ADAPTER and adapter:
            yield Told("method", "full", adapter)
        return
    method = "qlora" if four or word == "qlora" else "dora" if dora or word == "dora" else "lora"
    yield Told("method", method, four if four and word != "qlora" else dora if method == "dora" and dora else peft)


def _recipe(facts: Mapping[str, Fact]) -> Fact | None:
    """The method that torchtune's recipe or config file says by its name; the recipe of LoRA runs QLoRA as well."""
    recipe, file = facts.get("recipe"), facts.get("file_method")
    method = recipe_method(str(recipe.value)) if recipe else None
    if recipe is None or method is None or (file and method == "lora"):
        return file
    return Fact(method, recipe.start, recipe.end)


def _formats(facts: Mapping[str, Fact], named: Named | None) -> Iterator[Told]:
    """`precision` is the format that the run computes in; the weights' own goes beside it where it is another."""
    four = _four_bit(facts, named)
    eight = _on(facts, "load_in_8bit") or ((f := facts.get("quant_bits")) and f.value == 8 and f) or None
    pure = _on(facts, "pure_bf16") or _on(facts, "pure_fp16")
    compute: tuple[str, Fact] | None = None
    for name in ("bf16", "fp16"):
        if compute is None and (fact := _on(facts, name)):
            compute = (name, fact)
    mixed = facts.get("mixed")
    if compute is None and mixed and str(mixed.value).lower() in ("bf16", "fp16", "fp8"):
        compute = (str(mixed.value).lower(), mixed)
    if pure:
        compute = ("bf16" if pure is facts.get("pure_bf16") else "fp16", pure)
    if compute is None and (fact := facts.get("pure_dtype")):
        compute = (fact.value, fact)
    if compute is None and four is not None and (fact := facts.get("compute_dtype")):
        compute = (fact.value, fact)
    stored = facts.get("weights_dtype")
    if compute is None and stored:
        compute = (stored.value, stored)
    if compute is None and "bf16" in facts and "fp16" in facts:
        compute = ("fp32", facts["bf16"])
    if compute:
        yield Told("precision", *compute)
        yield Told("compute_dtype", *compute)
    if four is not None:
        kind = facts.get("quant_type")
        if kind and str(kind.value).lower() in ("nf4", "fp4"):
            yield Told("weights_dtype", str(kind.value).lower(), kind)
    elif eight:
        yield Told("weights_dtype", "int8", eight)
    elif pure:
        yield Told("weights_dtype", "bf16" if pure is facts.get("pure_bf16") else "fp16", pure)
    elif fact := stored or facts.get("pure_dtype"):
        yield Told("weights_dtype", fact.value, fact)


def _optimizer(facts: Mapping[str, Fact]) -> Iterator[Told]:
    fact = facts["optimizer"]
    fused = _on(facts, "optimizer_fused")
    for special in ("galore", "apollo", "muon"):
        if other := _on(facts, special):
            yield Told("optimizer", special, other)
            return
    yield Told("optimizer", "adamw_fused" if fused and fact.value == "adamw" else fact.value, fact)


def _attention(facts: Mapping[str, Fact]) -> Iterator[Told]:
    fact = facts.get("attention")
    kind = fact.value if fact else None
    for name, word in (("flash", "flash"), ("sdpa", "sdpa"), ("eager", "eager")):
        if kind is None and (on := _on(facts, name)):
            kind, fact = word, on
    if kind is None or fact is None:
        return
    if kind == "eager":
        yield Told("attention", "eager", fact)
    else:
        yield Told("flash_attention", kind == "flash", fact)


def _targets(facts: Mapping[str, Fact]) -> Iterator[Told]:
    if fact := _on(facts, "lora_all_linear"):
        yield Told("lora_targets", "all_linear", fact)
    elif fact := facts.get("lora_targets"):
        names: tuple[str, ...] = fact.value
        if len(names) == 1 and names[0].lower() in _ALL_LINEAR:
            yield Told("lora_targets", "all_linear", fact)
        elif "lora_mlp" in facts and facts["lora_mlp"].value:
            yield Told("lora_targets", (*names, "gate_proj", "up_proj", "down_proj"), fact)
        else:
            yield Told("lora_targets", names, fact)


def _split(facts: Mapping[str, Fact]) -> Iterator[Told]:
    """Sharding, offloading and the number of devices."""
    count = devices(facts)
    offload: dict[str, Fact] = {}
    sharding = _sharding(facts)
    if sharding is None and count and count.value > 1:
        sharding = ("ddp", count)
    if sharding:
        yield Told("sharding", *sharding)
    file = facts.get("deepspeed_file")
    stage = 0
    if sharding and sharding[0].startswith("zero") and "fsdp_strategy" not in facts:
        stage = int(sharding[0][4:])
    if file and _OFFLOAD.search(str(file.value)):
        offload["optimizer_cpu"] = file
        if stage == 3:
            offload["params_cpu"] = file
    for name, part in (("offload_optimizer", "optimizer_cpu"), ("offload_param", "params_cpu")):
        if (fact := facts.get(name)) and str(fact.value).lower() in ("cpu", "nvme"):
            offload[part] = fact
    if fact := _on(facts, "old_offload"):
        offload["optimizer_cpu"] = fact
    if (fact := _on(facts, "fsdp_offload")) or (fact := _fsdp_word(facts, "offload")):
        offload |= {"params_cpu": fact, "optimizer_cpu": fact}
    recompute = facts.get("checkpointing")
    if (fact := _on(facts, "activation_offload")) or (
        recompute and str(recompute.value).startswith("offload") and (fact := recompute)
    ):
        offload["activations_cpu"] = fact
    if offload:
        order = [p for p in ("params_cpu", "optimizer_cpu", "activations_cpu") if p in offload]
        yield Told("offload", "+".join(order), offload[order[0]])
    if count:
        yield Told("gpu_count", count.value, count)


def devices(facts: Mapping[str, Fact]) -> Fact | None:
    """How many devices the run has, where a launcher or a config says so."""
    total = facts.get("total_processes")
    if total and total.value:
        return total
    each = facts.get("processes") or facts.get("docker_count") or facts.get("visible_count")
    if each is None or not each.value:
        return None
    nodes = facts.get("nodes")
    return Fact(each.value * max(1, nodes.value if nodes else 1), each.start, each.end)


def _fsdp_word(facts: Mapping[str, Fact], word: str) -> Fact | None:
    fact = facts.get("fsdp")
    return fact if fact and word in fact.value else None


def _sharding(facts: Mapping[str, Fact]) -> tuple[str, Fact] | None:
    if fact := facts.get("zero_stage"):
        return (f"zero{fact.value}", fact) if 1 <= fact.value <= 3 else ("ddp", fact)
    if (fact := facts.get("deepspeed_file")) and (found := _STAGE.search(str(fact.value))):
        return (f"zero{found[1]}", fact) if found[1] != "0" else ("ddp", fact)
    if (fact := facts.get("fsdp_strategy")) and (kind := _HALVES.get(str(fact.value).upper())):
        return kind, fact
    if (fact := facts.get("fsdp_reshard")) is not None and not fact.value:
        return "zero2", fact
    if fact := facts.get("fsdp"):
        words = {str(w).lower() for w in fact.value}
        if words & {"shard_grad_op"}:
            return "zero2", fact
        if words & {"hybrid_shard", "hybrid_shard_zero2"}:
            return "hsdp", fact
        if not words & {"false", "no_shard"}:
            return "fsdp", fact
    distributed = facts.get("distributed")
    kind = str(distributed.value).upper() if distributed else ""
    if distributed and kind in ("FSDP", "MULTI_GPU"):
        return ("fsdp" if kind == "FSDP" else "ddp"), distributed
    if (fact := facts.get("recipe")) and "distributed" in str(fact.value):
        return "fsdp", fact
    for name, word in (("uses_fsdp", "fsdp"), ("uses_ddp", "ddp"), ("fsdp_version", "fsdp")):
        if fact := _on(facts, name):
            return word, fact
    return None
