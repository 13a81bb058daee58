"""Laws that the training memory of any text model keeps, tried on drawn workloads."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.training import training_footprint
from rules.workload import Given, Hardware, ModelRef, TrainingWorkload
from tests.rules.training_workloads import GIB, LLAMA_3_8B, footprint, model, workload

MODELS = st.sampled_from(
    [
        LLAMA_3_8B,
        "Qwen/Qwen2.5-0.5B",
        "mistralai/Mixtral-8x7B-v0.1",
        "deepseek-ai/DeepSeek-V3",
        "google/gemma-2-2b",
        "gpt2",
        "google-bert/bert-large-uncased",
        "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "google-t5/t5-large",
    ]
)
FRAMEWORKS = (
    None, "HF Trainer", "HF Trainer + DeepSpeed", "HF Trainer + Liger", "torchtune", "torchtitan", "litgpt", "unsloth",
    "Megatron-LM", "axolotl", "transformers (plain loop)",
)  # fmt: skip
RUNS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["full", "pretrain", "lora", "dora", "qlora"]),
        "optimizer": st.sampled_from([None, "adamw", "adamw_8bit", "paged_adamw_8bit", "adafactor", "lion", "muon"]),
        "micro_batch": st.sampled_from([1, 2, 8]),
        "seq_len": st.sampled_from([512, 2048, 16384]),
        "checkpointing": st.sampled_from(["full", "selective", "none"]),
        "attention": st.sampled_from(["flash", "sdpa", "eager"]),
        "fused_loss": st.sampled_from([None, True, False]),
        "mixed_precision": st.sampled_from([None, True, False]),
        "framework": st.sampled_from(FRAMEWORKS),
        "grad_accum": st.sampled_from([1, 4]),
        "compile": st.sampled_from([None, True]),
    }
)
SHARDINGS = st.sampled_from(["none", "ddp", "zero1", "zero2", "zero3", "fsdp", "tp2", "pp2", "tp2+pp2+zero1", "cp2"])
laws = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


def peak(name: str, devices: int, fields: dict[str, Any]) -> float:
    return footprint(name, devices, **fields).allocated.expected


@laws
@given(MODELS, RUNS, SHARDINGS)
def test_longer_sequences_and_larger_batches_never_take_less(name: str, run: dict[str, Any], sharding: str) -> None:
    """Peak memory is monotone in context and in micro-batch, for every figure that people read."""
    run = {**run, "sharding": sharding}
    small = footprint(name, 8, **run)
    for more in ({"seq_len": 2 * run["seq_len"]}, {"micro_batch": 2 * run["micro_batch"]}):
        large = footprint(name, 8, **{**run, **more})
        for figure in ("allocated", "reserved", "device"):
            assert getattr(large, figure).expected >= getattr(small, figure).expected * (1 - 1e-9)


@laws
@given(RUNS)
def test_more_parameters_never_take_less(run: dict[str, Any]) -> None:
    """Within one family a larger model needs more (but for eager scores, which go by heads)."""
    sizes = ["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-1.5B", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-32B", "Qwen/Qwen2.5-72B"]
    needs = [peak(name, 1, {**run, "attention": "flash"}) for name in sizes]
    assert needs == sorted(needs)


@laws
@given(MODELS, RUNS, st.sampled_from(["zero1", "zero2", "zero3", "fsdp", "tp2", "tp4", "pp2", "ep2", "cp2"]))
def test_sharding_never_raises_weights_a_device(name: str, run: dict[str, Any], sharding: str) -> None:
    """No way of splitting makes a device hold more weights than one device alone."""
    alone = footprint(name, 1, **run).components["weights"]
    assert footprint(name, 4, **{**run, "sharding": sharding}).components["weights"] <= alone * (1 + 1e-9)


@laws
@given(MODELS, RUNS, st.sampled_from(["nf4", "int8", "fp8", "gptq-4bit", "awq", "nvfp4"]))
def test_quantising_never_raises_weights(name: str, run: dict[str, Any], stored: str) -> None:
    """A quantised base is smaller, where nothing is cast to fp32 to prepare it."""
    fields = {**run, "method": "lora", "framework": "torchtune"}
    plain = footprint(name, 1, **{**fields, "weights_dtype": "bf16"}).components["weights"]
    assert footprint(name, 1, **{**fields, "weights_dtype": stored}).components["weights"] <= plain


@laws
@given(MODELS, RUNS, SHARDINGS)
def test_checkpointing_never_raises_the_peak(name: str, run: dict[str, Any], sharding: str) -> None:
    """Neither full nor selective checkpointing takes more than keeping everything."""
    run = {**run, "sharding": sharding}
    kept = peak(name, 8, {**run, "checkpointing": "none"})
    for kind in ("full", "selective"):
        assert peak(name, 8, {**run, "checkpointing": kind}) <= kept * (1 + 1e-9)


@laws
@given(MODELS, RUNS, SHARDINGS, st.sampled_from(["optimizer_cpu", "params_cpu+optimizer_cpu", "activations_cpu"]))
def test_offload_never_raises_device_memory(name: str, run: dict[str, Any], sharding: str, offload: str) -> None:
    """What moves to the host leaves the device, and shows as host memory."""
    run = {**run, "sharding": sharding}
    without, moved = footprint(name, 8, **run), footprint(name, 8, **run, offload=offload)
    assert moved.allocated.expected <= without.allocated.expected * (1 + 1e-9)
    assert moved.cpu_bytes >= without.cpu_bytes


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10**12), st.floats(), st.text(max_size=12),
    st.sampled_from(["zero1+tp2+pp4", "fsdp4+tp2", "zero2+sp4", "device_map4", "fsdp8+tp8+pp8", "ep8+zero1", "nf4",
                     "all_linear", "full", "none", "lion_8bit", "torch 2.1, bitsandbytes 0.41.999999999", "cpu"]),
    st.tuples(st.text(max_size=8), st.none()), st.just([]),
)  # fmt: skip
NOT_GIVEN = frozenset(("model", "kind", "hardware", "domain", "traffic", "constraints"))
FIELDS = [field for field in TrainingWorkload.__dataclass_fields__ if field not in NOT_GIVEN]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(MODELS, st.dictionaries(st.sampled_from(FIELDS), ODD, max_size=14), st.integers(-3, 10**7))
def test_no_combination_of_values_raises_or_breaks_the_sum(name: str, values: dict[str, Any], devices: int) -> None:
    """Absurd values give a finite footprint whose parts add up, or say that they are not supported."""
    asked = TrainingWorkload(
        model=ModelRef(name=name),
        hardware=(Hardware(name="?", count=devices),),
        **{field: Given(value) for field, value in values.items()},
    )
    try:
        found: Footprint = training_footprint(asked, model(name), None)
    except UnsupportedWorkload:
        return
    total = found.allocated.expected
    assert 0 <= total < float("inf")
    assert found.allocated.low <= total <= found.allocated.high
    assert total <= found.reserved.expected <= found.device.expected
    assert sum(part.bytes for part in found.parts) == pytest.approx(total, rel=1e-6, abs=1)
    assert all(part.bytes > 0 for part in found.parts)


def test_every_text_model_of_the_catalogue_trains_with_defaults() -> None:
    """Nothing but a name gives an answer for every language model, encoder and sequence model."""
    for spec in Catalogue.load().models:
        if spec.domain in ("llm", "encoder", "seq2seq"):
            found = training_footprint(TrainingWorkload(model=ModelRef(name=spec.hf_id)), spec, None)
            assert found.allocated.expected > spec.params_total


def test_one_call_takes_less_than_a_millisecond() -> None:
    """Ranking thousands of candidates stays instant."""
    asked, spec = workload(LLAMA_3_8B, 8, method="full", sharding="tp2+pp2+zero1"), model(LLAMA_3_8B)
    training_footprint(asked, spec, None)
    best = min(_timed(asked, spec) for _ in range(5))
    assert best < 1e-3


def _timed(asked: TrainingWorkload, spec: Any) -> float:
    start = time.perf_counter()
    for _ in range(20):
        training_footprint(asked, spec, None)
    return (time.perf_counter() - start) / 20


def test_ranges_hold_the_expected_figure_and_widen_where_states_are_sharded() -> None:
    """Published sharded runs scatter more than single devices."""
    alone, many = footprint(method="full"), footprint(devices=8, method="full", sharding="zero3")
    for found in (alone, many):
        assert found.allocated.low < found.allocated.expected < found.allocated.high
    width = [(f.device.high - f.device.low) / f.device.expected for f in (alone, many)]
    assert width[1] > width[0]
    assert alone.allocated.expected > 50 * GIB
