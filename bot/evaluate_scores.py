"""How far predictions are from measurements: the figures that every group of a report shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one group. Shares and errors are fractions (0.06 = 6 %); an error is predicted / measured - 1.

    `count` is the rows asked for, `supported` the share of them that got a prediction; the other figures are over the
    supported rows and None where there is none. `bias` is the median signed error.
    """

    count: int
    supported: float
    median: float | None = None
    p90: float | None = None
    within_10: float | None = None
    within_15: float | None = None
    within_20: float | None = None
    within_25: float | None = None
    bias: float | None = None

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Errors:
        """Sums up signed errors; None stands for a row without a prediction."""
        rows = list(errors)
        known = [error for error in rows if error is not None]
        if not known:
            return cls(len(rows), 0.0)
        sizes = sorted(abs(error) for error in known)

        def within(limit: float) -> float:
            return sum(size <= limit for size in sizes) / len(sizes)

        return cls(
            len(rows),
            len(known) / len(rows),
            median(sizes),
            quantile(sizes, 0.9),
            within(0.10),
            within(0.15),
            within(0.20),
            within(0.25),
            median(known),
        )

    def plain(self) -> dict[str, Any]:
        """JSON-ready, rounded to a tenth of a per cent."""
        return {
            "count": self.count,
            **{
                name: None if (value := getattr(self, name)) is None else round(value, 4)
                for name in self.__slots__
                if name != "count"
            },
        }


def quantile(ordered: Sequence[float], share: float) -> float:
    """Quantile of ascending values, linear between neighbours (the usual definition, as numpy's default)."""
    if not ordered:
        raise ValueError("a quantile needs at least one value")
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def signed_error(predicted: float | None, measured: float) -> float | None:
    """predicted / measured - 1, or None without a prediction; `measured` is positive."""
    return None if predicted is None else predicted / measured - 1


def grouped(rows: Iterable[tuple[Mapping[str, str], float | None]]) -> dict[str, dict[str, Errors]]:
    """Errors by each label: {dimension: {label: Errors}}, larger groups first.

    `rows` are (labels of one row by dimension, signed error).
    """
    groups: dict[str, dict[str, list[float | None]]] = {}
    for labels, error in rows:
        for dimension, label in labels.items():
            groups.setdefault(dimension, {}).setdefault(label, []).append(error)
    return {
        dimension: {
            label: Errors.of(errors)
            for label, errors in sorted(by_label.items(), key=lambda item: (-len(item[1]), item[0]))
        }
        for dimension, by_label in groups.items()
    }
