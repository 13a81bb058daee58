"""Recipes, optimizers and adapters: what names mean, and that what is stated wins."""

from __future__ import annotations

from importlib.resources import files

import pytest

from rules.catalog.catalogue import Catalogue
from rules.memory.training.adapters import adapted
from rules.memory.training.formats import weight_format
from rules.memory.training.law import settled
from rules.memory.training.optimizers import find_optimizer
from rules.memory.training.recipe import find_recipe
from rules.memory.training.setup import resolve
from rules.memory.training.shape import shape_of
from tests.rules.training_workloads import LLAMA_2_7B, LLAMA_3_8B, footprint, gib, model, part, workload


@pytest.mark.parametrize(
    ("framework", "recipe"),
    [
        ("torchtune + torchao", "torchtune"),
        ("TRL SFTTrainer + unsloth", "unsloth"),
        ("HF Trainer + Liger", "liger"),
        ("HF Trainer + DeepSpeed", "deepspeed"),
        ("Megatron-LM (Megatron-Core, TransformerEngine)", "megatron"),
        ("LLaMA-Factory", "llama-factory"),
        ("fsdp_qlora", "fsdp-qlora"),
        ("something of our own", "default"),
        (None, "default"),
    ],
)
def test_a_framework_is_found_by_the_words_of_its_name(framework: str | None, recipe: str) -> None:
    """Combined names take the recipe of the part that changes memory most."""
    assert find_recipe(framework.lower() if framework else None, None).name == recipe


def test_versions_pick_the_recipe_of_their_time() -> None:
    """litgpt's pinned bitsandbytes kept inputs; old trainers loop over parameters and keep zeroed gradients."""
    assert find_recipe("litgpt", "torch 2.1.0, bitsandbytes 0.41.1").keeps_inputs
    assert not find_recipe("litgpt", "torch 2.5, bitsandbytes 0.45.0").keeps_inputs
    assert find_recipe("hf trainer", "transformers 4.15-4.17").step == "loop"
    assert find_recipe("hf trainer", "transformers 4.45.2, torch 2.4.1").step == "foreach"


def test_every_recipe_uses_columns_that_the_file_explains() -> None:
    """A misspelt column would silently do nothing."""
    text = files("rules.memory.data").joinpath("recipes.toml").read_text(encoding="utf-8")
    columns = set(find_recipe(None, None).__dataclass_fields__) | {"match", "any", "before", "since"}
    keys = {line.split("=")[0].strip() for line in text.splitlines() if "=" in line and not line.startswith("#")}
    assert keys <= columns


def test_what_is_stated_wins_over_the_recipe() -> None:
    """torchtune keeps no fp32 copy, unless the workload says that it does."""
    fields = {"method": "full", "weights_dtype": "bf16", "optimizer": "adamw", "seq_len": 512, "micro_batch": 1}
    pure = footprint(LLAMA_2_7B, framework="torchtune", **fields)
    mixed = footprint(LLAMA_2_7B, framework="torchtune", mixed_precision=True, **fields)
    assert part(pure, "master") == 0
    assert part(mixed, "master") == pytest.approx(4 * model(LLAMA_2_7B).params_total)


def test_assumptions_are_notes_and_stated_fields_are_not() -> None:
    """Every field that was filled in by a default is reported once, with its value."""
    bare = {n.params["field"] for n in footprint(LLAMA_3_8B).notes if n.message == "training_assumed"}
    assert {"method", "weights_dtype", "optimizer", "micro_batch", "seq_len", "checkpointing"} <= bare
    full = footprint(
        LLAMA_3_8B, method="full", weights_dtype="bf16", optimizer="adamw", micro_batch=1, seq_len=512,
        checkpointing="none", framework="torchtune", attention="flash",
    )  # fmt: skip
    assert [n for n in full.notes if n.message == "training_assumed"] == []


@pytest.mark.parametrize(
    ("name", "states"),
    [("adamw", 8), ("adamw_torch_fused", 8), ("sgd", 4), ("sgd_plain", 0), ("lion", 4), ("adafactor", 0),
     ("prodigy", 16), ("bnb8bit", 2.03125), ("paged_adamw_8bit", 2.03125), ("adamw_4bit", 1.0625)],
)  # fmt: skip
def test_optimizers_keep_so_many_bytes_a_parameter(name: str, states: float) -> None:
    """State bytes of one fp32 parameter."""
    optimizer, known = find_optimizer(name)
    assert known
    assert optimizer.bytes_per_param(4.0, None) == states


