"""The advice: verdicts, options per tier, levers and limits that agree with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.advice.advise import advise
from rules.advice.placement import tensor_parallel_degree
from rules.advice.registry import registered
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue, OwnedHost
from rules.catalog.errors import UnknownName
from rules.memory.footprint import Note
from rules.policy import default_policy, policy_from
from rules.workload import (
    Constraints,
    Given,
    Hardware,
    InferenceWorkload,
    ModelRef,
    TrainingWorkload,
)

CATALOGUE = Catalogue.load()
POLICY = default_policy()


def _given(**fields: Any) -> dict[str, Any]:
    return {name: Given(value) for name, value in fields.items()}


def _train(model: str | float, hardware: tuple[Hardware, ...] = (), **fields: Any) -> Advice:
    ref = ModelRef(name=model) if isinstance(model, str) else ModelRef(params_b=model)
    return advise(TrainingWorkload(model=ref, hardware=hardware, **_given(**fields)), CATALOGUE, POLICY)


def _serve(model: str, hardware: tuple[Hardware, ...] = (), **fields: Any) -> Advice:
    workload = InferenceWorkload(model=ModelRef(name=model), hardware=hardware, **_given(**fields))
    return advise(workload, CATALOGUE, POLICY)


def test_a_stated_card_that_fits_comes_first_with_room_to_spare() -> None:
    """The first option is the hardware that was asked about, and its headroom is usable memory less the need."""
    advice = _train(13.0, (Hardware(name="RTX 4090"),), method="qlora")
    first = advice.options[0]
    assert (first.hardware, advice.outcome) == ("RTX 4090", "fits")
    assert first.headroom_gib == pytest.approx(first.usable_gib - first.need.expected_gib)


def test_parts_add_up_to_the_allocated_peak() -> None:
    """The breakdown is the whole of the allocated figure."""
    plan = _train("meta-llama/Meta-Llama-3-8B", (Hardware(name="A100 80GB SXM4"),), method="lora").plan
    assert plan is not None
    assert sum(part.gib for part in plan.parts) == pytest.approx(plan.allocated.expected_gib, rel=0.01)
    assert max(plan.phases_gib.values()) == pytest.approx(plan.allocated.expected_gib, rel=0.01)


def test_without_hardware_each_tier_is_offered_and_all_offers_fit() -> None:
    """Nothing that does not fit is proposed, and consumer, workstation and data-centre cards are there (T5)."""
    advice = _train(13.0, method="qlora")
    assert {"consumer", "workstation", "enterprise"} <= {option.tier for option in advice.options}
    assert all(option.outcome == "fits" for option in advice.options)
    assert len(advice.options) <= POLICY.candidates.options_shown


def test_levers_save_what_they_say() -> None:
    """Pulling a lever by hand gives the saving that the advice states."""
    card = (Hardware(name="RTX 3090"),)
    advice = _train("meta-llama/Meta-Llama-3-8B", card, method="lora", micro_batch=4, seq_len=4096)
    lever = next(lever for lever in advice.levers if lever.id == "fused_loss")
    pulled = _train("meta-llama/Meta-Llama-3-8B", card, method="lora", micro_batch=4, seq_len=4096, fused_loss=True)
    saved = advice.options[0].need.expected_gib - pulled.options[0].need.expected_gib
    assert lever.saves_gib == pytest.approx(saved)
    assert [lever.harm for lever in advice.levers] == sorted(lever.harm for lever in advice.levers)


def test_limits_are_the_edge() -> None:
    """The largest micro-batch fits and one more does not (T6)."""
    card = (Hardware(name="RTX 4090"),)
    most = _train(13.0, card, method="qlora").limits.micro_batch
    assert most is not None
    at_most = _train(13.0, card, method="qlora", micro_batch=most)
    beyond = _train(13.0, card, method="qlora", micro_batch=most + 1)
    assert at_most.options[0].headroom_gib >= 0
    assert beyond.options[0].headroom_gib < 0


def test_full_training_beyond_one_card_names_the_sharding() -> None:
    """Eight cards share a full fine-tune by FSDP, and the rule T3 says so."""
    advice = _train("meta-llama/Llama-2-7b-hf", (Hardware(name="A100 80GB SXM4", count=8),), method="full")
    assert advice.plan is not None
    assert advice.plan.parallelism == Note("plan_sharded", {"kind": "FSDP", "count": 8})
    assert "training.parameters_exceed_card" in {fired.rule for fired in advice.fired}


def test_heads_decide_the_tensor_parallel_degree() -> None:
    """64 heads do not divide over 3 devices, so the layers are split instead."""
    model = CATALOGUE.find_model("meta-llama/Meta-Llama-3-70B").spec
    assert [tensor_parallel_degree(model, n) for n in (1, 2, 3, 4, 8)] == [1, 2, 1, 4, 8]


def test_many_sequences_that_load_but_lack_cache_are_tight_with_tokens_each() -> None:
    """A model that loads with too little cache is called tight and says how many tokens each sequence gets."""
    advice = _serve(
        "meta-llama/Meta-Llama-3-70B",
        (Hardware(name="RTX 4090", count=2),),
        weights_format="int4",
        context=8192,
        concurrency=20,
    )
    assert (advice.outcome, advice.verdict.message) == ("tight", "verdict_tight_fewer_tokens")
    assert 700 <= advice.verdict.params["tokens_each"] <= 1300  # type: ignore[operator]


def test_cpu_is_offered_for_a_small_model_at_low_traffic_and_not_at_high() -> None:
    """A CPU serves a small encoder (I1), and no CPU is offered for hundreds of sequences at once (I2)."""
    low = _serve("Qwen/Qwen2.5-3B-Instruct")
    high = _serve("Qwen/Qwen2.5-3B-Instruct", concurrency=200)
    assert any(option.kind == "cpu" for option in low.options)
    assert not any(option.kind == "cpu" for option in high.options)


def test_cpu_only_names_the_instruction_set() -> None:
    """On a CPU the answer says what its vector units mean (I9)."""
    workload = InferenceWorkload(model=ModelRef(name="bge-large"), constraints=Constraints(cpu_only=True))
    advice = advise(workload, CATALOGUE, POLICY)
    assert advice.outcome == "cpu"
    assert any(reason.requirement == "I9" for reason in advice.options[0].reasons)


def test_owned_hosts_come_first() -> None:
    """A team's own host that holds the run is proposed before anything to buy or rent."""
    catalogue = CATALOGUE.with_overrides(owned=(OwnedHost(host="lab-02", gpu="RTX 3090", n_gpus=2),))
    workload = TrainingWorkload(model=ModelRef(params_b=13.0), method=Given("qlora"))
    first = advise(workload, catalogue, POLICY).options[0]
    assert (first.kind, first.hardware, first.count) == ("own", "lab-02 (RTX 3090)", 1)


