"""Questions of our own, phrased as people phrase them, in both languages and mixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.evaluate_questions import same_value
from bot.questions.parse import parse
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
ROWS = [json.loads(line) for line in Path(__file__).with_name("paraphrases.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_paraphrase_is_read_whole(row: dict[str, Any]) -> None:
    """Every stated field, fact, intent and language is read, and nothing else is."""
    parsed = parse(row["text"], CATALOGUE)
    assert parsed.intent == row["intent"]
    assert set(parsed.fields) == set(row["expected"])
    wrong = {
        field: (value, parsed.fields[field])
        for field, value in row["expected"].items()
        if not same_value(field, value, parsed.fields[field])
    }
    assert wrong == {}
    assert {field: parsed.extra.get(field) for field in row["extra"]} == row["extra"]
    assert row["lang"] == "mixed" or parsed.lang == row["lang"]
