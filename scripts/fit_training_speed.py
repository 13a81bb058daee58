"""Fits the constants of the law of training speed on the published runs; writes `rules/speed/data/training_speed.json`.

Every constant has a physical meaning and a prior (`rules.speed.training.constants.PRIORS`). The fit minimises the
logarithm of predicted over measured, robustly, with each source's weight limited, and holds constants near their
priors, so that what few runs show does not run away.

    python -m scripts.fit_training_speed            # fit, print and write
    python -m scripts.fit_training_speed --check    # fit without each source in turn, print what it then predicts
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from bot.estimate import Estimator, placed
from rules.catalog.cpus import Cpu
from rules.catalog.errors import CatalogError
from rules.evidence import workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.speed.training.constants import PRIORS, constants
from rules.speed.training.law import group_of, run_of
from rules.speed.training.seconds import seconds
from rules.speed.training.work import Work
from rules.workload import TrainingWorkload
from scripts.speed_cases import print_errors, trusted

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests/accuracy/cases/train.jsonl"
OUT = ROOT / "rules/speed/data/training_speed.json"
KEYS = ("tokens_per_s_per_gpu", "step_s", "samples_per_s")
FREE = {"share": 0.2, "narrow": 0.4, "eight_bit": 0.25, "four_bit": 0.4, "fused": 0.3}
FREE |= {"traffic": 0.35, "tuned": 0.15, "benchmark": 0.15}
_USUALLY_FREE = 0.5
SHARES = ("share", "eight_bit", "four_bit", "experts", "attention", "link", "width", "filled", "reach", "fused")
_ERROR = 0.12  # what a good law leaves, as a logarithm: the scale on which priors and runs are weighed
_SOURCE_SATURATES = 6  # rows of one source beyond which another row adds little weight


@dataclass(frozen=True)
class Row:
    """One measured value of one run. `judged`: the first of KEYS that the source gives."""

    case: str
    source: str
    key: str
    measured: float
    work: Work
    samples_a_token: float
    devices: int
    group: str
    device: str
    framework: str


def rows(path: Path = CASES) -> Iterator[Row]:
    """Runs of confidence high or medium, one row each: tokens a second, else the step's time, else samples."""
    estimator = Estimator()
    for case in trusted(path, ("train_memory", "train_speed")):
        key = next((k for k in KEYS if case.get("measured", {}).get(k)), None)
        if key is None:
            continue
        try:
            workload, model, device, count = placed(estimator, workload_of(case))
            if device is None or isinstance(device, Cpu) or not isinstance(workload, TrainingWorkload):
                continue
            work, setup = run_of(workload, model, device, count)
        except (CatalogError, UnsupportedWorkload) as exc:
            print(f"not covered: {case['id']} ({exc.message_id})")
            continue
        if key == "step_s" and not setup.packed:
            continue  # a mean over samples of unknown lengths
        yield Row(
            case=case["id"],
            source=case["source"]["repo"] or case["source"]["where"].partition(" ")[0],
            key=key,
            measured=float(case["measured"][key]),
            work=work,
            samples_a_token=1.0 / (setup.length * setup.plan.sequence_split),
            devices=setup.plan.devices,
            group=group_of(work),
            device=device.name,
            framework=setup.recipe.name,
        )


def predicted(row: Row, values: Mapping[str, float]) -> float:
    """What the law says for the row, in the row's own unit."""
    parts = seconds(row.work, values)
    if row.key == "step_s":
        return parts.step
    rate = parts.tokens / row.work.split / parts.step
    if row.key == "samples_per_s":
        per_sample = parts.tokens / (row.work.tokens * row.work.accumulation)
        return rate * row.devices * row.samples_a_token / per_sample
    return rate


def fit(found: list[Row]) -> dict[str, float]:
    """Constants that minimise the robust logarithmic error of `found`, held near their priors."""
    names = list(PRIORS)
    per_source = Counter(row.source for row in found)
    weights = [1.0 / math.sqrt(1 + per_source[row.source] / _SOURCE_SATURATES) for row in found]
    start = np.array([math.log(PRIORS[name]) for name in names])
    free = np.array([FREE.get(name, _USUALLY_FREE) for name in names])

    def residuals(theta: np.ndarray) -> np.ndarray:
        values = dict(zip(names, (math.exp(t) for t in theta), strict=True))
        errors = [
            weight * math.log(predicted(row, values) / row.measured) / _ERROR
            for row, weight in zip(found, weights, strict=True)
        ]
        return np.concatenate([np.array(errors), (theta - start) / free])

    most = np.array([0.0 if name in SHARES else np.inf for name in names])
    solved = least_squares(
        residuals, np.minimum(start, most - 1e-6), bounds=(-np.inf, most), loss="soft_l1", max_nfev=60
    )
    return {name: float(math.exp(value)) for name, value in zip(names, solved.x, strict=True)}


def standing() -> list[tuple[str, str, str, float, float]]:
    """(source, case, key, predicted, measured) of every row, by the constants in use."""
    return [(row.source, row.case, row.key, predicted(row, constants()), row.measured) for row in rows()]


@cache
def leave_one_source_out() -> list[tuple[str, str, str, float, float]]:
    """(source, case, key, predicted, measured) of every row, by constants fitted without its source."""
    found = list(rows())
    told = []
    for source in sorted({row.source for row in found}):
        values = fit([row for row in found if row.source != source])
        told += [(source, r.case, r.key, predicted(r, values), r.measured) for r in found if r.source == source]
    return told


def _spreads(found: list[Row], values: Mapping[str, float]) -> dict[str, float]:
    by_group: dict[str, list[float]] = {}
    for row in found:
        error = abs(math.log(predicted(row, values) / row.measured))
        by_group.setdefault(row.group, []).append(error)
        by_group.setdefault("other", []).append(error)
    return {g: round(math.expm1(float(np.quantile(e, 0.8))), 3) for g, e in sorted(by_group.items()) if len(e) >= 5}


def main() -> None:
    """Fits, prints and writes, or checks leaving sources out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave each source out in turn; writes nothing")
    parser.add_argument("--worst", type=int, default=0, help="print so many of the largest errors")
    args = parser.parse_args()
    if args.check:
        told = leave_one_source_out()
        for source in sorted({t[0] for t in told}):
            print_errors(source, [(p, m) for s, _, _, p, m in told if s == source])
        for key in sorted({t[2] for t in told}):
            print_errors(f"left out: {key}", [(p, m) for _, _, k, p, m in told if k == key])
        return
    found = list(rows())
    values = fit(found)
    for title, pick in (("source", "source"), ("group", "group"), ("device", "device"), ("key", "key")):
        for label in sorted({str(getattr(row, pick)) for row in found}):
            chosen = [row for row in found if str(getattr(row, pick)) == label]
            print_errors(f"{title}: {label}", [(predicted(r, values), r.measured) for r in chosen])
    ranked = sorted(((predicted(r, values) / r.measured - 1, r) for r in found), key=lambda pair: -abs(pair[0]))
    for error, row in ranked[: args.worst]:
        print(f"{error:+.2f}  {row.key:20} {row.measured:10.2f}  {row.framework:14} {row.device:20} {row.case}")
    print({name: float(f"{value:.3g}") for name, value in values.items()})
    OUT.write_text(
        json.dumps(
            {
                "about": "Constants of rules.speed.training, fitted by scripts/fit_training_speed.py.",
                "cases": len(found),
                "sources": len({row.source for row in found}),
                "constants": {name: float(f"{value:.4g}") for name, value in values.items()},
                "spread": _spreads(found, values),
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
