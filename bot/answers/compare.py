"""A comparison as people read it: the verdict with the figure that decides, then one row for each set-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.answers.as_json import advice_json
from bot.answers.layout import Layout, Surface
from bot.answers.money import pace_text, price_text
from bot.answers.words import Words
from rules.advice.compare import Alternative, Comparison
from rules.memory.footprint import Note

_COLUMNS = ("alternative", "fit", "need", "tier", "speed", "money", "most", "card")


def comparison_text(
    comparison: Comparison,
    labels: Sequence[str],
    words: Words,
    surface: Surface,
    *,
    understood: str,
    remarks: Sequence[str] = (),
    questions: Sequence[str] = (),
) -> str:
    """The comparison for a terminal; `labels` name the set-ups in the order of its rows."""
    view = _View(comparison, labels, words, surface)
    return view.filled("compare.j2", c=comparison, understood=understood, remarks=remarks, questions=questions)


def comparison_json(comparison: Comparison, labels: Sequence[str], words: Words) -> dict[str, Any]:
    """The comparison as plain data: verdict, winner and each set-up's figures with its whole advice."""
    return {
        "verdict": {
            "id": comparison.verdict.message,
            "params": dict(comparison.verdict.params),
            "text": verdict_text(comparison, labels, words),
        },
        "winner": None if comparison.winner is None else labels[comparison.winner],
        "rows": [_row_json(row, label, words) for row, label in zip(comparison.rows, labels, strict=True)],
    }


def verdict_text(comparison: Comparison, labels: Sequence[str], words: Words) -> str:
    """The verdict line, with the winner by its name."""
    side = comparison.verdict.params.get("side")
    named: Mapping[str, Any] = {"side": labels[side]} if isinstance(side, int) else {}
    others = [label for i, label in enumerate(labels) if i != side]
    return words.say(
        comparison.verdict.message,
        {**comparison.verdict.params, "others": f" {words('compare_or')} ".join(others), **named},
    )


def _row_json(row: Alternative, label: str, words: Words) -> dict[str, Any]:
    return {
        "alternative": label,
        "outcome": row.outcome,
        "need_gib": row.need_gib,
        "usable_gib": row.usable_gib,
        "bandwidth_gb_s": row.device.bandwidth_gb_s if row.device else None,
        "bf16_tflops": row.device.bf16_dense if row.device else None,
        "tier": row.tier,
        "notes": [words.say(note) for note in row.notes],
        "problem": words.say(row.problem) if row.problem else None,
        "advice": advice_json(row.advice, words) if row.advice else None,
    }


class _View(Layout):
    """What the template of a comparison calls."""

    def __init__(self, comparison: Comparison, labels: Sequence[str], words: Words, surface: Surface) -> None:
        super().__init__(words, surface)
        self._comparison = comparison
        self._labels = labels
        self._trains = any(row.advice and row.advice.workload.kind == "training" for row in comparison.rows)

    def verdict(self) -> str:
        rows, winner = self._comparison.rows, self._comparison.winner
        running = any(row.runs for row in rows)
        outcome = rows[winner].outcome if winner is not None else "fits" if running else "oom"
        if not running and all(row.outcome == "unknown" for row in rows):
            outcome = "unknown"
        return self.headline(outcome, verdict_text(self._comparison, self._labels, self._words))

    def rows(self) -> str:
        head = tuple(self._words(f"column_{name}") for name in _COLUMNS)
        cells = [self._cells(row, label) for row, label in zip(self._comparison.rows, self._labels, strict=True)]
        return self.table(head, cells)

    def _cells(self, row: Alternative, label: str) -> tuple[str, ...]:
        need = "" if row.need_gib is None else self.asked(row.outcome, row.need_gib, row.usable_gib or 0.0)
        proposed = row.device is None and row.advice is not None and bool(row.advice.options)
        if proposed and row.advice is not None:
            best = row.advice.options[0]
            label = f"{label}: {self.machine(best.hardware, best.count)}" if best.hardware not in label else label
        option = row.advice.options[0] if row.advice is not None and row.advice.options else None
        return (
            label,
            self._words("outcome_blocked" if option is not None and option.blocked else f"outcome_{row.outcome}"),
            need,
            self._words(f"tier_{row.tier}"),
            pace_text(option, self._words) if option is not None else "",
            price_text(option, self._words) if option is not None else "",
            self._most(row),
            self._card(row),
        )

    def _card(self, row: Alternative) -> str:
        """Rates of one card from the catalogue: bandwidth, and for training compute."""
        if row.device is None:
            return ""
        told = [self._words.say("compare_rate", {"rate": row.device.bandwidth_gb_s})]
        if self._trains and row.device.bf16_dense:
            told.append(self._words.say("compare_tflops", {"rate": row.device.bf16_dense}))
        return ", ".join(told)

    def _most(self, row: Alternative) -> str:
        """The most that fits, in few words."""
        most = row.limits
        told = {"micro_batch": most.micro_batch, "sequences": most.sequences, "context": most.context}
        return ", ".join(self._words.say(f"compare_{name}", {"n": n}) for name, n in told.items() if n)

    def notes(self) -> list[str]:
        """What is to be known of each set-up, said once where several share it."""
        found: list[Note] = [note for row in self._comparison.rows for note in (*row.notes, row.problem) if note]
        return list(dict.fromkeys(self._words.say(note) for note in found))
