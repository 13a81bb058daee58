"""Recommendations over the whole catalogue: traffic, targets, budgets, places and a team's own constraints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.advice.advise import advise
from rules.advice.demand import demand_of
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue
from rules.policy import Policy, default_policy, policy_from
from rules.speed.types import InferenceSpeed, TrainingSpeed
from rules.workload import (
    Constraints,
    Given,
    Hardware,
    InferenceWorkload,
    ModelRef,
    Money,
    Traffic,
    TrainingWorkload,
)

CATALOGUE = Catalogue.load()
POLICY = default_policy()


def _serve(
    model: str,
    traffic: Traffic | None = None,
    constraints: Constraints | None = None,
    hardware: tuple[Hardware, ...] = (),
    policy: Policy = POLICY,
    **fields: Any,
) -> Advice:
    workload = InferenceWorkload(
        model=ModelRef(name=model),
        hardware=hardware,
        traffic=traffic or Traffic(),
        constraints=constraints or Constraints(),
        **{name: Given(value) for name, value in fields.items()},
    )
    return advise(workload, CATALOGUE, policy)


def _train(hardware: tuple[Hardware, ...] = (), traffic: Traffic | None = None, **fields: Any) -> Advice:
    workload = TrainingWorkload(
        model=ModelRef(name="meta-llama/Meta-Llama-3-8B"),
        hardware=hardware,
        traffic=traffic or Traffic(),
        **{name: Given(value) for name, value in fields.items()},
    )
    return advise(workload, CATALOGUE, POLICY)


def test_options_carry_the_traffic_or_say_that_they_do_not() -> None:
    """Every proposal for thirty at once under 300 ms carries them, with speed and price beside it."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", Traffic(concurrency=30, ttft_ms=300))
    assert advice.options
    for option in advice.options:
        assert option.capacity is not None
        assert option.capacity.meets is True
        assert isinstance(option.speed, InferenceSpeed)
        assert option.speed.ttft_s is not None
        assert option.speed.ttft_s.expected <= 0.3
    assert any(option.cost and option.cost.quote for option in advice.options)


def test_ten_times_the_requests_take_more_devices_or_faster_ones() -> None:
    """The cheapest rented answer for more traffic never costs less an hour."""

    def hourly(rate: float) -> float:
        advice = _serve(
            "Qwen/Qwen2.5-7B-Instruct", Traffic(requests_per_s=rate), Constraints(where="cloud", goal="cheapest")
        )
        assert advice.options[0].cost is not None
        assert advice.options[0].cost.usd_per_hour is not None
        return float(advice.options[0].cost.usd_per_hour)

    assert hourly(200.0) > hourly(2.0)


@pytest.mark.parametrize("location", ["eu", "us"])
def test_a_place_excludes_offers_that_name_no_place(location: str) -> None:
    """No offer of the region "any" is proposed to somebody who asks for a place, and nothing to buy."""
    advice = _serve("Qwen/Qwen2.5-32B-Instruct", constraints=Constraints(location=location))
    quotes = [o.cost.quote for o in advice.options if o.kind == "gpu" and o.cost is not None]
    assert quotes
    assert all(quote is not None and quote.region != "any" for quote in quotes)


def test_only_the_named_clouds_are_proposed() -> None:
    """With providers named, every rented option is from one of them."""
    advice = _serve("Qwen/Qwen2.5-7B-Instruct", constraints=Constraints(providers=("aws",), where="cloud"))
    found = {o.cost.quote.provider for o in advice.options if o.kind == "gpu" and o.cost and o.cost.quote}
    assert found == {"aws"}


def test_a_budget_is_kept_in_its_own_currency_and_period() -> None:
    """3,000 EUR once buys nothing dearer; 2 USD an hour rents nothing dearer."""
    once = _serve("meta-llama/Llama-2-7b-hf", constraints=Constraints(budget=Money(amount="3000", currency="EUR")))
    for option in (o for o in once.options if o.kind == "gpu"):
        assert option.cost is not None
        price = option.cost.street_price_usd or option.cost.list_price_usd
        assert price is not None
        assert float(price) <= 3000 * POLICY.currency.usd_per_eur
    hourly = _serve("meta-llama/Llama-2-7b-hf", constraints=Constraints(budget=Money(amount="2", per="hour")))
    for option in (o for o in hourly.options if o.kind == "gpu"):
        assert option.cost is not None
        assert option.cost.usd_per_hour is not None
        assert option.cost.usd_per_hour <= 2


def test_a_teams_constraint_keeps_cards_out_and_says_so() -> None:
    """No consumer card on premises is proposed, and what was kept out is listed with the team's reason."""
    rows = [{"id": "no-consumer", "exclude": 'tier == "consumer" and where == "on_premises"', "reason": "no support"}]
    policy = policy_from({"constraint": rows}, POLICY)
    advice = _serve("meta-llama/Llama-2-7b-hf", policy=policy)
    bought = [o for o in advice.options if o.kind == "gpu" and o.cost and o.cost.purchase == "owned"]
    assert all(o.tier != "consumer" for o in bought)
    assert {(e.constraint, e.reason) for e in advice.excluded} == {("no-consumer", "no support")}
    assert any(o.tier == "consumer" for o in _serve("meta-llama/Llama-2-7b-hf").options)


