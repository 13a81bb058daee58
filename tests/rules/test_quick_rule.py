"""The rule of thumb beside the real sum (T2): its figure and the reason that it is near or misleads."""

from __future__ import annotations

from typing import Any

import pytest

from rules.advice.quick_rule import quick_rule
from rules.advice.types import QuickRule
from rules.catalog.catalogue import Catalogue
from rules.memory.law import footprint
from rules.policy import default_policy
from rules.units import GIB
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, TrainingWorkload, Workload

LLAMA = "meta-llama/Llama-2-7b-hf"


def workload(kind: type, hardware: tuple[Hardware, ...] = (), **values: object) -> Workload:
    wrapped: dict[str, Any] = {key: Given(value) for key, value in values.items()}
    made: Workload = kind(model=ModelRef(name="x"), hardware=hardware, **wrapped)
    return made


def rule_for(name: str, asked: Workload) -> QuickRule:
    model = Catalogue.load().find_model(name).spec
    found = quick_rule(asked, model, footprint(asked, model, None), default_policy())
    assert found is not None
    return found


def test_the_figure_is_parameters_times_bytes_times_1_4() -> None:
    """6.74 B parameters in 16 bits with 40 % on top are 17.6 GiB."""
    found = rule_for(LLAMA, workload(InferenceWorkload, engine="transformers", context=2048, batch=1))
    assert found.gib == pytest.approx(6_738_415_616 * 2 * 1.4 / GIB, rel=1e-6)


def test_plain_inference_is_near() -> None:
    """A 7B model at a short context needs about what the rule says."""
    found = rule_for(LLAMA, workload(InferenceWorkload, engine="transformers", context=2048, batch=1))
    assert found.why.message == "quick_rule_near_inference"
    assert 0.75 <= found.real_gib / found.gib <= 1.33


def test_adapters_are_near() -> None:
    """LoRA on short samples needs about what the rule says."""
    found = rule_for(LLAMA, workload(TrainingWorkload, method="lora", micro_batch=1, seq_len=1024))
    assert found.why.message == "quick_rule_near_training"


def test_full_training_misleads_by_its_states() -> None:
    """AdamW's states and gradients make full training several times the rule."""
    asked = workload(
        TrainingWorkload, method="full", weights_dtype="bf16", optimizer="adamw", micro_batch=1, seq_len=2048
    )
    found = rule_for(LLAMA, asked)
    assert found.why.message == "quick_rule_full_training"
    assert found.real_gib > 2.5 * found.gib


def test_a_heavy_cache_is_named() -> None:
    """32 sequences of 4096 tokens of a 7B model with full attention hold 64 GiB of cache."""
    found = rule_for(LLAMA, workload(InferenceWorkload, engine="transformers", context=4096, batch=32))
    assert found.why.message == "quick_rule_kv_cache"


def test_a_small_model_is_mostly_runtime() -> None:
    """A 33 M encoder is small beside the interpreter that runs it."""
    found = rule_for("BAAI/bge-small-en-v1.5", workload(InferenceWorkload, (Hardware(name="cpu"),), context=64))
    assert found.why.message == "quick_rule_runtime"


def test_pictures_are_activations() -> None:
    """SDXL with four pictures is set by the VAE's activations, not by the weights."""
    found = rule_for("stabilityai/stable-diffusion-xl-base-1.0", workload(InferenceWorkload, batch=4))
    assert found.why.message == "quick_rule_activations"


def test_offloaded_weights_make_the_rule_too_high() -> None:
    """Sequential offload leaves no weights on the device, so the rule overstates."""
    asked = workload(InferenceWorkload, offload="sequential_cpu", image_size=512, weights_format="bf16")
    found = rule_for("black-forest-labs/FLUX.1-dev", asked)
    assert found.why.message == "quick_rule_offloaded"


def test_nothing_computed_gives_no_rule() -> None:
    """Without a footprint there is nothing to set beside the rule."""
    model = Catalogue.load().find_model(LLAMA).spec
    assert quick_rule(workload(InferenceWorkload), model, None, default_policy()) is None


def test_split_weights_split_the_rule() -> None:
    """Where FSDP shards the weights over eight cards, the rule's figure is an eighth as well."""
    asked = workload(
        TrainingWorkload, (Hardware(name="H100", count=8),), method="full", weights_dtype="bf16", sharding="fsdp",
        micro_batch=1, seq_len=2048,
    )  # fmt: skip
    found = rule_for(LLAMA, asked)
    assert found.gib < 6_738_415_616 * 2 * 1.4 / GIB / 2
