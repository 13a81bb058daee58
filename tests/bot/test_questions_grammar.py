"""Questions generated from known workloads come back as those workloads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from bot.evaluate_questions import same_value
from bot.questions.parse import parse
from rules.catalog.catalogue import Catalogue
from tests.bot.grammar import Asked, questions

CATALOGUE = Catalogue.load()
COUNT = 5000 if os.environ.get("GPUFIT_SOAK") else 300
GENERATE_ALONE = settings(
    max_examples=COUNT,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def generated(judge: Callable[[Asked], Any]) -> None:
    """Calls `judge` with as many questions as the run asks for, the same ones each time."""
    seed(20261201)(GENERATE_ALONE(given(questions())(judge)))()


def misread(asked: Asked) -> dict[str, tuple[Any, Any]]:
    """The fields that were read otherwise than meant: (meant, read)."""
    got = parse(asked.text, CATALOGUE).fields
    return {
        field: (asked.fields.get(field), got.get(field))
        for field in {*asked.fields, *got}
        if field not in asked.fields or field not in got or not same_value(field, asked.fields[field], got[field])
    }


def test_workloads_come_back() -> None:
    """At least 98 % of generated questions are read as exactly the workload that they were made from."""
    told: dict[str, dict[str, tuple[Any, Any]]] = {}

    def judge(asked: Asked) -> None:
        told[asked.text] = misread(asked)

    generated(judge)
    wrong = {text: fields for text, fields in told.items() if fields}
    assert len(told) > 0.9 * COUNT
    assert len(wrong) <= 0.02 * len(told), dict(list(wrong.items())[:5])
    print(f"{len(told) - len(wrong)} of {len(told)} generated questions read as meant")


def test_both_languages_are_generated() -> None:
    """The grammar makes English and Spanish, serving and training, so that a pass means all of them."""
    kinds: set[tuple[str, str]] = set()
    generated(lambda asked: kinds.add((asked.lang, asked.fields["task"])))
    tasks = ("inference", "fine_tuning", "pretraining")
    assert kinds == {(lang, task) for lang in ("en", "es") for task in tasks}
