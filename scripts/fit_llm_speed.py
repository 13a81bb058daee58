"""Fits the constants of the language models' speed on the published cases; writes `rules/speed/data/llm_speed.json`.

Every constant has a physical meaning and a prior (`rules.speed.llm.constants.PRIORS`). The fit minimises the logarithm
of predicted over measured, robustly, with each source's weight limited, and holds constants near their priors, so that
a pair of engine and memory with few cases does not run away.

    python -m scripts.fit_llm_speed            # fit and write
    python -m scripts.fit_llm_speed --check    # fit without each source in turn, print what it then predicts
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from bot.estimate import Estimator, host_cpu, placed
from rules.catalog.errors import CatalogError
from rules.evidence import workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.speed.llm.constants import PRIORS, Constants, fitted, prior
from rules.speed.llm.law import figures, sequences_held
from rules.speed.llm.request import Request, resolve
from rules.speed.llm.serving import MOST_SEQUENCES
from rules.workload import InferenceWorkload
from scripts.speed_cases import print_errors, trusted

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests/accuracy/cases/infer.jsonl"
OUT = ROOT / "rules/speed/data/llm_speed.json"

# Of what a case measured: the figure of the law, and whether the case's value is its thousandth.
KEYS = {
    "decode_tok_s": ("decode_tok_s", 1.0),
    "prefill_tok_s": ("prefill_tok_s", 1.0),
    "total_tok_s": ("total_tok_s", 1.0),
    "tpot_ms": ("tpot_s", 1e-3),
    "ttft_ms": ("ttft_s", 1e-3),
    "latency_ms": ("latency_s", 1e-3),
    "gen_tok_s_incl_prefill": ("gen_tok_s_incl_prefill", 1.0),
    "prompt_plus_gen_tok_s": ("prompt_plus_gen_tok_s", 1.0),
}
# The same measurement in another form: only the first counts.
_SAID_TWICE = {
    "tpot_ms": "decode_tok_s",
    "ttft_ms": "prefill_tok_s",
    "latency_ms": "gen_tok_s_incl_prefill",
    "prompt_plus_gen_tok_s": "latency_ms",
}
_FREE = {
    "share": 0.2,
    "unpack": 0.7,
    "layer_us": 0.6,
    "step_us": 0.6,
    "request_us": 0.6,
    "moe": 0.35,
    "moe_layer_us": 0.8,
    "allreduce_us": 0.6,
}
_FREE |= {"cache": 0.3, "sequence_us": 0.7, "compute": 0.35, "compute_moe": 0.4, "narrow": 0.25, "widened": 0.25}
_FREE |= {"attention": 0.5, "batched": 0.4, "vendor": 0.4, "bf16": 0.5}
_MOST = {"share": 0.97, "compute": 1.3}  # no kernel reads faster than the memory; 16-bit sums may beat fp32 ones
_WILD = 2.0  # errors beyond this many of `_ERROR` count as logarithms (Cauchy): a wild row moves little
_ERROR = 0.10  # what a good law leaves, as a logarithm: the scale on which priors and cases are weighed
_SOURCE_SATURATES = 12  # rows of one source beyond which another row adds little weight
_STEP = 1e-6  # of a constant's logarithm, for differences
# A card whose published runs contradict each other by a factor of two (research notes): it does not set constants.
_CONTRADICTED = ("H20 96GB",)


@dataclass(frozen=True)
class Row:
    """One measured value of one case."""

    case: str
    source: str
    key: str
    measured: float
    request: Request
    sequences: float
    holds: float
    device: str
    group: str


def rows(path: Path = CASES) -> Iterator[Row]:
    """The measured values of language models of confidence high or medium."""
    estimator = Estimator()
    for case in trusted(path, ("infer_speed",)):
        if case.get("spec_decode") not in (None, "none"):
            continue
        try:
            workload = workload_of(case)
            workload, model, device, count = placed(estimator, workload)
            if model.domain != "llm" or device is None or not isinstance(workload, InferenceWorkload):
                continue
            request = resolve(workload, model, device, count, host_cpu(estimator, workload), Constants({}))
        except (CatalogError, UnsupportedWorkload):
            continue
        if request.family == "other":  # what stands for engines without cases is not fitted on single ones
            continue
        holds = sequences_held(request, device, workload)
        stated = workload.concurrency or workload.batch
        for key in KEYS:
            value = case["measured"].get(key)
            if not value or (key in _SAID_TWICE and case["measured"].get(_SAID_TWICE[key])):
                continue
            if key == "latency_ms" and case["measured"].get("decode_tok_s"):
                continue
            total = key == "total_tok_s" and stated is None
            sequences = min(holds, MOST_SEQUENCES) * request.replicas if total else request.sequences
            source = case["source"]["repo"] or case["source"]["where"]
            yield Row(
                case["id"], source, key, float(value), request, sequences, holds, device.name, group_of(key, request)
            )


def group_of(key: str, request: Request) -> str:
    """The group whose residuals give this figure's range."""
    if request.family in ("cpu", "cpu_server"):
        return "cpu"
    if request.family == "hybrid":
        return "hybrid"
    if key in ("prefill_tok_s", "ttft_ms"):
        return "prefill"
    return "decode" if request.sequences == 1 and key != "total_tok_s" else "load"


