"""The speed part of the accuracy report: groups, targets, and that nothing kept in it is out of date."""

from __future__ import annotations

import pytest

from scripts.accuracy_speed import TARGETS, Point, area_of, laws, left_out, speed_lines, speed_sections, stale, standing


@pytest.fixture(scope="module")
def predicted() -> list[Point]:
    """Every measured speed beside its prediction."""
    return standing()


@pytest.mark.parametrize(
    ("case", "key", "area"),
    [
        ({"kind": "train_speed"}, "tokens_per_s_per_gpu", "training tokens/s"),
        ({"kind": "train_memory"}, "step_s", "training, samples or steps"),
        ({"kind": "infer_speed", "gpu": "A100"}, "decode_tok_s", "single-stream decode"),
        ({"kind": "infer_speed", "gpu": "A100"}, "ttft_ms", "prefill"),
        ({"kind": "infer_speed", "gpu": "A100", "concurrency": 8}, "tpot_ms", "under load"),
        ({"kind": "infer_speed", "gpu": "A100"}, "total_tok_s", "under load"),
        ({"kind": "infer_speed", "cpu": "EPYC 9654"}, "decode_tok_s", "CPU"),
        ({"kind": "infer_speed", "gpu": "A100", "model": "openai/whisper-large-v3"}, "latency_ms", "Whisper"),
        ({"kind": "infer_speed", "gpu": "A100", "model": "google-bert/bert-base-uncased"}, "latency_ms", "encoders"),
    ],
)
def test_each_value_counts_in_one_area(case: dict[str, object], key: str, area: str) -> None:
    """The kind of run, what was measured and the device decide the line that a value counts in."""
    assert area_of({"model": "meta-llama/Meta-Llama-3-8B", **case}, key) == area


def test_training_is_scored_on_all_its_runs(predicted: list[Point]) -> None:
    """Training speeds come from the speed rows and from the memory rows that give one."""
    assert sum(point.area == "training tokens/s" for point in predicted) >= 340


def test_rows_with_sources_left_out_are_of_todays_constants() -> None:
    """`make accuracy` was run after the last fit, so that the kept rows belong to the constants in use."""
    assert laws()
    assert stale() == []


def test_sources_left_out_are_the_same_rows(predicted: list[Point]) -> None:
    """Leaving sources out neither drops nor adds a row, and predicts some of them worse."""
    apart = left_out()
    assert sorted((p.case, p.area, p.source) for p in apart) == sorted((p.case, p.area, p.source) for p in predicted)
    assert sum(abs(p.error) for p in apart) > sum(abs(p.error) for p in predicted)


def test_every_area_with_a_target_has_both_lines(predicted: list[Point]) -> None:
    """Each judged area is shown with the constants in use and with its sources left out."""
    names = {line.name for line in speed_lines()}
    for area in {point.area for point in predicted} & set(TARGETS):
        assert {f"speed, {area}", f"speed, {area}, source left out"} <= names


def test_sections_show_other_tools(predicted: list[Point]) -> None:
    """The table of speed stands beside other tools' figures and every area has its own groups."""
    text = "\n".join(speed_sections())
    assert "ftuneai 45 %" in text
    for area in {point.area for point in predicted}:
        assert f"\n### Speed: {area}\n" in text
