"""Fits the constants of the law of media speed on the published runs; writes `rules/speed/data/media_speed.json`.

Robust in the logarithm, constants held near their priors, every source's rows weighed together.

    python -m scripts.fit_media_speed            # fit, print and write
    python -m scripts.fit_media_speed --check    # errors of each source, fitted without it
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from bot.estimate import Estimator, placed
from rules.catalog.cpus import Cpu
from rules.catalog.errors import CatalogError
from rules.evidence import workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.speed.media.law import media_speed
from rules.speed.media.seconds import PRIORS
from rules.workload import InferenceWorkload
from scripts.speed_cases import trusted

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests/accuracy/cases/infer.jsonl"
OUT = ROOT / "rules/speed/data/media_speed.json"
KEYS = {
    "samples_s": ("samples_s", 1.0),
    "steps_s": ("steps_s", 1.0),
    "requests_s": ("requests_s", 1.0),
    "encoder_ms": ("encoder_s", 1e3),
    "tpot_ms": ("tpot_s", 1e3),
    "latency_ms": ("latency_s", 1e3),
}
_PRIOR_WEIGHT = 0.35
_SATURATES = 6
_LEAST_SPREAD = 0.6  # few sources: what a run of an unseen source misses by is wider than the residuals of the fit

Row = tuple[str, str, str, str, float, Any]


def rows() -> list[Row]:
    """Published runs of media models: case, source, group, key, measured value, arguments of the law."""
    estimator, found = Estimator(), []
    for case in trusted(CASES, ("infer_speed",)):
        try:
            workload, model, device, count = placed(estimator, workload_of(case))
        except CatalogError as exc:
            print("left out", case["id"], exc)
            continue
        if model.domain == "llm" or device is None or not isinstance(workload, InferenceWorkload):
            continue
        group = "cpu" if isinstance(device, Cpu) else model.domain
        source, arguments = case["source"]["repo"] or case["source"]["where"], (workload, model, device, count)
        for key in KEYS:
            if case["measured"].get(key) and not (key == "latency_ms" and "samples_s" in case["measured"]):
                found.append((case["id"], source, group, key, case["measured"][key], arguments))
    return found


def error(row: Row, constants: dict[str, float]) -> float | None:
    """Logarithm of predicted over measured; None where the law refuses."""
    name, unit = KEYS[row[3]]
    try:
        figure = getattr(media_speed(*row[5], constants), name)
    except UnsupportedWorkload as exc:
        print("refused", row[0], exc)
        return None
    return math.log(figure.expected * unit / row[4]) if figure else None


def fit(data: list[Row]) -> dict[str, float]:
    """The constants that these rows show."""
    names, sources = list(PRIORS), Counter(row[1] for row in data)
    weights = [math.sqrt(min(1.0, _SATURATES / sources[row[1]])) for row in data]

    def residuals(x: Any) -> Any:
        constants = {n: PRIORS[n] * math.exp(v) for n, v in zip(names, x, strict=True)}
        errors = [w * (error(row, constants) or 0.0) / 0.15 for w, row in zip(weights, data, strict=True)]
        return np.array(errors + [v / _PRIOR_WEIGHT for v in x])

    top = [math.log(0.9 / PRIORS[n]) if n.startswith(("share", "bandwidth")) else 2.0 for n in names]
    found = least_squares(residuals, np.zeros(len(names)), loss="soft_l1", bounds=(-2.5, top))
    return {n: float(f"{PRIORS[n] * math.exp(v):.4g}") for n, v in zip(names, found.x, strict=True)}


def told(data: list[Row], constants: dict[str, float]) -> list[tuple[str, str, str, float, float]]:
    """(source, case, key, predicted, measured) of the rows that the law covers."""
    pairs = ((row, error(row, constants)) for row in data)
    return [(row[1], row[0], row[3], math.exp(e) * row[4], row[4]) for row, e in pairs if e is not None]


def standing() -> list[tuple[str, str, str, float, float]]:
    """Every row by the constants in use."""
    return told(rows(), dict(json.loads(OUT.read_text("utf-8"))["constants"]))


@cache
def leave_one_source_out() -> list[tuple[str, str, str, float, float]]:
    """Every row by constants fitted without its source."""
    data = [row for row in rows() if error(row, dict(PRIORS)) is not None]
    found = []
    for source in sorted({row[1] for row in data}):
        constants = fit([row for row in data if row[1] != source])
        found += told([row for row in data if row[1] == source], constants)
    return found


def report(pairs: list[tuple[Row, float]]) -> None:
    """Prints the median error of each group."""
    for group in sorted({row[2] for row, _ in pairs}):
        errors = [abs(math.exp(e) - 1) for row, e in pairs if row[2] == group]
        print(
            f"{group:14s} n={len(errors):3d} median |error| {np.median(errors):.3f} p90 {np.quantile(errors, 0.9):.3f}"
        )


def main() -> None:
    """Fits and writes, or checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rows", action="store_true")
    asked = parser.parse_args()
    if not OUT.exists():
        OUT.write_text(json.dumps({"constants": dict(PRIORS), "spread": {}}))
    data = [row for row in rows() if error(row, dict(PRIORS)) is not None]
    if asked.check:
        pairs = []
        for source in {row[1] for row in data}:
            constants = fit([row for row in data if row[1] != source])
            pairs += [(row, error(row, constants) or 0.0) for row in data if row[1] == source]
        report(pairs)
        return
    constants = fit(data)
    pairs = [(row, error(row, constants) or 0.0) for row in data]
    report(pairs)
    if asked.rows:
        for row, e in pairs:
            print(f"{math.exp(e):6.2f} {row[0]} {row[3]}")
    spread = {}
    for name in ("cpu", "gpu"):
        mine = [abs(e) for row, e in pairs if (row[2] == "cpu") == (name == "cpu")]
        spread[name] = round(max(_LEAST_SPREAD, math.exp(float(np.quantile(mine, 0.8))) - 1), 3)
    counts = dict(Counter(row[1] for row in data))
    written = {"constants": constants, "spread": spread, "runs": counts, "written_by": "scripts/fit_media_speed.py"}
    OUT.write_text(json.dumps(written, indent=2) + "\n", "utf-8")
    print(json.dumps(constants))


if __name__ == "__main__":
    main()
