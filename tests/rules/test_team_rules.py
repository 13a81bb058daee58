"""A team's own constraints: what they may say and what they exclude."""

from __future__ import annotations

import pytest

from rules.advice.team_rules import broken, check
from rules.policy import PolicyError, TeamConstraint, default_policy, policy_from

NO_CONSUMER = TeamConstraint("no-consumer", 'tier == "consumer" and where == "on_premises"', "no support")
CLOUDS = TeamConstraint("clouds", 'where == "cloud" and not (provider in ["aws", "gcp"])')
SPEND = TeamConstraint("spend", "usd_per_hour > 3")


def test_an_option_that_an_expression_names_is_broken_and_another_is_not() -> None:
    """The constraint comes back for a consumer card on premises only."""
    facts = {"tier": "consumer", "where": "on_premises", "provider": None, "usd_per_hour": None}
    assert [b.constraint.id for b in broken(facts, (NO_CONSUMER, CLOUDS))] == ["no-consumer"]
    assert broken({**facts, "tier": "workstation"}, (NO_CONSUMER, CLOUDS)) == ()


def test_only_the_named_clouds_pass() -> None:
    """A provider outside the list is excluded, one inside is not."""
    facts = {"tier": "enterprise", "where": "cloud", "provider": "lambda"}
    assert [b.constraint.id for b in broken(facts, (CLOUDS,))] == ["clouds"]
    assert not broken({**facts, "provider": "aws"}, (CLOUDS,))


def test_a_price_that_is_not_known_breaks_nothing_for_certain() -> None:
    """A comparison with an unknown value is told as uncertain."""
    found = broken({"usd_per_hour": None}, (SPEND,))
    assert [b.certain for b in found] == [False]
    assert [b.certain for b in broken({"usd_per_hour": 4.0}, (SPEND,))] == [True]


@pytest.mark.parametrize(
    "expression", ["tirr == 1", "tier > 3", "tier ==", '__import__("os").system("true")', "devices.x"]
)
def test_an_expression_that_cannot_be_read_is_refused_with_the_names_it_may_use(expression: str) -> None:
    """The error names the expression and the known names; nothing is run."""
    with pytest.raises(PolicyError, match="it may name: device"):
        check((TeamConstraint("bad", expression),))


def test_a_policy_file_adds_constraints_to_those_it_builds_on() -> None:
    """Rows of `[[constraint]]` are read, and a second file's rows come after the first's."""
    first = policy_from({"constraint": [{"id": "a", "exclude": "devices > 8"}]}, default_policy())
    second = policy_from({"constraint": [{"id": "b", "exclude": "devices > 4", "reason": "power"}]}, first)
    assert [c.id for c in second.constraints] == ["a", "b"]


@pytest.mark.parametrize(
    "rows", [{"id": "a"}, [{"id": "a"}], [{"id": "a", "exclude": ""}], [{"id": 1, "exclude": "x"}]]
)
def test_a_constraint_that_lacks_a_part_is_refused(rows: object) -> None:
    """An error says which texts are needed."""
    with pytest.raises(PolicyError, match="constraint"):
        policy_from({"constraint": rows}, default_policy())
