"""Fits the constants of the training memory law to published runs and writes rules/memory/data/training_fit.json.

    python scripts/fit_training_memory.py [--write] [--misses]

The law itself is arithmetic; what is fitted is the step from allocated to reserved memory (four shares), on runs that
report reserved memory, and the ranges: residual quantiles of all runs by kind. Prints errors of all runs and, leaving
one source out at a time, of that source with constants fitted on the others. The contexts and the collectives' buffers
are facts of published logs and stay as they are in the file.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError
from rules.evidence import workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.memory.training import training_footprint
from rules.memory.training.law import fullest, settled
from rules.memory.training.overheads import Fragments, constants, fragments, group
from rules.units import to_gib
from rules.workload import TrainingWorkload

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "accuracy" / "cases" / "train.jsonl"
TARGET = ROOT / "rules" / "memory" / "data" / "training_fit.json"
GRID = tuple(step / 100 for step in range(0, 61, 2))
KINDS = ("fixed", "varied", "sharded")
WEIGHT = {"high": 1.0, "medium": 0.7, "low": 0.2}
GUESS = {"fixed": 0.08, "varied": 0.12, "sharded": 0.15, "load": 0.05}  # physical guesses, held by a weak prior
PRIOR_WEIGHT = 4.0
TAIL = 0.1  # share of residuals left outside a range on each side


@dataclass(frozen=True, slots=True)
class Run:
    """One published peak: its features for the fit, its prediction's parts, and what was measured (GiB)."""

    id: str
    source: str
    confidence: str
    statistic: str | None
    group: str
    allocated: float
    outside: float  # context and collectives, GiB
    features: Fragments
    measured: float

    def predicted(self, shares: Mapping[str, float]) -> float:
        """GiB of the statistic asked, under these constants."""
        if self.statistic == "allocated":
            return self.allocated
        reserved = self.allocated + shares[self.features.kind] * to_gib(self.features.moving)
        reserved += shares["load"] * to_gib(self.features.quantised)
        return reserved + (self.outside if self.statistic == "nvidia-smi" else 0.0)


def runs() -> list[Run]:
    """Published training peaks that the law covers."""
    catalogue = Catalogue.load()
    found: list[Run] = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case: dict[str, Any] = json.loads(line)
        measured = case.get("measured", {}).get("peak_gib_per_gpu")
        if case["kind"] != "train_memory" or not measured:
            continue
        workload = workload_of(case)
        assert isinstance(workload, TrainingWorkload)
        try:
            model = catalogue.find_model(case["model"], case.get("params_b")).spec
            device = catalogue.find_accelerator(case["gpu"], case.get("gpu_mem_gib")) if case.get("gpu") else None
        except CatalogError:
            continue
        try:
            footprint = training_footprint(workload, model, device)
        except UnsupportedWorkload as exc:
            print(f"not covered: {case['id']} ({exc.message_id})")
            continue
        setup = settled(workload, model, device)
        found.append(
            Run(
                id=case["id"],
                source=str(case["source"].get("repo") or case["id"].split("-")[0]),
                confidence=case["confidence"],
                statistic=case.get("statistic"),
                group=group(setup),
                allocated=to_gib(footprint.allocated.expected),
                outside=to_gib(footprint.device.expected - footprint.reserved.expected),
                features=fragments(setup, fullest(setup)),
                measured=measured,
            )
        )
    return found


def error(run: Run, shares: Mapping[str, float]) -> float:
    """Relative error of one prediction."""
    return run.predicted(shares) / run.measured - 1


def fit(rows: Iterable[Run], start: Mapping[str, float]) -> dict[str, float]:
    """The shares with the least weighted absolute error on runs that report reserved or more, near their guesses."""
    rows = [row for row in rows if row.statistic != "allocated"]
    shares = dict(start)

    def cost() -> float:
        prior = sum(abs(shares[name] - GUESS[name]) for name in GUESS)
        return PRIOR_WEIGHT * prior + sum(WEIGHT[row.confidence] * min(0.5, abs(error(row, shares))) for row in rows)

    for _ in range(4):
        for name in (*KINDS, "load"):
            scored = []
            for value in GRID:
                shares[name] = value
                scored.append((cost(), value))
            shares[name] = min(scored)[1]
    return shares


def spread(rows: Sequence[Run], shares: Mapping[str, float]) -> list[float]:
    """Shares below and above a prediction that leave `TAIL` of the measured peaks outside on each side."""
    ratios = sorted(row.measured / row.predicted(shares) - 1 for row in rows)
    low = ratios[int(TAIL * len(ratios))]
    high = ratios[min(len(ratios) - 1, int((1 - TAIL) * len(ratios)))]
    return [round(min(0.6, max(0.04, -low)), 3), round(max(0.05, high), 3)]


def show(name: str, errors: Sequence[float]) -> None:
    """One line of figures."""
    size = sorted(abs(e) for e in errors)
    within = [sum(e <= limit for e in size) / len(size) for limit in (0.10, 0.15, 0.20)]
    print(
        f"{name:44s} n={len(size):3d} median={statistics.median(size):6.1%} p90={size[int(0.9 * (len(size) - 1))]:6.1%}"
        f" in 10/15/20 %: {within[0]:.0%} {within[1]:.0%} {within[2]:.0%} bias={statistics.median(errors):+.1%}"
    )


def main() -> None:
    """Fits, prints, and writes where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the constants")
    parser.add_argument("--misses", action="store_true", help="list the runs that miss by more than 20 %%")
    options = parser.parse_args()
    rows, old = runs(), constants()
    start = {**{kind: old["moving_share"][kind] for kind in KINDS}, "load": old["load_share"]}
    shares = fit(rows, start)
    print("shares:", shares)
    held_out: list[tuple[Run, float]] = []
    for source in sorted({row.source for row in rows}):
        own = [row for row in rows if row.source == source]
        others = fit([row for row in rows if row.source != source], start)
        held_out += [(row, error(row, others)) for row in own]
        show(source, [error(row, others) for row in own])
    print("\nall runs, and each predicted with constants fitted without its source:")
    groups: dict[str, list[Run]] = defaultdict(list)
    for row in rows:
        for name in (row.confidence, f"{row.confidence}, {row.statistic}", row.group, "all"):
            groups[name].append(row)
        if row.confidence != "low":
            groups["high and medium"].append(row)
    held = {row.id: value for row, value in held_out}
    for name in sorted(groups):
        show(name, [error(row, shares) for row in groups[name]])
        show(f"  {name}, source held out", [held[row.id] for row in groups[name]])
    if options.misses:
        for row in sorted(rows, key=lambda r: error(r, shares)):
            if abs(error(row, shares)) > 0.2:
                print(f"{error(row, shares):+7.1%} {row.confidence:6s} {row.measured:7.2f} {row.id}")
    if options.write:
        trusted = [row for row in rows if row.confidence != "low"]
        kinds = sorted({row.group for row in trusted})
        data = {
            **old,
            "moving_share": {kind: shares[kind] for kind in KINDS},
            "load_share": shares["load"],
            "ranges": {
                "default": spread(trusted, shares),
                **{kind: spread([row for row in trusted if row.group == kind], shares) for kind in kinds},
            },
        }
        TARGET.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        print(f"wrote {TARGET.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
