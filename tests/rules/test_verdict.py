"""Verdicts: the need of a footprint against what a program can use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Footprint, Range
from rules.memory.verdict import usable_for, verdict
from rules.policy import default_policy
from rules.units import GIB
from rules.workload import Hardware, InferenceWorkload, ModelRef, TrainingWorkload

POLICY = default_policy()
MODEL = ModelRef(name="meta-llama/Llama-2-7b-hf")
TRAIN = TrainingWorkload(model=MODEL)
SERVE = InferenceWorkload(model=MODEL)
RANK = {"fits": 0, "tight": 1, "oom": 2}


def card(name: str) -> Accelerator:
    return Catalogue.load().find_accelerator(name)


def exact(gib: float) -> Range:
    return Range(gib * GIB, gib * GIB, gib * GIB)


def need_of(allocated: float, reserved: float | None = None, context: float = 0.5, **components: float) -> Footprint:
    """A footprint without doubt, in GiB."""
    held = allocated if reserved is None else reserved
    return Footprint(
        phase="step",
        parts=(),
        phases={},
        allocated=exact(allocated),
        reserved=exact(held),
        device=exact(held + context),
        components={name: value * GIB for name, value in components.items()},
    )


@pytest.mark.parametrize(("allocated", "outcome"), [(20.0, "fits"), (23.5, "oom"), (80.0, "oom")])
def test_need_is_judged_against_what_the_card_shows(allocated: float, outcome: str) -> None:
    """A 24 GB card shows 23.1 to 23.6 GiB: 20.5 fits there, 24 does not."""
    assert verdict(TRAIN, need_of(allocated), card("RTX 3090"), 1, POLICY).outcome == outcome


@given(st.floats(1, 200), st.floats(1, 200))
def test_more_need_never_fits_better(less: float, more: float) -> None:
    """The outcome never improves as the need grows."""
    low, high = sorted((less, more))
    device = card("A100 80GB")
    outcomes = [verdict(TRAIN, need_of(gib), device, 1, POLICY).outcome for gib in (low, high)]
    assert RANK[outcomes[0]] <= RANK[outcomes[1]]


def test_doubt_makes_a_fit_tight() -> None:
    """The same expected need fits where the law is sure, and is tight where its range reaches far above the card."""
    sure = need_of(74.0, context=0.0)
    doubtful = replace(sure, allocated=Range(60 * GIB, 74 * GIB, 110 * GIB), reserved=exact(74.0))
    device = card("A100 80GB")
    assert verdict(TRAIN, sure, device, 2, POLICY).outcome == "fits"
    assert verdict(TRAIN, doubtful, device, 2, POLICY).outcome == "tight"


def test_fragments_count_in_training_alone() -> None:
    """Of an allocator's cache a share stays needed in training; a forward pass can give all of it back."""
    cached = need_of(20.0, reserved=24.0)
    training = verdict(TRAIN, cached, card("A100 40GB"), 1, POLICY).need.expected
    serving = verdict(SERVE, cached, card("A100 40GB"), 1, POLICY).need.expected
    assert serving == pytest.approx(20.5 * GIB)
    assert training == pytest.approx((20.5 + POLICY.fit.fragments_share_of_cache * 4) * GIB)


def test_scratch_that_gives_way_is_no_need() -> None:
    """Workspace that a run takes only where it is free does not decide the verdict."""
    fit = verdict(TRAIN, need_of(25.0, gives_way=6.0), card("RTX 3090"), 2, POLICY)
    assert fit.outcome == "fits"
    assert fit.need.expected == pytest.approx(19.5 * GIB)


@pytest.mark.parametrize(("pool", "outcome"), [(9.0, "fits"), (2.1, "tight"), (1.0, "oom"), (-3.0, "oom")])
def test_pool_must_hold_the_least_that_the_engine_starts_with(pool: float, outcome: str) -> None:
    """An engine with a pool needs room for its least, with a margin; its headroom is what the pool has to spare."""
    footprint = need_of(70.0, kv=pool, kv_needed=2.0, kv_least=2.0)
    lenient = replace(POLICY, fit=replace(POLICY.fit, fails_above_share=1.0))
    fit = verdict(SERVE, footprint, card("A100 80GB"), 1, lenient)
    assert fit.outcome == outcome
    assert fit.headroom_bytes == pytest.approx((pool - 2.0) * GIB)


def test_lone_consumer_card_drives_the_display() -> None:
    """One consumer card keeps the desktop's reserve free; several, and server cards, do not."""
    reserve = POLICY.memory.desktop_reserve_gib * GIB
    lone, pair = (usable_for(TRAIN, card("RTX 4090"), n, POLICY) for n in (1, 2))
    assert pair - lone == pytest.approx(reserve)
    assert usable_for(TRAIN, card("H100 SXM"), 1, POLICY) == usable_for(TRAIN, card("H100 SXM"), 2, POLICY)


def test_stated_memory_wins_over_the_catalogue() -> None:
    """A figure that the runtime reported is what there is."""
    workload = replace(TRAIN, hardware=(Hardware(name="T4", count=1, memory_gib=14.56),))
    assert usable_for(workload, card("T4"), 1, POLICY) == pytest.approx(14.56 * GIB)


def test_every_outcome_has_its_reason() -> None:
    """The first reason is the message id of what decided."""
    device = card("A100 80GB")
    assert verdict(TRAIN, need_of(10.0), device, 1, POLICY).reasons == ("fit_below_the_limit",)
    assert verdict(TRAIN, need_of(100.0), device, 1, POLICY).reasons == ("fit_need_above_usable",)
    pool = need_of(70.0, kv=-1.0, kv_needed=2.0, kv_least=2.0)
    assert verdict(SERVE, pool, device, 1, POLICY).reasons == ("fit_pool_holds_no_sequence",)