def predicted(row: Row, constants: Constants) -> float:
    """What the law says for the row, in the row's own unit."""
    request = object.__new__(Request)
    for name in Request.__slots__:
        object.__setattr__(request, name, constants if name == "constants" else getattr(row.request, name))
    name, unit = KEYS[row.key]
    return figures(request, row.sequences, row.holds)[name] / unit


class _Recorder(dict[str, float]):
    """Notes which constants a prediction asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return default


def names_of(found: Iterable[Row]) -> list[str]:
    """The constants that the rows depend on."""
    asked: set[str] = set()
    for row in found:
        recorder = _Recorder()
        predicted(row, Constants(recorder))
        asked |= recorder.asked
    return sorted(name for name in asked if prior_of(name) > 0)


def prior_of(name: str) -> float:
    """The prior of a constant by its full name."""
    head, *rest = name.split(".")
    if head in ("narrow", "vendor", "bf16"):
        return PRIORS[name]
    return prior(head, rest[0], ".".join(rest[1:]))


def fit(found: list[Row], names: list[str], near: Mapping[str, float] | None = None) -> dict[str, float]:
    """Constants that minimise the robust logarithmic error of `found`, held near their priors.

    `near` is where the search begins (else at the priors).
    """
    per_source = Counter(row.source for row in found)
    weights = [
        (0.3 if row.device in _CONTRADICTED else 1.0) / math.sqrt(1 + per_source[row.source] / _SOURCE_SATURATES)
        for row in found
    ]
    start = np.array([math.log(prior_of(name)) for name in names])
    free = np.array([_FREE[name.partition(".")[0]] for name in names])

    of_row = [set(names_of([row])) for row in found]
    touched = [[i for i, asked in enumerate(of_row) if name in asked] for name in names]

    def robust(index: int, constants: Constants) -> float:
        row = found[index]
        error = math.log(predicted(row, constants) / row.measured) / _ERROR
        return math.copysign(weights[index] * _WILD * math.sqrt(math.log1p((error / _WILD) ** 2)), error)

    def residuals(theta: np.ndarray) -> np.ndarray:
        constants = Constants({name: math.exp(value) for name, value in zip(names, theta, strict=True)})
        return np.concatenate([[robust(i, constants) for i in range(len(found))], (theta - start) / free])

    def jacobian(theta: np.ndarray) -> np.ndarray:
        """Differences of the rows alone that ask for a constant: most ask for few."""
        values = {name: math.exp(value) for name, value in zip(names, theta, strict=True)}
        now = residuals(theta)
        slopes = np.zeros((len(now), len(names)))
        for column, name in enumerate(names):
            constants = Constants({**values, name: math.exp(theta[column] + _STEP)})
            for i in touched[column]:
                slopes[i, column] = (robust(i, constants) - now[i]) / _STEP
            slopes[len(found) + column, column] = 1 / free[column]
        return slopes

    most = np.array([math.log(_MOST.get(name.partition(".")[0], math.inf)) for name in names])
    begin = start if near is None else np.array([math.log(near[name]) for name in names])
    solved = least_squares(
        residuals,
        np.minimum(begin, most - 1e-6),
        jacobian,
        max_nfev=30 if near is None else 8,
        bounds=(-math.inf, most),
    )
    return {name: float(math.exp(value)) for name, value in zip(names, solved.x, strict=True)}


def standing() -> list[tuple[str, str, str, float, float]]:
    """(source, case, key, predicted, measured) of every row, by the constants in use."""
    return [(row.source, row.case, row.key, predicted(row, fitted()), row.measured) for row in rows()]


def leave_one_source_out() -> list[tuple[str, str, str, float, float]]:
    """(source, case, key, predicted, measured) of every row, by constants fitted without its source."""
    found = list(rows())
    names = names_of(found)
    whole = fit(found, names)
    told = []
    for source in sorted({row.source for row in found}):
        values = fit([row for row in found if row.source != source], names, whole)
        constants = Constants(values)
        told += [(source, r.case, r.key, predicted(r, constants), r.measured) for r in found if r.source == source]
    return told


def _spreads(found: list[Row]) -> dict[str, float]:
    """Ranges from the errors of rows whose source was left out: what a question about unseen runs must expect."""
    groups = {(row.case, row.key): row.group for row in found}
    by_group: dict[str, list[float]] = {}
    for _, case, key, told, measured in leave_one_source_out():
        by_group.setdefault(groups[case, key], []).append(abs(math.log(told / measured)))
    spreads = {group: math.expm1(float(np.quantile(errors, 0.8))) for group, errors in sorted(by_group.items())}
    spreads["other"] = max(spreads.values())
    return {group: round(value, 3) for group, value in spreads.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave each source out in turn; writes nothing")
    parser.add_argument("--worst", type=int, default=0, help="print so many of the largest errors")
    args = parser.parse_args()
    found = list(rows())
    if args.check:
        told = leave_one_source_out()
        groups = {(r.case, r.key): r.group for r in found}
        for source in sorted({t[0] for t in told}):
            print_errors(source, [(p, m) for s, _, _, p, m in told if s == source])
        for group in sorted(set(groups.values())):
            print_errors(f"left out: {group}", [(p, m) for _, c, k, p, m in told if groups[(c, k)] == group])
        return
    names = names_of(found)
    values = fit(found, names)
    constants = Constants(values)
    for group in sorted({row.group for row in found}):
        print_errors(group, [(predicted(r, constants), r.measured) for r in found if r.group == group])
    for key in KEYS:
        print_errors(key, [(predicted(r, constants), r.measured) for r in found if r.key == key])
    for error, row in sorted(((predicted(r, constants) / r.measured - 1, r) for r in found), key=lambda e: -abs(e[0]))[
        : args.worst
    ]:
        print(f"{error:+.2f}  {row.key:18} {row.measured:10.2f}  {row.request.family:8} {row.device:24} {row.case}")
    counted = Counter(name for row in found for name in names_of([row]))
    OUT.write_text(
        json.dumps(
            {
                "about": "Constants of rules.speed.llm, fitted by scripts/fit_llm_speed.py on published cases.",
                "cases": len({row.case for row in found}),
                "values": len(found),
                "constants": {name: float(f"{value:.4g}") for name, value in values.items()},
                "rows_behind": {name: counted[name] for name in names},
                "spread": _spreads(found),
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
