"""One verdict for every line of an answer: options, levers, limits and variants agree with the headline."""

from __future__ import annotations

from typing import Any

import pytest

from rules.advice.advise import advise
from rules.advice.judge import judge, outcome_of
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue
from rules.policy import default_policy
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, Traffic, TrainingWorkload

CATALOGUE = Catalogue.load()
POLICY = default_policy()
_WORSE = ("fits", "tight", "oom")


def _serve(model: str, card: str, count: int = 1, users: int | None = None, **fields: Any) -> Advice:
    given: dict[str, Any] = {name: Given(value) for name, value in fields.items()}
    hardware = (Hardware(name=card, count=count),)
    workload = InferenceWorkload(model=ModelRef(name=model), hardware=hardware, traffic=Traffic(users=users), **given)
    return advise(workload, CATALOGUE, POLICY)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
@pytest.mark.parametrize("users", [4, 20, 60])
def test_saving_memory_never_worsens_the_verdict(engine: str, users: int) -> None:
    """No lever on a set-up is called worse than the set-up itself, and fewer at once is not either."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", "RTX 4090", users=users, engine=engine, context=8192)
    now = _WORSE.index(advice.outcome)
    assert all(_WORSE.index(lever.outcome) <= now for lever in advice.levers)
    fewer = [v for v in advice.variants if v.label.message == "variant_active_users"]
    assert fewer
    assert all(_WORSE.index(v.outcome or "fits") <= now for v in fewer)


def test_one_more_than_the_limit_is_not_called_fitting() -> None:
    """At the limit of sequences everything fits at the asked length; one more is tight or no."""
    model = CATALOGUE.find_model("meta-llama/Meta-Llama-3-8B").spec
    device = CATALOGUE.find_accelerator("RTX 4090")
    advice = _serve("meta-llama/Meta-Llama-3-8B", "RTX 4090", engine="vllm", context=8192, weights_format="bf16")
    most = advice.limits.sequences
    assert most is not None
    assert isinstance(advice.workload, InferenceWorkload)
    found = []
    for at_once in (most, most + 1):
        asked = _serve(
            "meta-llama/Meta-Llama-3-8B",
            "RTX 4090",
            engine="vllm",
            context=8192,
            weights_format="bf16",
            concurrency=at_once,
        )
        judged = judge(asked.workload, model, device, 1, POLICY)
        assert asked.outcome == outcome_of(judged, model, device, POLICY)
        found.append(judged.cache_is_short)
    assert found == [False, True]


def test_a_tight_variant_says_how_many_the_cache_holds() -> None:
    """Eight at once on a pool that holds fewer: the figure is below the card, and the note says why it is tight."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", "RTX 4090", engine="vllm", context=8192, weights_format="bf16")
    label = next(v for v in advice.variants if v.label.message == "variant_concurrency")
    assert (label.outcome, label.note and label.note.params) == ("tight", {"holds": advice.limits.sequences, "of": 8})


def test_a_variant_that_changes_nothing_is_left_out() -> None:
    """Every variant moves the figure of the headline."""
    for card in ("RTX 4090", "A100 80GB SXM4"):
        advice = _serve("meta-llama/Meta-Llama-3-8B", card)
        now = advice.options[0].need.expected_gib
        assert all(abs(v.need_gib - now) >= 0.05 for v in advice.variants)


def test_what_does_not_fit_has_neither_speed_nor_capacity_nor_a_time() -> None:
    """A 70B model on one RTX 4090 claims no tokens a second, no capacity and no days of training."""
    serving = _serve("meta-llama/Meta-Llama-3-70B", "RTX 4090", weights_format="bf16", users=10)
    training = advise(
        TrainingWorkload(
            model=ModelRef(name="meta-llama/Meta-Llama-3-70B"),
            hardware=(Hardware(name="RTX 4090"),),
            method=Given("full"),
            dataset_tokens=Given(1e9),
        ),
        CATALOGUE,
        POLICY,
    )
    for advice in (serving, training):
        assert advice.outcome == "oom"
        assert (advice.speed, advice.capacity, advice.options[0].speed) == (None, None, None)
        assert not advice.headlines.keys() & {"time", "load", "capacity", "binds"}


def test_doubt_is_said_where_the_figure_is_below_the_limit() -> None:
    """Need below usable memory, called no by its doubt: the verdict says that it may not fit."""
    advice = _serve("black-forest-labs/FLUX.1-dev", "P40", weights_format="fp8")
    params = advice.verdict.params
    assert (advice.outcome, advice.verdict.message) == ("oom", "verdict_stated_oom_likely")
    assert float(params["need_gib"]) <= float(params["usable_gib"]) < float(params["high_gib"])  # type: ignore[arg-type]
    assert advice.limits.micro_batch is None


def test_a_quantised_denoiser_is_not_offered_again() -> None:
    """With weights in 8 bits already, what is left to shrink is the text encoder."""
    ids = {lever.id for lever in _serve("black-forest-labs/FLUX.1-dev", "P40", weights_format="fp8").levers}
    assert "text_encoder_8_bit" in ids
    assert "denoiser_8_bit" not in ids
