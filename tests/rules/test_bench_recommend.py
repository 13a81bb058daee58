"""The benchmark's tenfold catalogue really has ten times the offers, and the same answer comes out of it."""

from __future__ import annotations

from benchmarks.bench_recommend import WORKLOADS, with_more_offers
from rules.advice.advise import advise
from rules.catalog.catalogue import Catalogue
from rules.policy import default_policy


def test_dearer_copies_of_offers_change_no_recommendation() -> None:
    """Ten times the offers, all copies dearer: the same hardware is recommended at the same price."""
    once, more, policy = Catalogue.load(), with_more_offers(10), default_policy()
    assert len(more.offers) == 10 * len(once.offers)
    for workload in WORKLOADS:
        expected, found = advise(workload, once, policy), advise(workload, more, policy)
        assert [(o.hardware, o.devices) for o in found.options] == [(o.hardware, o.devices) for o in expected.options]
        prices = [[o.cost.usd_per_hour for o in a.options if o.cost] for a in (expected, found)]
        assert prices[0] == prices[1]
