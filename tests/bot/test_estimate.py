"""The estimator: every case gets an answer, with the figure of its statistic, and what was measured is never read."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.estimate import Estimator

SOAK = os.environ.get("GPUFIT_SOAK") == "1"
CASES = Path(__file__).resolve().parent.parent / "accuracy" / "cases"
ESTIMATOR = Estimator()
TRAIN: dict[str, Any] = {
    "id": "t",
    "kind": "train_memory",
    "model": "meta-llama/Llama-2-7b-hf",
    "params_b": 6.74,
    "gpu": "RTX 4090",
    "n_gpus": 1,
    "gpu_mem_gib": 24,
    "method": "qlora",
    "weights_dtype": "nf4",
    "micro_batch": 1,
    "seq_len": 1024,
}
SERVE: dict[str, Any] = {
    "id": "s",
    "kind": "infer_memory",
    "model": "meta-llama/Meta-Llama-3-8B",
    "params_b": 8.03,
    "gpu": "RTX 3090",
    "n_gpus": 1,
    "gpu_mem_gib": 24,
    "engine": "llama.cpp",
    "weights_format": "gguf:Q4_K_M",
    "context": 8192,
    "batch": 1,
}


def rows(*names: str) -> list[dict[str, Any]]:
    """Published cases of these files."""
    return [json.loads(line) for name in names for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()]


REAL = rows("train", "infer", "verdicts")
FIELDS = sorted({key for case in REAL for key in case} - {"measured", "id", "source"})
SEEN = {
    key: list({json.dumps(case[key]): case[key] for case in REAL if case.get(key) is not None}.values())
    for key in FIELDS
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**15),
    st.floats(),
    st.sampled_from(
        ["", "none", "zero3", "tp0", "tp3+pp5", "fsdp-1", "int4", "gguf:Q9", "llama.cpp", "0.0.0", "🦙", "A100"]
    ),
    st.text(max_size=12),
    st.lists(st.text(max_size=4), max_size=3),
)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    """A published case with a few fields set to what other cases have, and sometimes to anything at all."""
    case = dict(draw(st.sampled_from(REAL)))
    for key in draw(st.lists(st.sampled_from(FIELDS), max_size=6, unique=True)):
        case[key] = draw(st.sampled_from(SEEN[key]) if SEEN[key] and draw(st.integers(0, 3)) else ODD)
    return case


@settings(
    max_examples=10_000 if SOAK else 150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(cases())
def test_every_case_gets_an_answer(case: dict[str, Any]) -> None:
    """Any case, however odd, is answered with JSON: figures in order, or the reason why there are none."""
    answer = ESTIMATOR.answer(case)
    json.dumps(answer)
    if "error" in answer:
        assert answer["error"]
        return
    assert bool(answer["predicted"]) != bool(answer["unsupported"])
    for key, value in answer["predicted"].items():
        low, high = answer["low"][key], answer["high"][key]
        assert all(math.isfinite(figure) for figure in (low, value, high)), key
        assert low <= value <= high, key
    assert answer["outcome"] in (None, "fits", "tight", "oom")


def test_measured_outcome_and_notes_are_never_read() -> None:
    """A case with the answer in it gets the same prediction as one without."""
    for case in rows("train", "verdicts")[::25]:
        bare = {key: value for key, value in case.items() if key not in ("measured", "outcome", "oom_kind", "notes")}
        false = {"measured": {"peak_gib_per_gpu": 1.0}, "outcome": "fits", "oom_kind": None, "notes": "fits in 1 GiB"}
        assert ESTIMATOR.answer(bare | false) == ESTIMATOR.answer(bare)


@pytest.mark.parametrize(
    ("statistic", "figure"),
    [
        ("allocated", "allocated_gib"),
        ("reserved", "reserved_gib"),
        ("nvidia-smi", "device_gib"),
        (None, "reserved_gib"),
    ],
)
def test_training_peak_is_the_figure_asked_for(statistic: str | None, figure: str) -> None:
    """The peak follows the statistic; without one it is what the allocator reserves."""
    predicted = ESTIMATOR.answer(TRAIN | {"statistic": statistic})["predicted"]
    assert predicted["peak_gib_per_gpu"] == predicted[figure]
    assert predicted["allocated_gib"] <= predicted["reserved_gib"] <= predicted["device_gib"]


def test_breakdown_sums_to_allocated() -> None:
    """The parts of the breakdown add up to the allocated figure, each with its reason."""
    answer = ESTIMATOR.answer(TRAIN)
    assert sum(part["gib"] for part in answer["breakdown"]) == pytest.approx(
        answer["predicted"]["allocated_gib"], rel=0.01
    )
    assert all(part["text"] and part["text"] != part["why"] for part in answer["breakdown"])


def test_inference_predicts_what_engines_log() -> None:
    """A serving case gives total, weights, KV cache and compute buffer."""
    predicted = ESTIMATOR.answer(SERVE)["predicted"]
    assert predicted["weights_gib"] == pytest.approx(4.3, abs=0.4)
    assert predicted["kv_gib"] == pytest.approx(1.0, abs=0.01)
    assert predicted["total_gib"] > predicted["weights_gib"] + predicted["kv_gib"]


def test_paged_engine_predicts_its_pool() -> None:
    """A vLLM case gives the tokens of its pool."""
    case = SERVE | {"engine": "vllm", "weights_format": "bf16", "context": 2048}
    assert 5_000 < ESTIMATOR.answer(case)["predicted"]["kv_cache_tokens"] < 50_000


def test_format_in_the_model_name_counts() -> None:
    """A repackaged model's name gives its weights format where the case does not."""
    named = ESTIMATOR.answer(
        SERVE | {"engine": "vllm", "model": "someone/Meta-Llama-3-8B-Instruct-AWQ", "weights_format": None}
    )
    stated = ESTIMATOR.answer(SERVE | {"engine": "vllm", "weights_format": "awq"})
    assert named["predicted"]["weights_gib"] == stated["predicted"]["weights_gib"]


def test_unknown_model_with_a_size_is_estimated_and_said_so() -> None:
    """A model that the catalogue does not know is sized from a neighbour, and `assumed` says from which."""
    answer = ESTIMATOR.answer(TRAIN | {"model": "nobody/wholly-unheard-of", "params_b": 7.0})
    assert answer["unsupported"] is None
    assert "model_scaled_from_neighbour" in answer["assumed"]


def test_unknown_model_without_a_size_is_unsupported() -> None:
    """Nothing is predicted for a name that leads nowhere."""
    answer = ESTIMATOR.answer(TRAIN | {"model": "nobody/wholly-unheard-of", "params_b": None})
    assert answer["predicted"] == {}
    assert answer["unsupported"].startswith("unknown_name")


def test_wrong_type_names_the_field() -> None:
    """A field of the wrong type gives an error object that names it."""
    answer = ESTIMATOR.answer(TRAIN | {"micro_batch": "many"})
    assert answer["id"] == "t"
    assert "micro_batch" in answer["error"]


def test_verdict_follows_the_card() -> None:
    """The same run fits a large card, and a small one not."""
    full = TRAIN | {"method": "full", "weights_dtype": "bf16", "optimizer": "adamw"}
    assert ESTIMATOR.answer(full)["outcome"] == "oom"
    assert ESTIMATOR.answer(full | {"gpu": "B200", "gpu_mem_gib": None})["outcome"] == "fits"
    assert ESTIMATOR.answer(TRAIN | {"gpu": None, "gpu_mem_gib": None})["outcome"] is None
