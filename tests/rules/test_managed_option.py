"""Endpoints, seconds and replicas beside a rented machine; where a CPU gives way to a GPU."""

from __future__ import annotations

import pytest

from rules.advice.advise import advise
from rules.advice.types import Advice
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Note
from rules.policy import Policy, default_policy, policy_from
from rules.workload import Constraints, Hardware, InferenceWorkload, ModelRef, Traffic

CATALOGUE = Catalogue.load()
POLICY = default_policy()
LLAMA = "meta-llama/Llama-3.3-70B-Instruct"
BERT = "google-bert/bert-base-uncased"


def _serve(
    model: str,
    traffic: Traffic | None = None,
    constraints: Constraints | None = None,
    policy: Policy = POLICY,
    hardware: tuple[Hardware, ...] = (),
) -> Advice:
    workload = InferenceWorkload(
        model=ModelRef(name=model),
        traffic=traffic or Traffic(),
        constraints=constraints or Constraints(),
        hardware=hardware,
    )
    return advise(workload, CATALOGUE, policy)


def _figure(note: Note, name: str) -> float:
    value = note.params[name]
    assert isinstance(value, (int, float))
    return float(value)


def test_an_endpoint_costs_its_tokens_and_a_machine_its_hours() -> None:
    """A month of an endpoint is tokens a day x 365/12 x the price of a million; the machine's month is its hours."""
    note = _serve(LLAMA, Traffic(tokens_per_day=3e6)).headlines["managed"]
    assert note.message.startswith("managed_cheaper")
    per_million = _figure(note, "usd_per_million")
    assert _figure(note, "month") == pytest.approx(3 * 365 / 12 * per_million, rel=1e-6)
    assert _figure(note, "dedicated_month") > _figure(note, "month")
    meets_at = _figure(note, "dedicated_month") * 12 / 365 / per_million * 1e6
    assert _figure(note, "break_even") == pytest.approx(meets_at, rel=0.01)


def test_the_machine_wins_only_beyond_the_break_even() -> None:
    """For every load, the endpoint is called cheaper exactly where its month costs less than the machine's."""
    for tokens in (1e5, 1e7, 3e8, 2e9):
        note = _serve("Qwen/Qwen3-8B", Traffic(tokens_per_day=tokens)).headlines["managed"]
        dearer = _figure(note, "month") > _figure(note, "dedicated_month")
        assert (note.message == "managed_dearer") == dearer


def test_a_break_even_that_the_machine_cannot_carry_is_not_offered() -> None:
    """Where the machine is full before it pays, the endpoint is called cheaper at any load."""
    note = _serve(LLAMA).headlines["managed"]
    beyond = _figure(note, "break_even") > _figure(note, "most")
    assert note.message == ("managed_at_any_load" if beyond else "managed_from_tokens")


def test_a_price_without_a_region_satisfies_no_place() -> None:
    """With a wanted place the endpoint is said to be left out, and no figure of it is given."""
    note = _serve(LLAMA, Traffic(tokens_per_day=3e6), Constraints(location="eu")).headlines["managed"]
    assert note.message == "managed_without_region"
    assert "month" not in note.params


@pytest.mark.parametrize("constraints", [Constraints(where="on_premises"), Constraints(cpu_only=True)])
def test_no_endpoint_where_it_must_run_elsewhere(constraints: Constraints) -> None:
    """On premises or on a CPU alone, no endpoint is proposed."""
    assert "managed" not in _serve(LLAMA, Traffic(tokens_per_day=3e6), constraints).headlines


def test_a_teams_clouds_are_the_only_ones() -> None:
    """An endpoint of a provider that the team excludes is not proposed; another takes its place."""
    first = _serve(LLAMA, Traffic(tokens_per_day=3e6)).headlines["managed"].params["provider"]
    rule = {"id": "clouds", "exclude": f'kind == "managed" and provider == "{first}"'}
    other = _serve(LLAMA, Traffic(tokens_per_day=3e6), policy=policy_from({"constraint": [rule]}, POLICY))
    assert other.headlines["managed"].params["provider"] != first


def test_hardware_at_hand_gets_no_offer_unasked() -> None:
    """A question of fit on a named card says nothing of endpoints; one with a load does."""
    card = (Hardware(name="RTX 4090", count=1),)
    assert "managed" not in _serve("meta-llama/Meta-Llama-3-8B", hardware=card).headlines
    loaded = _serve("meta-llama/Meta-Llama-3-8B", Traffic(tokens_per_day=1e6), hardware=card)
    assert "managed" in loaded.headlines


def test_replicas_follow_the_load() -> None:
    """Where the peak needs more replicas than the mean, both are said with what the difference costs a month."""
    advice = _serve(LLAMA, Traffic(tokens_per_day=5e8))
    note = advice.headlines["scaling"]
    assert _figure(note, "peak") > _figure(note, "mean") >= 1
    machine = note.params["machine"]
    assert isinstance(machine, Note)
    option = next(
        o
        for o in advice.options
        if (o.hardware, o.count) == (machine.params["device"], machine.params["count"]) and o.cost and o.cost.quote
    )
    assert option.cost is not None
    assert option.cost.usd_per_month is not None
    each = float(option.cost.usd_per_month) / option.replicas
    assert _figure(note, "saves") == pytest.approx(each * (_figure(note, "peak") - _figure(note, "mean")))


def test_one_replica_or_an_even_load_needs_no_scaling() -> None:
    """Nothing is said where one replica carries the peak, or where no peak is known."""
    assert "scaling" not in _serve(LLAMA, Traffic(tokens_per_day=1e5)).headlines
    assert "scaling" not in _serve(LLAMA, Traffic(requests_per_s=0.5)).headlines


def test_a_cpu_is_said_to_carry_what_its_capacity_is() -> None:
    """The crossing point is the CPU's own capacity, or the cheaper rate below it."""
    advice = _serve(BERT, Traffic(requests_per_s=20))
    note = advice.headlines["crossing"]
    cpu = next(o for o in advice.options if o.kind == "cpu")
    assert cpu.capacity is not None
    assert _figure(note, "most") == pytest.approx(cpu.capacity.requests_s)
    if note.message == "crossing_cheaper_from":
        assert 0 < _figure(note, "crosses") < _figure(note, "most")


def test_generated_text_without_a_rate_has_no_crossing() -> None:
    """A question of fit for a language model is not told what a CPU would carry."""
    assert "crossing" not in _serve("meta-llama/Meta-Llama-3-8B").headlines


def test_a_rate_is_counted_without_a_pause_and_said_so() -> None:
    """A load told a second is not known a day: the month assumes that it never stops, and the note says it."""
    for traffic, message in (
        (Traffic(requests_per_s=0.1), "load_tokens_a_day_at_that_rate"),
        (Traffic(tokens_per_day=1e6), "load_tokens_a_day"),
    ):
        load = _serve("meta-llama/Meta-Llama-3-8B", traffic).headlines["managed"].params["load"]
        assert isinstance(load, Note)
        assert load.message == message


def test_a_cpu_far_too_slow_for_text_is_not_weighed() -> None:
    """Where a CPU does not carry the asked rate of generated text, no crossing point is told."""
    assert "crossing" not in _serve("meta-llama/Meta-Llama-3-8B", Traffic(requests_per_s=50)).headlines
