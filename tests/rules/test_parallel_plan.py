"""Parallel plans: what words and stated degrees mean, and which plans cannot run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.memory.parallel import parallel_plan, plan_problems
from tests.rules.training_workloads import LLAMA_3_8B, model


@pytest.mark.parametrize(
    ("words", "devices", "expected"),
    [
        ("none", 1, {"dp": 1, "zero_stage": 0, "state_degree": 1, "sharded": False}),
        ("ddp", 8, {"dp": 8, "replicas": True, "sharded": False, "state_degree": 1}),
        ("zero1", 8, {"zero_stage": 1, "state_degree": 8, "grad_degree": 1, "weight_degree": 1}),
        ("zero2", 8, {"zero_stage": 2, "grad_degree": 8, "weight_degree": 1}),
        ("zero3", 8, {"zero_stage": 3, "weight_degree": 8, "fsdp": False}),
        ("fsdp", 4, {"zero_stage": 3, "weight_degree": 4, "fsdp": True}),
        ("zero1+tp2+pp4", 8, {"tp": 2, "pp": 4, "dp": 1, "zero_stage": 1, "state_degree": 1}),
        ("fsdp4+tp2", 8, {"tp": 2, "dp": 4, "weight_degree": 4}),
        ("fsdp8+tp8+pp8", 512, {"tp": 8, "pp": 8, "dp": 8, "weight_degree": 8}),
        ("fsdp8+cp4", 8, {"cp": 4, "dp": 2, "weight_degree": 8, "sequence_split": 4}),
        ("zero2+sp4", 8, {"sp": 4, "dp": 8, "state_degree": 8, "sequence_split": 4}),
        ("ep8+zero1", 8, {"ep": 8, "dp": 8, "state_degree": 8, "expert_state_degree": 1}),
        ("pp2+ep4+zero1", 8, {"pp": 2, "ep": 4, "dp": 4, "expert_state_degree": 1}),
        ("tp2+cp4+zero1", 8, {"tp": 2, "cp": 4, "dp": 1, "state_degree": 4}),
        ("device_map4", None, {"device_map": True, "devices": 4, "sharded": True}),
        ("fsdp2", 8, {"weight_degree": 8}),  # the second version of FSDP, not two devices
        ("tp8", None, {"tp": 8, "devices": 8}),
    ],
)
def test_words_mean_degrees(words: str, devices: int | None, expected: dict[str, object]) -> None:
    """Each word of a plan sets the degrees that people mean by it."""
    plan = parallel_plan(words, devices)
    assert {name: getattr(plan, name) for name in expected} == expected


def test_stated_degrees_win_over_words() -> None:
    """A field that somebody filled in beats the text beside it."""
    assert parallel_plan("tp2", 16, tp=4, pp=2).tp == 4


def test_default_stage_is_for_data_parallel_ranks_that_name_none() -> None:
    """A framework's own optimizer sharding applies where the words say nothing else."""
    assert parallel_plan("tp4+dp2", 8, default_stage=1).zero_stage == 1
    assert parallel_plan("ddp", 8, default_stage=1).zero_stage == 0
    assert parallel_plan("tp8", 8, default_stage=1).zero_stage == 0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=30) | st.from_regex(r"((zero|fsdp|tp|pp|ep|cp|dp|sp)\d{0,9}\+?){1,5}", fullmatch=True), st.integers(-9, 10**9))  # fmt: skip  # noqa: E501
def test_any_words_give_a_consistent_plan(words: str, devices: int) -> None:
    """Nothing raises, degrees are at least one, and the devices hold the whole plan."""
    plan = parallel_plan(words, devices)
    degrees = (plan.dp, plan.tp, plan.pp, plan.cp, plan.ep, plan.sp, plan.state_degree, plan.expert_state_degree)
    assert all(degree >= 1 for degree in degrees)
    assert plan.devices >= plan.dp * plan.tp * plan.pp * plan.cp


def test_problems_name_what_does_not_divide() -> None:
    """Heads over tensor ranks and layers over stages must come out even; experts need a model that has some."""
    spec = model(LLAMA_3_8B)
    assert plan_problems(parallel_plan("tp8"), spec) == ()
    assert [n.params["part"] for n in plan_problems(parallel_plan("tp3"), spec)] == ["heads", "kv_heads"]
    assert [n.message for n in plan_problems(parallel_plan("tp16"), spec)] == ["kv_heads_replicated"]
    assert [n.message for n in plan_problems(parallel_plan("pp64"), spec)] == ["more_stages_than_layers"]
    assert [n.message for n in plan_problems(parallel_plan("ep4", 4), spec)] == ["expert_parallel_without_experts"]