def test_a_cpu_that_carries_the_traffic_is_the_answer() -> None:
    """A classifier at 20 requests a second runs on a CPU first; at ten thousand it does not (I1, I2, I13)."""
    quiet = _serve("google-bert/bert-base-uncased", Traffic(requests_per_s=20))
    assert (quiet.outcome, quiet.options[0].kind) == ("cpu", "cpu")
    assert quiet.options[0].capacity is not None
    assert quiet.options[0].capacity.meets is True
    assert _serve("google-bert/bert-base-uncased", Traffic(requests_per_s=10_000)).options[0].kind == "gpu"


def test_a_run_over_a_data_set_has_its_time() -> None:
    """Tokens over tokens a second is the time, and twice the samples take twice as long."""
    card = (Hardware(name="RTX 4090"),)
    one = _train(card, method="lora", dataset_samples=50_000.0, seq_len=1536).speed
    two = _train(card, method="lora", dataset_samples=100_000.0, seq_len=1536).speed
    assert isinstance(one, TrainingSpeed)
    assert isinstance(two, TrainingSpeed)
    assert one.total_s is not None
    assert two.total_s is not None
    rate = one.tokens_per_s_per_device.expected
    assert one.total_s.expected == pytest.approx(50_000 * 1536 / rate, rel=0.01)
    assert two.total_s.expected == pytest.approx(2 * one.total_s.expected, rel=0.01)


def test_renting_wins_for_few_hours_and_buying_for_many() -> None:
    """Of the same card, two hours a week are rented and the whole week on a dear cloud is bought (T8)."""
    card = (Hardware(name="H100 80GB PCIe"),)
    few = _train(card, Traffic(hours_per_week=2), method="lora").rent_or_buy
    many = _train(card, Traffic(hours_per_week=168, months=36), method="lora").rent_or_buy
    assert few is not None
    assert many is not None
    assert few.break_even.cheaper == "rent"
    assert many.break_even.rent_usd_per_month > few.break_even.rent_usd_per_month * 80
    assert few.rent.accelerator == few.own.accelerator == "H100 80GB PCIe"


@given(
    users=st.integers(1, 5000),
    rate=st.one_of(st.none(), st.floats(0.001, 1e4)),
    tokens=st.one_of(st.none(), st.floats(1, 1e12)),
    ttft=st.one_of(st.none(), st.floats(0.1, 1e6)),
)
@settings(max_examples=25, deadline=None)
def test_any_traffic_gets_an_answer(users: int, rate: float | None, tokens: float | None, ttft: float | None) -> None:
    """No traffic or target makes the advice fail, and a demand is never negative."""
    traffic = Traffic(concurrency=users, requests_per_s=rate, tokens_per_day=tokens, ttft_ms=ttft)
    advice = _serve("meta-llama/Meta-Llama-3-8B", traffic)
    assert advice.verdict.message
    assert isinstance(advice.workload, InferenceWorkload)
    demand = demand_of(advice.workload, POLICY)
    assert demand.prompt_tokens >= 1
    assert (demand.requests_s or 0) >= 0


def test_a_daily_total_is_planned_for_its_peak() -> None:
    """Three million tokens a day are planned at the policy's peak, and the assumption is said."""
    advice = _serve("Qwen/Qwen2.5-32B-Instruct", Traffic(tokens_per_day=3e6))
    assert isinstance(advice.workload, InferenceWorkload)
    demand = demand_of(advice.workload, POLICY)
    mean = 3e6 / (demand.prompt_tokens + demand.answer_tokens) / 86_400
    assert demand.requests_s == pytest.approx(mean * POLICY.traffic.peak_over_mean)
    assert "peak_over_mean" in {assumption.field for assumption in advice.assumptions}


@pytest.mark.parametrize("count", [1, 4, 8])
def test_a_number_of_cards_is_kept_whatever_their_kind(count: int) -> None:
    """Told eight cards and no name, every option has eight, in more than one tier, and it is said."""
    advice = _serve("meta-llama/Meta-Llama-3-8B", constraints=Constraints(devices=count))
    assert {option.devices for option in advice.options} == {count}
    assert {option.kind for option in advice.options} == {"gpu"}
    assert len({option.tier for option in advice.options}) > 1
    assert "count_without_card" in {note.message for note in advice.warnings}


def test_too_few_cards_of_any_kind_is_a_no_that_names_enough() -> None:
    """Two cards hold no 405B model in 16 bits: the verdict is no, and a machine that does is shown."""
    advice = _serve("meta-llama/Llama-3.1-405B", constraints=Constraints(devices=2), weights_format="bf16")
    assert (advice.outcome, advice.verdict.message) == ("oom", "verdict_other_count")
    assert advice.options
    assert advice.options[0].devices > 2


@pytest.mark.parametrize("model", ["meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-70B", "Qwen/Qwen2.5-32B"])
def test_no_tier_has_two_bests(model: str) -> None:
    """Each tier is named at most once as the one that an option is the best of, and the reason carries the tier."""
    best = [option for option in _serve(model).options if option.rule == "option_of_tier"]
    assert len({option.tier for option in best}) == len(best)
    assert all(option.reasons[0].params["tier"] == option.tier for option in best)
