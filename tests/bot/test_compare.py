"""Set-ups side by side on the user's workload: rows from the laws and the catalogue, the figure that decides first."""

from __future__ import annotations

import pytest

from bot.answered import Answered
from bot.answering import answer
from bot.answers.layout import Surface
from bot.questions.dialogue import Conversation
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()


def compared(*messages: str) -> Answered:
    """The answer to the last message, which compares."""
    conversation = Conversation()
    for message in messages:
        last = answer(message, catalogue=CATALOGUE, conversation=conversation)
        conversation = last.conversation
    assert last.comparison is not None
    return last


@pytest.mark.parametrize(
    ("question", "verdict", "winner"),
    [
        ("4090 vs A100 40 for lora on an 8b, which is faster", "compare_speed_training", 1),
        ("llama 3 8b int4: 3090 vs 4060 ti 16gb, which is better", "compare_speed_serving", 0),
        ("llama 3 70b int4: 4090 vs A100 80, which is better", "compare_only_one_fits", 1),
        ("llama 3 70b bf16: 4090 vs 3090, which is better", "compare_none_fits", None),
        ("8 bit or 4 bit for qwen 32b on a 3090, which is better", "compare_only_one_fits", 1),
        ("llama 3 8b or qwen 14b on a 3090, which is better", "compare_least_memory", 0),
        ("lora 13b: L40S vs 6000 ada, which is better", "compare_room_training", 1),
    ],
)
def test_the_deciding_figure(question: str, verdict: str, winner: int | None) -> None:
    """The verdict names what decides: the memory, compute for training, bandwidth for serving, the room."""
    comparison = compared(question).comparison
    assert comparison is not None
    assert comparison.verdict.message == verdict
    assert comparison.winner == winner


def test_rows_are_the_advice_on_each() -> None:
    """Need, usable memory and verdict of a row equal those of the same question asked alone."""
    both = compared("4090 vs A100 40 for lora on an 8b, which is faster").comparison
    assert both is not None
    for row, question in zip(both.rows, ("lora on an 8b on a 4090", "lora on an 8b on an A100 40"), strict=True):
        alone = answer(question, catalogue=CATALOGUE).advice
        assert alone is not None
        assert row.need_gib == pytest.approx(alone.options[0].need.expected_gib)
        assert row.usable_gib == pytest.approx(alone.options[0].usable_gib)
        assert row.outcome == alone.outcome


def test_layer_split_adds_no_bandwidth() -> None:
    """Two cards that hold a model by layers read one after the other: their bandwidth does not add up."""
    comparison = compared("mac studio m2 ultra 192 or 2xA6000 for 120b q4_k_m with llama.cpp?").comparison
    assert comparison is not None
    assert comparison.verdict.message != "compare_bandwidth"


def test_text_has_verdict_first_and_a_row_for_each() -> None:
    """The verdict line comes first, then every set-up with need, room and the catalogue's rates of a card."""
    text = compared("4090 vs A100 40 for lora on an 8b, which is faster").text(Surface(width=140))
    assert text.splitlines()[0].startswith("✅ A100-40GB is the faster:")
    assert "1,008 GB/s, 165 TFLOPS in bf16" in text
    assert "Read as: 8 B model · LoRA · RTX 4090 against A100-40GB." in text


def test_a_follow_up_compares_with_what_was_asked() -> None:
    """ "vs a 5090" after a question on a 4090 puts both side by side, and a further change applies to both."""
    answered = compared("qwen 32b on a 4090", "vs a 5090", "and with 32k context?")
    assert [c["hardware"][0]["name"] for c in answered.parsed.extra["compare"]] == ["RTX 4090", "RTX 5090"]
    assert answered.comparison is not None
    assert [row.outcome for row in answered.comparison.rows] == ["oom", "fits"]


def test_json_has_every_figure() -> None:
    """As data: verdict with its text, winner, and need, usable memory and rates of each row."""
    form = compared("4090 vs A100 40 for lora on an 8b, which is faster").json()["comparison"]
    assert form["winner"] == "A100-40GB"
    assert [row["bandwidth_gb_s"] for row in form["rows"]] == [1008.0, 1555.0]
    assert all(row["need_gib"] < row["usable_gib"] for row in form["rows"])


def test_cards_alone_ask_for_the_model_and_then_compare() -> None:
    """Two cards without a model: the model is asked for, and its name alone then gives the comparison."""
    assert answer("4090 vs 3090", catalogue=CATALOGUE).problem_id == "hardware_alone"
    assert compared("4090 vs 3090", "llama 3 8b").parsed.fields["model"] == "Llama-3-8B"
