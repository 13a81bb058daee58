"""The training memory law against the committed exact traces."""

from __future__ import annotations

from typing import Any

import pytest

from rules.memory.footprint import Footprint, Range
from rules.memory.law import footprint
from tests.accuracy.trace_comparison import (
    MEDIAN_LIMIT,
    P90_LIMIT,
    Difference,
    compare,
    read_traces,
    summaries,
    workload_of_trace,
)


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """The committed traces."""
    return read_traces()


def test_the_grid_covers_families_methods_and_settings(lines: list[dict[str, Any]]) -> None:
    """At least 200 lines, each name once, over six families and every method, with and without checkpointing."""
    assert len(lines) >= 200
    assert len({line["id"] for line in lines}) == len(lines)
    words = [workload_of_trace(line) for line in lines]
    assert {w.method.value for w in words if w.method} == {"full", "lora", "qlora"}
    assert {w.attention.value for w in words if w.attention} == {"sdpa", "eager"}
    assert {w.checkpointing.value for w in words if w.checkpointing} == {"full", "none"}
    assert all(max(line["phases"].values()) == line["peak_bytes"] for line in lines)


def test_the_law_agrees_with_the_trace(lines: list[dict[str, Any]]) -> None:
    """Every line is answered; median error at most 3 %, 90th percentile at most 8 %, for each family as for all."""
    found = {s.group: s for s in summaries(compare(footprint, lines))}
    assert found["all"].answered == len(lines)
    for group in ("all", "llama", "qwen", "gemma", "gpt2", "mixtral", "bert"):
        assert found[group].median <= MEDIAN_LIMIT, found[group]
        assert found[group].p90 <= P90_LIMIT, found[group]


def test_a_law_that_is_ten_per_cent_high_is_measured_so(lines: list[dict[str, Any]]) -> None:
    """The comparison reports the error that a made-up law has by construction."""
    traced = iter([line["peak_bytes"] for line in lines])

    def law(*_: object) -> Footprint:
        size = next(traced) * 1.1
        flat = Range(size, size, size)
        return Footprint(phase="step", parts=(), phases={}, allocated=flat, reserved=flat, device=flat)

    found = summaries(compare(law, lines))[0]
    assert (found.group, found.count, found.answered) == ("all", len(lines), len(lines))
    assert (found.median, found.p90, found.bias) == pytest.approx((0.1, 0.1, 0.1))


def test_an_unsupported_line_has_no_error() -> None:
    """What the law does not answer counts as a line and not as an error of zero."""
    nothing = Difference("x", "llama", "full", 100, None, {}, {})
    found = summaries([nothing, Difference("y", "llama", "full", 100, 105.0, {}, {})])[0]
    assert (found.count, found.answered) == (2, 1)
    assert found.median == pytest.approx(0.05)