def test_unknown_optimizers_are_taken_for_adamw_and_said_so() -> None:
    """A name that nobody knows does not stop the answer."""
    found = footprint(LLAMA_3_8B, method="full", optimizer="hyperfoo")
    assert "training_optimizer_unknown" in [n.message for n in found.notes]
    assert found.allocated.expected == footprint(LLAMA_3_8B, method="full", optimizer="adamw").allocated.expected
    assert find_optimizer("MyPagedAdamW8bit")[0].name == "paged_adamw_8bit"


def test_optimizers_rank_by_their_memory() -> None:
    """Plain SGD below 8-bit AdamW below fused AdamW below foreach AdamW."""
    fields = {"method": "full", "weights_dtype": "bf16", "mixed_precision": False, "seq_len": 512}
    needs = [gib(LLAMA_2_7B, optimizer=o, **fields) for o in ("sgd_plain", "adamw_8bit", "adamw_fused", "adamw")]
    assert needs == sorted(needs)
    assert needs[3] - needs[2] == pytest.approx(2 * model(LLAMA_2_7B).params_total / 2**30, rel=0.06)


def test_lora_weights_by_hand() -> None:
    """Rank x (inputs + outputs) of every adapted projection: Llama-3-8B, rank 16."""
    shape = shape_of(model(LLAMA_3_8B), None, None, False)
    attention = 2 * (4096 + 4096) + 2 * (4096 + 1024)
    mlp = 3 * (4096 + 14336)
    assert adapted(shape, "all_linear", 16, None, False).weights == 32 * 16 * (attention + mlp)
    assert adapted(shape, ("q_proj", "v_proj"), 16, None, False).weights == 32 * 16 * (2 * 4096 + 4096 + 1024)
    assert adapted(shape, "attention", 16, None, False).weights == 32 * 16 * attention


def test_embeddings_named_as_targets_are_trained_whole() -> None:
    """`wte (full)` beside adapters trains the table and the head, with fp32 gradients and states."""
    fields = {"method": "lora", "seq_len": 512, "framework": "HF Trainer"}
    without = footprint(LLAMA_2_7B, lora_targets=("q_proj",), **fields)
    trained = footprint(LLAMA_2_7B, lora_targets=("q_proj", "wte (full)"), **fields)
    tables = 2 * 32000 * 4096
    assert part(trained, "states") - part(without, "states") == pytest.approx(8 * tables)


def test_experts_can_stay_in_16_bits_beside_a_4_bit_base() -> None:
    """Where the loader does not quantise fused experts, they take two bytes a weight."""
    fields = {"method": "qlora", "framework": "unsloth"}
    name = "mistralai/Mixtral-8x7B-v0.1"
    experts = 32 * 8 * 3 * 4096 * 14336
    bits4 = footprint(name, **fields).components["weights"]
    bits16 = footprint(name, experts_dtype="bf16", **fields).components["weights"]
    constants = 0.5 + 1 / 64 + 4 / (64 * 256)
    assert bits16 - bits4 == pytest.approx(experts * (2 - constants))


def test_only_bitsandbytes_bases_are_prepared_in_fp32() -> None:
    """PEFT casts the rest of a 4-bit model to fp32, but not that of a GPTQ or AWQ one."""
    assert {n for n in ("nf4", "int8", "gptq-4bit", "awq") if (f := weight_format(n)) and f.prepared_fp32} == {
        "nf4",
        "int8",
    }
    tables = 2 * 32000 * 4096
    prepared, plain = (
        resolve(workload(LLAMA_2_7B, method="qlora", weights_dtype=form), model(LLAMA_2_7B)).special_bytes * tables
        for form in ("nf4", "gptq-4bit")
    )
    assert prepared == 2 * plain


@pytest.mark.parametrize(("length", "kind"), [(8192, "selective"), (65536, "full")])
def test_checkpointing_on_means_the_lightest_that_fits_in_torchtitan(length: int, kind: str) -> None:
    """Selective where that fits the card, else full; the answer says which was taken."""
    asked = workload(
        LLAMA_3_8B, 8, method="pretrain", sharding="fsdp", framework="torchtitan", checkpointing="full", seq_len=length
    )
    found = settled(asked, model(LLAMA_3_8B), Catalogue.load().find_accelerator("H100"))
    assert found.checkpointing == kind
    assert found.assumed[-1].params["value"] == kind
