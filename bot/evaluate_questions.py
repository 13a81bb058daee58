"""How right the parser is on a file of questions: field precision, recall, F1, intent, what had to be asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bot.questions.parsed import Parsed

CONTEXT_TOLERANCE = 0.05
_NUMBER_TOLERANCE = 0.01
_NAMES = ("model", "framework", "host", "weights_format", "precision")


def score_questions(rows: Iterable[Mapping[str, Any]], parse: Callable[[str], Parsed]) -> dict[str, Any]:
    """Scores `parse` on rows of `text`, `intent`, `expected`, `must_ask`.

    A field counts as right if it is stated with the same value: names without case, separators and publisher, a
    context within 5 %, other numbers within 1 %. Asking counts whether asked or assumed and said; its precision
    counts what is asked alone.
    """
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    intents = asked = to_ask = questions = languages = with_lang = put = put_rightly = 0
    mistakes: list[dict[str, Any]] = []
    for row in rows:
        parsed = parse(row["text"])
        questions += 1
        expected = row["expected"]
        bad: dict[str, Any] = {}
        for field in sorted({*expected, *parsed.fields}):
            same = (
                field in expected
                and field in parsed.fields
                and same_value(field, expected[field], parsed.fields[field])
            )
            right[field] += same
            wrong[field] += field in parsed.fields and not same
            missed[field] += field in expected and not same
            if not same:
                bad[field] = {"expected": expected.get(field), "got": parsed.fields.get(field)}
        intents += parsed.intent == row["intent"]
        if row.get("lang") in ("en", "es"):
            with_lang += 1
            languages += parsed.lang == row["lang"]
        answered = {*parsed.ask, *parsed.assumed}
        to_ask += len(row["must_ask"])
        asked += sum(f in answered for f in row["must_ask"])
        put += len(parsed.ask)
        put_rightly += sum(f in row["must_ask"] for f in parsed.ask)
        unasked = [f for f in row["must_ask"] if f not in answered]
        if bad or unasked or parsed.intent != row["intent"]:
            mistakes.append(
                {"id": row["id"], "intent": [row["intent"], parsed.intent], "fields": bad, "unasked": unasked}
            )
    precision = _share(right.total(), right.total() + wrong.total())
    recall = _share(right.total(), right.total() + missed.total())
    return {
        "count": questions,
        "precision": precision,
        "recall": recall,
        "f1": 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall),
        "intent_accuracy": _share(intents, questions),
        "must_ask_recall": _share(asked, to_ask),
        "ask_precision": _share(put_rightly, put),
        "lang_accuracy": _share(languages, with_lang),
        "fields": {
            f: {"right": right[f], "wrong": wrong[f], "missed": missed[f]} for f in sorted({*right, *wrong, *missed})
        },
        "mistakes": mistakes,
    }


def same_value(field: str, expected: Any, got: Any) -> bool:
    """Whether two values of a field mean the same."""
    if field == "hardware":
        return _hardware(expected) == _hardware(got)
    if field in _NAMES:
        return _name(str(expected)) == _name(str(got))
    if field == "budget":
        same_amount = _close(expected["amount"], got["amount"], _NUMBER_TOLERANCE)
        return same_amount and (expected["currency"], expected["per"]) == (got["currency"], got["per"])
    if isinstance(expected, (int, float)) and not isinstance(expected, bool):
        tolerance = CONTEXT_TOLERANCE if field == "context" else _NUMBER_TOLERANCE
        return isinstance(got, (int, float)) and _close(expected, got, tolerance)
    return bool(expected == got)


def _hardware(items: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    return sorted((_name(item["name"]), item["count"]) for item in items)


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9.:]", "", text.lower().rpartition("/")[2])


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
