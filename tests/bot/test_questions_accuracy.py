"""How right the parser is on questions that people asked, and how fast."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from bot.evaluate_questions import same_value, score_questions
from bot.questions.parse import parse
from bot.questions.parsed import Parsed
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "accuracy/cases/questions.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def score() -> dict[str, Any]:
    """The score on the published questions."""
    return score_questions(ROWS, lambda text: parse(text, CATALOGUE))


def test_fields_are_read(score: dict[str, Any]) -> None:
    """Precision and recall of the fields keep F1 above 0.96 on the questions that we may see."""
    assert score["f1"] >= 0.96


def test_spanish_is_read_as_well_as_english() -> None:
    """The F1 of Spanish questions is at most two points below that of English ones."""
    f1 = {
        lang: score_questions([r for r in ROWS if r["lang"] == lang], lambda text: parse(text, CATALOGUE))["f1"]
        for lang in ("en", "es")
    }
    assert f1["es"] >= f1["en"] - 0.02


def test_intent_is_understood(score: dict[str, Any]) -> None:
    """At least 95 % of the intents are right, and every language."""
    assert score["intent_accuracy"] >= 0.95
    assert score["lang_accuracy"] >= 0.97


def test_nothing_decisive_is_silent(score: dict[str, Any]) -> None:
    """At least 95 % of the decisive missing fields are asked or assumed aloud."""
    assert score["must_ask_recall"] >= 0.95


def test_little_is_asked_in_vain(score: dict[str, Any]) -> None:
    """At least 80 % of what is asked back decides the answer."""
    assert score["ask_precision"] >= 0.8


def test_parsing_is_quick() -> None:
    """The median question takes under 3 ms (bounded loosely here, because test machines are shared)."""
    parse("warm up", CATALOGUE)
    times = []
    for row in ROWS:
        started = time.perf_counter()
        parse(row["text"], CATALOGUE)
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.009


def test_score_counts_wrong_and_missing_fields() -> None:
    """A wrong value costs precision and recall, an invented one precision, a missing one recall."""
    rows = [
        {
            "id": "one",
            "text": "x",
            "lang": "en",
            "intent": "fit",
            "expected": {"params_b": 7, "context": 8192, "model": "meta-llama/Llama-2-7B"},
            "must_ask": ["batch", "context"],
        }
    ]
    said = Parsed(
        text="x",
        intent="fit",
        lang="en",
        fields={"params_b": 8, "model": "llama 2 7b", "batch": 2},
        ask=("context",),
    )
    score = score_questions(rows, lambda text: said)
    assert score["precision"] == pytest.approx(1 / 3)
    assert score["recall"] == pytest.approx(1 / 3)
    assert score["must_ask_recall"] == 0.5
    assert score["intent_accuracy"] == 1.0
    assert [m["id"] for m in score["mistakes"]] == ["one"]


def test_values_compare_as_documented() -> None:
    """Names ignore case, separators and publisher; a context may be 5 % off; a count may not."""
    assert same_value("model", "Qwen2.5-72B", "qwen/qwen-2.5 72b")
    assert same_value("context", 8192, 8000)
    assert not same_value("context", 8192, 7000)
    assert not same_value("hardware", [{"name": "T4", "count": 1}], [{"name": "T4", "count": 2}])
