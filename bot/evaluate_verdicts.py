"""Scores of fits / out-of-memory verdicts. "tight" counts as half right, whatever happened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class VerdictScore:
    """Verdicts of one group. Shares are fractions.

    `balanced_accuracy` is the mean of the two recalls (of the rows that fit and of those that ran out of memory), with
    a tight answer worth 0.5 and a missing answer worth 0. `false_fits` are out-of-memory rows that were said to fit.
    """

    count: int
    supported: float
    ooms: int
    balanced_accuracy: float | None
    tight_share: float
    false_fits: int
    false_ooms: int

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str | None]]) -> VerdictScore:
        """`rows` are (what happened: fits or oom, what was said: fits, tight, oom or None)."""
        pairs = list(rows)
        recalls = []
        for happened in ("fits", "oom"):
            said = [answer for truth, answer in pairs if truth == happened]
            if said:
                recalls.append(sum(_credit(happened, answer) for answer in said) / len(said))
        total = len(pairs) or 1
        return cls(
            count=len(pairs),
            supported=sum(answer is not None for _, answer in pairs) / total,
            ooms=sum(truth == "oom" for truth, _ in pairs),
            balanced_accuracy=sum(recalls) / len(recalls) if recalls else None,
            tight_share=sum(answer == "tight" for _, answer in pairs) / total,
            false_fits=sum(pair == ("oom", "fits") for pair in pairs),
            false_ooms=sum(pair == ("fits", "oom") for pair in pairs),
        )

    def plain(self) -> dict[str, Any]:
        """JSON-ready."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


def _credit(happened: str, said: str | None) -> float:
    if said == happened:
        return 1.0
    return 0.5 if said == "tight" else 0.0