def test_the_plan_on_a_cpu_counts_host_memory() -> None:
    """A language model on a CPU needs at least its weights there, in the plan and beside the quick rule."""
    workload = InferenceWorkload(model=ModelRef(name="llama 3.2 3b"), constraints=Constraints(cpu_only=True))
    advice = advise(workload, CATALOGUE, POLICY)
    assert advice.plan is not None
    assert advice.quick_rule is not None
    weights_gib = max(part.gib for part in advice.plan.parts if part.part == "weights")
    assert advice.plan.shown_by_nvidia_smi.expected_gib >= weights_gib
    assert advice.quick_rule.real_gib >= weights_gib


def test_of_a_card_known_by_its_memory_alone_nothing_else_is_claimed() -> None:
    """A "12 GB card" has no tier, no bandwidth and no name to recommend: only what its memory tells is said."""
    card = (Hardware(name="12 GB GPU", memory_gib=12),)
    model = ModelRef(name="mistral 7b")
    training = advise(TrainingWorkload(model=model, hardware=card, method=Given("qlora")), CATALOGUE, POLICY)
    serving = advise(
        InferenceWorkload(model=model, hardware=card, weights_format=Given("gguf:Q4_K_M")), CATALOGUE, POLICY
    )
    for advice in (training, serving):
        assert "12 GB GPU" not in [note.params.get("device") for note in advice.warnings]


def test_classical_models_get_a_cpu() -> None:
    """Gradient-boosted trees need no GPU."""
    workload = TrainingWorkload(model=ModelRef(name="xgboost"), domain="classical")
    assert advise(workload, CATALOGUE, POLICY).outcome == "cpu"


def test_a_card_without_bf16_is_rewritten_and_said() -> None:
    """On a T4 bf16 becomes fp16, and the answer says so."""
    advice = _train("TinyLlama/TinyLlama-1.1B-Chat-v1.0", (Hardware(name="T4"),), method="lora")
    assert any(note.message.startswith("capability_bf16") for note in advice.warnings)


def test_unknown_names_come_with_suggestions() -> None:
    """A name that nothing resembles raises, and a misspelt card suggests the right one."""
    with pytest.raises(UnknownName):
        _serve("zzzzzz-nothing-like-it")


def test_rule_ids_are_unique_and_name_a_requirement() -> None:
    """Every rule has its own id and cites a requirement of the domain."""
    rules = registered()
    assert len({rule.id for rule in rules}) == len(rules)
    assert all(rule.requirement[0] in "TIC" and rule.requirement[1:].isdigit() for rule in rules)


def test_a_stricter_policy_never_makes_a_verdict_better() -> None:
    """Lowering the share at which a plan counts as tight cannot turn tight into fits."""
    strict = policy_from({"fit": {"tight_above_share": 0.5, "fails_above_share": 0.6}}, POLICY)
    order = {"fits": 0, "tight": 1, "oom": 2}
    for card in ("RTX 4060 Ti 16GB", "RTX 3090", "RTX A6000"):
        workload = TrainingWorkload(
            model=ModelRef(params_b=13.0), hardware=(Hardware(name=card),), method=Given("qlora")
        )
        usual, careful = (advise(workload, CATALOGUE, policy).outcome for policy in (POLICY, strict))
        assert order[usual] <= order[careful]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    params_b=st.sampled_from([0.5, 1.0, 3.0, 7.0, 13.0, 32.0, 70.0, 180.0]),
    card=st.sampled_from(["RTX 4090", "T4", "A100 80GB SXM4", "H200 141GB SXM5", "Apple M2 Ultra", "MI300X"]),
    count=st.sampled_from([1, 2, 3, 8]),
    training=st.booleans(),
)
def test_any_ordinary_question_is_answered(params_b: float, card: str, count: int, training: bool) -> None:
    """Sizes, cards and counts of every kind get an answer whose options name known hardware."""
    kind = TrainingWorkload if training else InferenceWorkload
    workload = kind(model=ModelRef(params_b=params_b), hardware=(Hardware(name=card, count=count),))
    advice = advise(workload, CATALOGUE, POLICY)
    assert advice.outcome in ("fits", "tight", "oom")
    assert advice.options[0].hardware == CATALOGUE.find_accelerator(card).name
    again = advise(replace(workload), CATALOGUE, POLICY)
    assert again.verdict == advice.verdict
