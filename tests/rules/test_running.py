"""Hardware that cannot run what was asked, whatever its memory: the verdict is no, with a reason and a way round."""

from __future__ import annotations

from typing import Any

import pytest

from rules.advice.advise import advise
from rules.advice.running import blocking, wants_of, way_round
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Note
from rules.policy import default_policy
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, TrainingWorkload

CATALOGUE = Catalogue.load()
POLICY = default_policy()


def _serve(model: str, card: str, count: int = 1, **fields: Any) -> Advice:
    hardware = (Hardware(name=card, count=count),)
    given: dict[str, Any] = {name: Given(value) for name, value in fields.items()}
    return advise(InferenceWorkload(model=ModelRef(name=model), hardware=hardware, **given), CATALOGUE, POLICY)


@pytest.mark.parametrize(
    ("card", "asked", "instead"),
    [
        ("V100", "awq", "gptq"),
        ("V100", "fp8", "gguf:Q8_0"),
        ("T4", "nvfp4", "awq"),
        ("Apple M2 Ultra", "awq", "gguf:Q4_K_M"),
    ],
)
def test_a_stated_format_without_kernels_is_a_no_that_names_another(card: str, asked: str, instead: str) -> None:
    """The outcome is no, the option says so, and the verdict gives the reason and a format that runs there."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", card, weights_format=asked)
    assert (advice.outcome, advice.options[0].outcome) == ("oom", "oom")
    assert advice.verdict.message == "verdict_blocked_instead_fits"
    assert advice.verdict.params["format"] == instead
    reason = advice.verdict.params["reason"]
    assert isinstance(reason, Note)
    assert reason.message.startswith("capability_format")
    assert advice.options[0].blocked == reason
    assert reason not in advice.warnings


def test_what_does_not_run_has_no_speed_capacity_levers_or_limits() -> None:
    """Nothing that depends on running it is claimed."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", "V100", weights_format="awq")
    assert (advice.speed, advice.capacity, advice.plan, advice.headlines.get("time")) == (None, None, None, None)
    assert advice.levers == ()
    assert advice.variants == ()
    assert advice.limits.sequences is None


def test_training_in_arithmetic_that_a_card_lacks_falls_back_to_bf16() -> None:
    """Training in fp8 on an A100 is a no, and bf16 is named."""
    workload = TrainingWorkload(
        model=ModelRef(name="meta-llama/Meta-Llama-3-8B"),
        hardware=(Hardware(name="A100 80GB SXM4"),),
        method=Given("lora"),
        compute_dtype=Given("fp8"),
    )
    advice = advise(workload, CATALOGUE, POLICY)
    assert (advice.outcome, advice.verdict.params["format"]) == ("oom", "bf16")


def test_a_format_that_nobody_stated_gives_way() -> None:
    """ "4 bits" on a V100 is served in a format with kernels there, as an assumption, and fits."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", "V100", weights_format="int4")
    assert advice.outcome == "fits"
    assert {a.field: a.value for a in advice.assumptions}["weights_format"] == "gptq"


def test_a_card_that_current_software_dropped_runs_files_only() -> None:
    """A K80 is refused for training, with hardware that does it named, and runs GGUF files."""
    training = advise(
        TrainingWorkload(
            model=ModelRef(name="TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
            hardware=(Hardware(name="K80"),),
            method=Given("lora"),
        ),
        CATALOGUE,
        POLICY,
    )
    assert (training.outcome, training.verdict.message) == ("oom", "verdict_blocked_take")
    files = _serve("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "K80", weights_format="gguf:Q4_K_M")
    assert files.outcome == "fits"


def test_where_it_may_stand_does_not_block() -> None:
    """A card for racks is judged by what it computes."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", "H100 80GB SXM5", count=8)
    assert advice.options[0].blocked is None
    assert advice.outcome == "fits"


def test_media_models_store_fp8_on_any_card() -> None:
    """Diffusion pipelines keep weights in fp8 and compute in 16 or 32 bits, so age does not block it."""
    advice = _serve("black-forest-labs/FLUX.1-dev", "RTX 3090", weights_format="fp8")
    assert advice.options[0].blocked is None


def test_a_way_round_is_never_blocked_itself() -> None:
    """Whatever the card and the format, what is proposed instead runs there."""
    model = CATALOGUE.find_model("meta-llama/Meta-Llama-3-8B").spec
    for device in CATALOGUE.accelerators:
        for fmt in ("awq", "gptq", "fp8", "nvfp4", "mxfp4", "int8", "nf4", "exl2", "mlx"):
            workload = InferenceWorkload(
                model=ModelRef(name="meta-llama/Meta-Llama-3-8B"), weights_format=Given(fmt), engine=Given("vllm")
            )
            other = way_round(workload, model, device)
            if other is not None:
                assert blocking(device, wants_of(other, model)) is None, (device.name, fmt)
