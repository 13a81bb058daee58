"""What the fits of speed share: the published cases that count, and a line of how far the law is from them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np


def trusted(path: Path, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
    """The cases of these kinds whose confidence is high or medium."""
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] in kinds and case["confidence"] != "low":
            yield case


def print_errors(title: str, pairs: Sequence[tuple[float, float]]) -> None:
    """One line on (predicted, measured) pairs; none where there are no pairs."""
    if not pairs:
        return
    errors = np.array([p / m - 1 for p, m in pairs])
    size = np.abs(errors)
    print(
        f"{title:44.44} {len(size):4}  median {np.median(size):6.1%}  p90 {np.quantile(size, 0.9):6.1%}  "
        f"in 20 % {np.mean(size <= 0.2):5.0%}  bias {np.median(errors):+.1%}"
    )
