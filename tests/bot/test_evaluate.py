"""Scoring: what an error, a group and a verdict count."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.estimate import Estimator
from bot.evaluate import evaluate, sharded, states_shape, weights_class
from bot.evaluate_scores import Errors, grouped, quantile, signed_error
from bot.evaluate_verdicts import VerdictScore

CASES = Path(__file__).resolve().parent.parent / "accuracy" / "cases"


class FixedAnswers(Estimator):
    """An estimator that says 11 GiB and `tight` to everything, and notes what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []

    def answer(self, case: object) -> dict[str, Any]:
        assert isinstance(case, dict)
        self.seen.append(case)
        return {"id": case["id"], "predicted": {"peak_gib_per_gpu": 11.0, "weights_gib": 11.0}, "outcome": "tight"}


def train_case(**changes: Any) -> dict[str, Any]:
    """A measured training case of 10 GiB."""
    case = {
        "id": "a",
        "kind": "train_memory",
        "gpu": "A100-80GB",
        "n_gpus": 1,
        "method": "full",
        "framework": "x",
        "confidence": "high",
        "statistic": "allocated",
        "measured": {"peak_gib_per_gpu": 10.0, "step_s": 1.0},
        "notes": "secret",
    }
    return case | changes


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_quantile_is_numpy_s_default(values: list[float], share: float) -> None:
    """The quantile equals NumPy's linear interpolation."""
    ordered = sorted(values)
    assert quantile(ordered, share) == pytest.approx(float(np.quantile(ordered, share)), rel=1e-9, abs=1e-6)


def test_errors_count_unsupported_rows_apart() -> None:
    """A row without a prediction lowers the supported share and enters no error figure."""
    errors = Errors.of([0.05, -0.15, None, 0.30])
    assert errors.count == 4
    assert errors.supported == 0.75
    assert errors.median == pytest.approx(0.15)
    assert errors.within_10 == pytest.approx(1 / 3)
    assert errors.within_25 == pytest.approx(2 / 3)
    assert errors.bias == pytest.approx(0.05)


def test_group_without_predictions_has_no_figures() -> None:
    """A group in which nothing is predicted has count and coverage only."""
    assert Errors.of([None, None]) == Errors(2, 0.0)


def test_signed_error_is_relative_to_the_measurement() -> None:
    """11 predicted for 10 measured is +10 %."""
    assert signed_error(11.0, 10.0) == pytest.approx(0.10)
    assert signed_error(None, 10.0) is None


def test_groups_are_listed_largest_first() -> None:
    """Groups of a dimension come by size, then by name."""
    groups = grouped([({"method": "b"}, 0.1), ({"method": "a"}, 0.1), ({"method": "b"}, 0.2)])
    assert [(label, errors.count) for label, errors in groups["method"].items()] == [("b", 2), ("a", 1)]


def test_verdicts_are_scored_by_balanced_accuracy() -> None:
    """Each outcome weighs the same, tight is half right, silence is wrong, and a false fits is counted."""
    said = [("oom", "oom"), ("oom", "fits"), ("oom", None), ("oom", "tight"), ("fits", "fits"), ("fits", "tight")]
    score = VerdictScore.of(said)
    assert score.balanced_accuracy == pytest.approx(((1 + 0 + 0 + 0.5) / 4 + (1 + 0.5) / 2) / 2)
    assert (score.false_fits, score.false_ooms, score.ooms) == (1, 0, 4)
    assert score.tight_share == pytest.approx(2 / 6)


def test_estimator_never_sees_the_answer() -> None:
    """Measured values, outcome and notes are withheld from the estimator."""
    estimator = FixedAnswers()
    evaluate([train_case(), train_case(kind="verdict", outcome="oom", oom_kind="cuda_oom")], estimator)
    assert len(estimator.seen) == 2
    for case in estimator.seen:
        assert not {"measured", "outcome", "oom_kind", "notes"} & set(case)


def test_every_memory_value_is_one_score() -> None:
    """Each memory key of `measured` is scored by itself; speeds are not."""
    both = train_case(kind="infer_memory", measured={"weights_gib": 10.0, "total_gib": 12.0, "decode_tok_s": 9.0})
    result = evaluate([train_case(), both], FixedAnswers())
    assert [(row.key, row.predicted) for row in result.values] == [
        ("peak_gib_per_gpu", 11.0),
        ("weights_gib", 11.0),
        ("total_gib", None),
    ]


def test_low_confidence_is_reported_but_not_judged() -> None:
    """Headline figures leave rows of low confidence out."""
    report = evaluate([train_case(), train_case(confidence="low")], FixedAnswers()).plain()
    scores = report["kinds"]["train_memory"]["peak_gib_per_gpu"]
    assert scores["high and medium"]["count"] == 1
    assert scores["all confidences"]["count"] == 2


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"sharding": None}, False),
        ({"sharding": "ddp"}, False),
        ({"sharding": "zero1"}, True),
        ({"sharding": "tp2"}, True),
    ],
)
def test_sharded_means_spread(case: dict[str, Any], expected: bool) -> None:
    """Plain data parallelism is not sharding."""
    assert sharded(case) is expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"weights_format": "bf16"}, "16-bit"),
        ({"weights_format": "awq"}, "quantised"),
        ({"weights_format": "gguf:Q4_K_M"}, "GGUF"),
        ({"weights_format": "fp32"}, "32-bit"),
    ],
)
def test_weights_classes(case: dict[str, Any], expected: str) -> None:
    """Weights formats fall into the classes by which other tools are compared."""
    assert weights_class(case) == expected


def test_inferred_fields_are_not_stated() -> None:
    """A row states its shape only where length, batch and method are not inferred."""
    case = {"seq_len": 512, "micro_batch": 1, "method": "lora"}
    assert states_shape(case)
    assert not states_shape(case | {"inferred": ["seq_len"]})
    assert not states_shape(case | {"micro_batch": None})


def test_whole_evaluation_is_quick() -> None:
    """All published memory cases and verdicts are scored in under 20 seconds."""
    start = time.perf_counter()
    rows = [
        json.loads(line)
        for name in ("train", "infer", "verdicts")
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    result = evaluate(rows)
    assert time.perf_counter() - start < 20
    assert result.kinds == {
        "train_memory": 420,
        "train_speed": 110,
        "infer_memory": 286,
        "infer_speed": 518,
        "verdict": 112,
    }
