"""Rent or buy: both sides do the same work, and a machine that cannot do it in a week is not called cheaper."""

from __future__ import annotations

import pytest

from rules.advice.advise import advise
from rules.advice.types import RentOrBuy
from rules.catalog.catalogue import Catalogue
from rules.policy import default_policy
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, Traffic, TrainingWorkload

CATALOGUE = Catalogue.load()
POLICY = default_policy()


def _serve(model: str, hours: float, hardware: tuple[Hardware, ...] = ()) -> RentOrBuy:
    workload = InferenceWorkload(model=ModelRef(name=model), traffic=Traffic(hours_per_week=hours), hardware=hardware)
    found = advise(workload, CATALOGUE, POLICY).rent_or_buy
    assert found is not None
    return found


def test_owned_hours_follow_from_both_speeds() -> None:
    """Rate x hours is the same on both sides."""
    found = _serve("meta-llama/Meta-Llama-3-8B", 40)
    assert found.rented_rate
    assert found.owned_rate
    assert found.owned_rate * found.owned_hours_per_week == pytest.approx(found.rented_rate * 40)


@pytest.mark.parametrize("hours", [20, 100, 168])
@pytest.mark.parametrize("model", ["meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-70B"])
def test_what_is_bought_does_the_work_in_a_week(model: str, hours: float) -> None:
    """However many hours are rented, the machines to own need no more than a week for the same work."""
    found = _serve(model, hours)
    assert found.owned_hours_per_week <= 168 * (1 + 1e-9)
    assert found.break_even.notes == ()


def test_the_cheaper_side_is_the_one_that_the_verdict_names() -> None:
    """Buy is said where owning costs less a month, rent where it costs more."""
    for hours in (5, 40, 168):
        found = _serve("meta-llama/Meta-Llama-3-70B", hours)
        cheaper = "own" if found.break_even.own_usd_per_month < found.break_even.rent_usd_per_month else "rent"
        assert found.break_even.cheaper == cheaper
        assert (found.verdict.message == "verdict_buy") == (cheaper == "own")


def test_a_run_on_a_named_card_is_compared_with_the_same_card() -> None:
    """With hardware told both sides are that card, and the hours are equal."""
    workload = TrainingWorkload(
        model=ModelRef(name="meta-llama/Llama-2-7b-hf"),
        method=Given("qlora"),
        hardware=(Hardware(name="RTX 4090", count=1),),
        traffic=Traffic(hours_per_week=30),
    )
    found = advise(workload, CATALOGUE, POLICY).rent_or_buy
    assert found is not None
    assert found.owned_hours_per_week == pytest.approx(30)
    assert found.own.accelerator == "RTX 4090"
