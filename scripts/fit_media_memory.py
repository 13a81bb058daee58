"""Fits the constants of the media memory laws to published runs and writes rules/memory/data/media_fit.json.

    python scripts/fit_media_memory.py [--write]

Every constant starts from a physical guess and is held to it by a weak prior, so that a constant that no run speaks of
keeps its guess. Prints the error of all runs and, leaving one source out at a time, of the runs of that source.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.evidence import workload_of
from rules.memory.media import inference_footprint, media_total_bytes
from rules.memory.media.facts import fitted
from rules.units import to_gib
from rules.workload import InferenceWorkload

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "accuracy" / "cases" / "infer.jsonl"
TARGET = ROOT / "rules" / "memory" / "data" / "media_fit.json"
PRIOR_WEIGHT = 0.05

# Where each constant lives, its physical guess, and the constants that share it.
CONSTANTS: dict[str, tuple[float, tuple[tuple[str, ...], ...]]] = {
    "torch_gpu": (0.35, (("runtime_gib", "torch", "gpu"),)),
    "torch_cpu": (0.5, (("runtime_gib", "torch", "cpu"),)),
    "ct2_gpu": (0.7, (("runtime_gib", "ctranslate2", "gpu"), ("runtime_gib", "faster-whisper", "gpu"))),
    "ct2_cpu": (0.3, (("runtime_gib", "ctranslate2", "cpu"),)),
    "faster_whisper_cpu": (0.8, (("runtime_gib", "faster-whisper", "cpu"),)),
    "ggml_gpu": (0.4, (("runtime_gib", "ggml", "gpu"),)),
    "ggml_cpu": (0.15, (("runtime_gib", "ggml", "cpu"),)),
    "whisper_batched_tokens": (80.0, (("whisper_batched_tokens",),)),
    "vae_workspace_16bit": (1.0, (("vae_workspace_16bit",),)),
    "vae_workspace_fp32": (4.0, (("vae_workspace_fp32",),)),
    "vae_workspace_fp32_offload": (8.0, (("vae_workspace_fp32_offload",),)),
    "reserved_share_vae": (1.6, (("reserved_share_vae",),)),
}

Run = tuple[str, str, InferenceWorkload, ModelSpec, str | None, str | None, float]


def runs() -> list[Run]:
    """Published totals of models that the media laws cover: id, source, workload, model, statistic, engine, GiB."""
    found: list[Run] = []
    catalogue = Catalogue.load()
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case: dict[str, Any] = json.loads(line)
        if case["kind"] != "infer_memory" or case["measured"].get("total_gib") is None:
            continue
        model = catalogue.find_model(case["model"], case.get("params_b")).spec
        workload = workload_of(case)
        if model.domain == "llm" or not isinstance(workload, InferenceWorkload):
            continue
        source = f"{case['source']['repo']} {case['source']['where'].split(',')[0]}"
        found.append(
            (
                case["id"],
                source,
                workload,
                model,
                case.get("statistic"),
                case.get("engine"),
                case["measured"]["total_gib"],
            )
        )
    return found


def place(values: Sequence[float]) -> None:
    """Puts the constants where the laws read them."""
    for value, (_, paths) in zip(values, CONSTANTS.values(), strict=True):
        for path in paths:
            spot = fitted()
            for key in path[:-1]:
                spot = spot[key]
            spot[path[-1]] = float(value)


def predicted_gib(run: Run) -> float:
    """The law's expected total of one run."""
    _, _, workload, model, statistic, engine, _ = run
    return to_gib(media_total_bytes(inference_footprint(workload, model, None), statistic, engine).expected)


def fit(sample: Sequence[Run]) -> list[float]:
    """Constants that minimise relative errors; a configuration that is reported several times counts once."""
    guesses = np.array([guess for guess, _ in CONSTANTS.values()])
    weights = np.array([1 / np.sqrt(sum(abs(o[6] - r[6]) < 0.02 and o[1] == r[1] for o in sample)) for r in sample])

    def residuals(scales: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        place(list(guesses * scales))
        errors = np.array([np.log(predicted_gib(run) / run[6]) for run in sample])
        return np.concatenate([errors * weights, PRIOR_WEIGHT * (scales - 1)])

    found = least_squares(residuals, np.ones(len(guesses)), bounds=(0.05, 4.0), loss="soft_l1", f_scale=0.1)
    return [float(v) for v in guesses * found.x]


def summary(errors: Sequence[float]) -> str:
    """Median and 90th percentile of absolute relative errors."""
    ordered = sorted(abs(e) for e in errors)
    p90 = ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]
    return f"n {len(ordered)}, median {statistics.median(ordered):.1%}, p90 {p90:.1%}, max {ordered[-1]:.1%}"


def main() -> None:
    """Fits, prints, and writes with --write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace media_fit.json")
    options = parser.parse_args()
    every = runs()
    for source in sorted({run[1] for run in every}):
        place(fit([run for run in every if run[1] != source]))
        errors = [predicted_gib(run) / run[6] - 1 for run in every if run[1] == source]
        print(f"left out {source}: {summary(errors)}")
    values = fit(every)
    rounded = [float(f"{v:.3g}") for v in values]
    place(rounded)
    for run in every:
        print(
            f"  {run[0]:48s} {run[6]:7.2f} GiB  law {predicted_gib(run):7.2f}  {predicted_gib(run) / run[6] - 1:+.1%}"
        )
    print(f"all: {summary([predicted_gib(run) / run[6] - 1 for run in every])}")
    for name, value in zip(CONSTANTS, rounded, strict=True):
        print(f"  {name} = {value}")
    if options.write:
        TARGET.write_text(json.dumps(fitted(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
