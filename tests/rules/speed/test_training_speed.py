"""The law of training speed: what must hold for every run, and what the counts of operations say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.memory.errors import UnsupportedWorkload
from rules.speed.training.law import run_of, training_speed
from rules.speed.types import TrainingSpeed
from rules.workload import Given, Hardware, ModelRef, TrainingWorkload

MODELS = ("meta-llama/Meta-Llama-3-8B", "Qwen/Qwen2.5-0.5B", "Qwen/Qwen3-30B-A3B", "meta-llama/Llama-2-13b-hf")
DEVICES = ("A100 80GB SXM4", "H100 80GB SXM5", "B200", "RTX 4090", "RTX 3090", "L40S", "T4")
FRAMEWORKS = (None, "torchtune", "torchtitan", "Megatron-LM", "unsloth")
runs = settings(max_examples=40, deadline=None)


def workload(name: str, devices: int = 1, **fields: Any) -> TrainingWorkload:
    """A workload with plain values for its fields; None leaves a field unsaid."""
    told = {key: Given(value) for key, value in fields.items() if value is not None}
    hardware = (Hardware(name="any", count=devices),)
    return replace(TrainingWorkload(model=ModelRef(name=name), hardware=hardware), **told)


def speed(name: str, device: str, devices: int = 1, **fields: Any) -> TrainingSpeed:
    """The speed of such a workload on a device of the catalogue."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model(name).spec
    return training_speed(workload(name, devices, **fields), spec, catalogue.find_accelerator(device), devices)


def rate(name: str, device: str, devices: int = 1, **fields: Any) -> float:
    """Expected tokens a second of one device."""
    return speed(name, device, devices, **fields).tokens_per_s_per_device.expected


any_run = {
    "name": st.sampled_from(MODELS),
    "device": st.sampled_from(DEVICES),
    "method": st.sampled_from(("full", "lora", "qlora", "pretrain")),
    "framework": st.sampled_from(FRAMEWORKS),
    "seq_len": st.sampled_from((128, 512, 2048, 8192)),
}


@seed(4)
@runs
@given(batch=st.integers(1, 16), more=st.integers(1, 16), packed=st.booleans(), **any_run)
def test_more_tokens_a_pass_are_never_slower_a_token(
    name: str, device: str, batch: int, more: int, packed: bool, **rest: Any
) -> None:
    """Adding sequences to a micro-batch of packed samples does not lower tokens a second."""
    few = rate(name, device, micro_batch=batch, packed=True, checkpointing="full", **rest)
    many = rate(name, device, micro_batch=batch + more, packed=True, checkpointing="full", **rest)
    assert many >= few * (1 - 1e-9)


@seed(4)
@runs
@given(devices=st.sampled_from((1, 8)), **any_run)
def test_checkpointing_is_never_faster(name: str, device: str, devices: int, **rest: Any) -> None:
    """Computing activations again costs time, and a part of it costs less than all of it."""
    none, part, all_ = (
        rate(name, device, devices, micro_batch=2, packed=True, checkpointing=kind, **rest)
        for kind in ("none", "selective", "full")
    )
    assert none >= part >= all_


@seed(4)
@runs
@given(devices=st.sampled_from((1, 2, 4)), sharding=st.sampled_from(("ddp", "zero1", "zero2", "fsdp")), **any_run)
def test_more_devices_never_lower_the_total(name: str, device: str, devices: int, sharding: str, **rest: Any) -> None:
    """Twice the devices of one node, at a batch of 16,384 tokens a device over NVLink, train no slower together."""
    device = device if device in ("A100 80GB SXM4", "H100 80GB SXM5", "B200") else "A100 80GB SXM4"
    rest["seq_len"] = 2048
    told: dict[str, Any] = {"micro_batch": 8, "packed": True, "checkpointing": "full", "sharding": sharding, **rest}
    assert rate(name, device, 2 * devices, **told) * 2 >= rate(name, device, devices, **told)


@seed(4)
@runs
@given(longer=st.integers(2, 8), **any_run)
def test_longer_sequences_are_never_faster_a_token(name: str, device: str, longer: int, **rest: Any) -> None:
    """At the same tokens a pass, longer sequences cost at least as much: attention grows with their length."""
    length = rest.pop("seq_len")
    told: dict[str, Any] = {"packed": True, "checkpointing": "full", **rest}
    short = rate(name, device, micro_batch=longer, seq_len=length, **told)
    long = rate(name, device, micro_batch=1, seq_len=length * longer, **told)
    assert long <= short * (1 + 1e-9)


def test_a_faster_card_trains_faster() -> None:
    """H100 is faster than A100, and A100 than T4, on the same run."""
    told: dict[str, Any] = {
        "method": "lora",
        "micro_batch": 4,
        "seq_len": 2048,
        "packed": True,
        "checkpointing": "full",
    }
    rates = [rate(MODELS[0], card, **told) for card in ("H100 80GB SXM5", "A100 80GB SXM4", "T4")]
    assert rates[0] > 1.3 * rates[1] > 3 * rates[2]


