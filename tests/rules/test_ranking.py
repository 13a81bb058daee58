"""Choosing among placements: what dominates, what is picked first, and for which reason."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.advice.ranking import Ranked, pick, undominated
from rules.policy import default_policy


def _bought(key: int, price: float | None, rate: float | None, **more: Any) -> Ranked:
    fields = {"device": f"card {key}", "tier": "consumer", "devices": 1, "where": "on_premises"} | more
    return Ranked(key=key, price_usd=price, rate=rate, **fields)


def _rented(key: int, hourly: float, rate: float | None, **more: Any) -> Ranked:
    work = hourly / rate if rate else None
    fields = {"device": f"cloud {key}", "tier": "enterprise", "devices": 1, "where": "cloud"} | more
    return Ranked(key=key, usd_per_hour=hourly, work_usd=work, rate=rate, **fields)


POLICY = default_policy().ranking
RANKED = st.builds(
    _bought,
    st.integers(0, 10**6),
    st.one_of(st.none(), st.floats(100, 1e5)),
    st.one_of(st.none(), st.floats(1, 1e4)),
    meets=st.booleans(),
    devices=st.integers(1, 16),
)


def _burdened(each: Ranked) -> float:
    """Money with a quarter more for each doubling of the devices."""
    return (each.money if each.money is not None else math.inf) * (1 + 0.25 * math.log2(each.devices))


def test_a_slower_and_dearer_card_is_dominated() -> None:
    """Of two cards the one that costs more and does less goes; one that costs more and does more stays."""
    cheap, worse, fast = _bought(1, 500, 100), _bought(2, 600, 90), _bought(3, 900, 300)
    assert set(undominated([cheap, worse, fast], POLICY)) == {cheap, fast}


@given(st.lists(RANKED, max_size=30))
@settings(max_examples=60, deadline=None)
def test_nothing_that_is_kept_is_beaten_by_what_was_dropped(found: list[Ranked]) -> None:
    """Each dropped placement has a kept one that is no dearer, no slower and no further from the target."""
    kept = undominated(found, POLICY)
    for each in found:
        if each in kept:
            continue
        assert any(
            _burdened(other) <= _burdened(each)
            and (other.rate if other.rate is not None else other.size_gb)
            >= (each.rate if each.rate is not None else each.size_gb)
            and (other.meets or not each.meets)
            for other in kept
        )


def test_renting_counts_the_work_done_and_not_the_hour() -> None:
    """A machine at twice the price and four times the speed is the cheaper one to rent."""
    slow, quick = _rented(1, 0.5, 100), _rented(2, 1.0, 400)
    assert next(p.ranked for p in pick([slow, quick], "cheapest", 5, POLICY)) == quick


def test_own_hosts_come_first_and_each_choice_has_its_rule() -> None:
    """The team's host leads; then the cheapest to buy and to rent, the best value and the fastest."""
    own = _bought(0, None, 50, where="own")
    found = [_bought(1, 500, 100), _bought(2, 800, 400), _rented(3, 0.4, 100), _rented(4, 1.0, 200), own]
    rules = [p.rule for p in pick(found, "balanced", 5, POLICY)]
    assert rules == [
        "option_owned",
        "option_cheapest_to_buy",
        "option_cheapest_to_rent",
        "option_best_value",
        "option_fastest_to_rent",
    ]


def test_what_misses_the_target_is_shown_only_where_nothing_meets_it() -> None:
    """A cheap card that is too slow gives way to a dear one that is not."""
    slow, good = _bought(1, 100, 10, meets=False), _bought(2, 900, 100)
    assert [p.ranked for p in pick([slow, good], "balanced", 5, POLICY)] == [good]
    assert [p.ranked for p in pick([slow], "balanced", 5, POLICY)] == [slow]


def test_who_asks_for_the_fastest_gets_it_first() -> None:
    """The fastest to buy and to rent lead, whatever they cost."""
    found = [_bought(1, 500, 100), _bought(2, 9000, 900), _rented(3, 0.4, 100), _rented(4, 60.0, 5000)]
    assert [p.ranked.key for p in pick(found, "fastest", 2, POLICY)] == [2, 4]


def test_one_card_is_worth_more_than_two_of_the_same_price() -> None:
    """Two small cards must be clearly cheaper than one large to be picked."""
    one, two = _bought(1, 1000, 100), _bought(2, 950, 101, devices=2)
    assert pick([one, two], "cheapest", 1, POLICY)[0].ranked == one


@given(st.lists(RANKED, max_size=40), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_at_most_so_many_and_none_twice(found: list[Ranked], most: int) -> None:
    """No more than asked, and no hardware twice."""
    picked = pick(found, "balanced", most, POLICY, ("consumer", "enterprise"))
    assert len(picked) <= most
    assert len({(p.ranked.device, p.ranked.devices) for p in picked}) == len(picked)