def test_operations_are_counted_by_method() -> None:
    """A token costs 6 operations a trained weight, 4 a frozen one, and 2 more where it is computed again."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model("meta-llama/Meta-Llama-3-8B").spec
    card = catalogue.find_accelerator("A100 80GB SXM4")

    def dense(**fields: Any) -> float:
        told = workload(spec.hf_id, seq_len=1024, micro_batch=1, packed=True, **fields)
        return run_of(told, spec, card)[0].dense_ops / 1024

    head = spec.vocab * spec.hidden  # type: ignore[operator]
    blocks = spec.params_total - 2 * head
    assert dense(method="full", checkpointing="none") == pytest.approx(6 * (blocks + head), rel=1e-3)
    assert dense(method="full", checkpointing="full") == pytest.approx(8 * blocks + 6 * head, rel=1e-3)
    lora = dense(method="lora", lora_rank=1, checkpointing="none")
    assert lora == pytest.approx(4 * (blocks + head), rel=2e-3)


def test_attention_of_a_causal_model_counts_half_of_the_square() -> None:
    """Attention without recomputation costs 12 L h s a token, half of it behind a causal mask."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model("meta-llama/Llama-2-13b-hf").spec
    card = catalogue.find_accelerator("A100 80GB SXM4")
    told = workload(spec.hf_id, method="full", seq_len=4096, micro_batch=1, packed=True, checkpointing="none")
    work, _ = run_of(told, spec, card)
    assert work.attention_ops / 4096 == pytest.approx(12 * 40 * 5120 * 4096 / 2)


def test_a_mixture_costs_its_active_parameters() -> None:
    """Experts that a token does not visit cost no operations."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model("Qwen/Qwen3-30B-A3B").spec
    card = catalogue.find_accelerator("H100 80GB SXM5")
    told = workload(spec.hf_id, method="full", seq_len=2048, micro_batch=1, packed=True, checkpointing="none")
    work, _ = run_of(told, spec, card)
    per_weight = (work.dense_ops + work.expert_ops) / 2048 / spec.params_active
    assert 5.0 < per_weight < 6.1


def test_a_data_set_takes_its_tokens_over_the_rate() -> None:
    """50,000 samples of 1,500 tokens are 75 million tokens; three epochs take three times one."""
    told: dict[str, Any] = {
        "method": "lora",
        "seq_len": 1500,
        "micro_batch": 2,
        "packed": True,
        "dataset_samples": 50_000.0,
    }
    one = speed(MODELS[0], "RTX 4090", epochs=1.0, **told)
    three = speed(MODELS[0], "RTX 4090", epochs=3.0, **told)
    assert one.total_s is not None
    assert three.total_s is not None
    assert one.epoch_s == one.total_s
    assert one.total_s.expected == pytest.approx(75e6 / one.tokens_per_s_per_device.expected)
    assert three.total_s.expected == pytest.approx(3 * one.total_s.expected)


def test_without_a_data_set_no_time_is_given() -> None:
    """Nobody said how much data there is, so no duration of the run is made up."""
    told = speed(MODELS[0], "A100 80GB SXM4", method="lora")
    assert told.total_s is None
    assert told.epoch_s is None


def test_figures_of_one_run_agree() -> None:
    """Samples a second times step time is the global batch, and MFU follows from the useful operations."""
    told = speed(MODELS[0], "H100 80GB SXM5", 8, method="full", micro_batch=2, grad_accum=4, seq_len=4096, packed=True)
    assert told.step_s
    assert told.samples_per_s
    assert told.mfu
    assert told.step_s.expected * told.samples_per_s.expected == pytest.approx(2 * 4 * 8)
    assert told.host_tokens_per_s == pytest.approx(8 * told.tokens_per_s_per_device.expected)
    per_token = 6 * 7.5e9 + 12 * 32 * 4096 * 4096
    assert told.mfu.expected == pytest.approx(told.tokens_per_s_per_device.expected * per_token / 989e12, rel=0.02)


def test_two_cards_over_pcie_lose_to_sharding() -> None:
    """FSDP of two RTX 3090 without a fast link costs part of the speed of one; NVLink costs less."""
    told: dict[str, Any] = {
        "method": "full",
        "micro_batch": 1,
        "seq_len": 1024,
        "packed": True,
        "checkpointing": "full",
    }
    loss = [
        rate(MODELS[0], card, 2, sharding="fsdp", **told) / rate(MODELS[0], card, **told)
        for card in ("RTX 4090", "H100 80GB SXM5")
    ]
    assert loss[0] < 0.9 < loss[1]


def test_a_cpu_is_said_to_be_assumed() -> None:
    """Training on a CPU is answered from its peaks, slower than a GPU, with a wide range and a note."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model("google-bert/bert-base-uncased").spec
    told = workload(spec.hf_id, method="full", micro_batch=8, seq_len=128, dataset_samples=10_000.0)
    cpu = training_speed(told, spec, catalogue.find_cpu("Xeon Platinum 8480+"), 1)
    gpu = training_speed(told, spec, catalogue.find_accelerator("A100 80GB SXM4"), 1)
    assert cpu.source == "formula"
    assert "speed_cpu_training_assumed" in {note.message for note in cpu.notes}
    assert cpu.tokens_per_s_per_device.high < gpu.tokens_per_s_per_device.expected
    assert cpu.total_s is not None
    assert cpu.total_s.high >= 4 * cpu.total_s.low


def test_models_without_tokens_are_refused() -> None:
    """No law of tokens a second is stretched over a diffusion model."""
    catalogue = Catalogue.load()
    spec = catalogue.find_model("stabilityai/stable-diffusion-xl-base-1.0").spec
    with pytest.raises(UnsupportedWorkload) as refused:
        training_speed(workload(spec.hf_id), spec, catalogue.find_accelerator("A100 80GB SXM4"), 1)
    assert refused.value.message_id == "speed_training_not_tokens"
