"""Fits the constants of the inference memory laws to published cases and writes their residuals as ranges.

    python scripts/fit_inference_memory.py [--write] [CASES]

Each constant is the median of what the cases imply for it, because a few published figures are wrong by a lot and a
median does not care. Printed: the constants, the error of every measured key, and the errors when the constants come
from all sources but the one being predicted. With --write the constants and each engine's residual quantiles go to
rules/memory/data/inference_fit.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError
from rules.catalog.models import ModelSpec
from rules.evidence import workload_of
from rules.memory.errors import UnsupportedWorkload
from rules.memory.inference import fitted, inference_footprint, inference_total_bytes
from rules.memory.inference.request import resolve
from rules.units import GIB
from rules.workload import InferenceWorkload

ROOT = Path(__file__).resolve().parent.parent
FIT = ROOT / "rules/memory/data/inference_fit.json"
KEYS = {
    "weights_gib": "weights",
    "kv_gib": "kv",
    "compute_buffer_gib": "compute_buffer",
    "activation_peak_gib": "activation_peak",
    "non_torch_gib": "non_torch",
    "cuda_graph_gib": "cuda_graphs",
}
# Shares of measurements below and above the range, and the fewest for which an engine gets a range of its own.
TAIL = 0.1
FEWEST = 6


@dataclass(frozen=True)
class Row:
    """One case with what it resolves to."""

    case: Mapping[str, Any]
    workload: InferenceWorkload
    model: ModelSpec
    device: Accelerator | None

    @property
    def source(self) -> str:
        """The repository or page that published the case."""
        return str(self.case["source"].get("repo") or self.case["source"].get("where"))

    @property
    def trusted(self) -> bool:
        """False for cases whose settings were partly guessed."""
        return bool(self.case["confidence"] != "low")


def read_rows(path: Path) -> list[Row]:
    """The inference-memory cases of text models in a file of cases."""
    catalogue = Catalogue.load()
    rows = []
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["kind"] != "infer_memory" or case.get("domain") not in (None, "llm", "vlm"):
            continue
        try:
            model = catalogue.find_model(case["model"], case.get("params_b")).spec
        except CatalogError:
            continue
        workload = workload_of(case)
        if model.domain == "llm" and isinstance(workload, InferenceWorkload):
            rows.append(Row(case, workload, model, _device(catalogue, case)))
    return rows


def _device(catalogue: Catalogue, case: Mapping[str, Any]) -> Accelerator | None:
    name = str(case.get("gpu") or "").split("+")[0].strip()
    if not name or name.lower().startswith("cpu"):
        return None
    try:
        return catalogue.find_accelerator(name, case.get("gpu_mem_gib"))
    except CatalogError:
        return None


def predict(row: Row) -> dict[str, float]:
    """Every key of `measured` that the laws predict."""
    found = inference_footprint(row.workload, row.model, row.device)
    result = {key: found.components[name] / GIB for key, name in KEYS.items() if name in found.components}
    result["cpu_weights_gib"] = found.cpu_bytes / GIB
    if found.kv_cache_tokens is not None:
        result["kv_cache_tokens"] = found.kv_cache_tokens
    total = inference_total_bytes(found, row.case.get("statistic"), row.case["engine"])
    result["total_gib"] = total.expected / GIB
    return {key: value for key, value in result.items() if row.case["measured"].get(key) is not None}


def use(constants: Mapping[str, float], spread: Mapping[str, Sequence[float]]) -> None:
    """Makes the laws read these constants instead of the file's."""
    fitted._data = lambda: {"constants": dict(constants), "spread": dict(spread)}  # type: ignore[assignment]
    for cached in (fitted.constant, fitted.constant_bytes, fitted._spread):
        cached.cache_clear()


def _engine_fact(row: Row, name: str) -> Any:
    return getattr(resolve(row.workload, row.model, row.device).engine, name)


def _ranks(row: Row) -> int:
    request = resolve(row.workload, row.model, row.device)
    return request.tp * request.pp


def _short_eager(row: Row) -> bool:
    """Runtimes whose peak is weights and cache: a prompt too short for the forward pass to matter."""
    short = (row.case.get("input_len") or 10**6) <= 64
    return _engine_fact(row, "family") == "eager" and not _engine_fact(row, "all_logits") and short


def _eager_on_card(row: Row) -> bool:
    # Front ends with scratch buffers of their own say nothing about what PyTorch's allocator keeps.
    return _engine_fact(row, "name") == "transformers" and row.case.get("statistic") == "device"


@dataclass(frozen=True)
class Target:
    """A constant, the measured key that shows it, the rows that count, and how a residual moves it."""

    name: str
    key: str
    rows: Callable[[Row], bool]
    scale: str = "add"  # add: the residual in GiB; ratio: measured over predicted; share: residual of the allocated


TARGETS = (
    Target("sampler_bytes_per_logit", "activation_peak_gib", lambda r: not r.model.vision_params, "ratio"),
    Target("non_torch_gib", "non_torch_gib", lambda r: _ranks(r) == 1 and not _engine_fact(r, "counts_context")),
    Target("communicator_gib", "non_torch_gib", lambda r: _ranks(r) > 1 and not _engine_fact(r, "counts_context")),
    Target("counted_context_gib", "non_torch_gib", lambda r: _ranks(r) == 1 and _engine_fact(r, "counts_context")),
    Target("eager_base_gib", "total_gib", lambda r: r.case.get("statistic") == "allocated" and _short_eager(r)),
    Target("cached_share", "total_gib", _eager_on_card, "share"),
    Target("process_gib", "total_gib", lambda r: r.case.get("statistic") == "rss" and r.device is None),
)


def _moves(row: Row, target: Target, constants: Mapping[str, float], found: float) -> bool:
    """True where the constant, and not another term, sets this row's figure."""
    use({**constants, target.name: constants[target.name] * 1.01}, {"default": [0.1, 0.1]})
    moved = predict(row)[target.key]
    use(constants, {"default": [0.1, 0.1]})
    return moved > found


def fit(rows: Iterable[Row], start: Mapping[str, float]) -> dict[str, float]:
    """The constants that the rows imply; one that no row shows keeps its start value."""
    constants = dict(start)
    known = [row for row in rows if row.trusted]
    for target in TARGETS:
        use(constants, {"default": [0.1, 0.1]})
        implied = []
        for row in known:
            measured = row.case["measured"].get(target.key)
            if measured is None or not target.rows(row):
                continue
            found = predict(row)[target.key]
            if target.scale == "ratio":
                if _moves(row, target, constants, found):
                    implied.append(constants[target.name] * measured / found)
            elif target.scale == "share":
                live = inference_footprint(row.workload, row.model, row.device).components["allocated"] / GIB
                implied.append(max(0.0, constants[target.name] + (measured - found) / live))
            else:
                implied.append(max(0.0, constants[target.name] + measured - found))
        if implied:
            constants[target.name] = round(statistics.median(implied), 3)
    return constants


def errors(rows: Iterable[Row]) -> dict[str, list[tuple[float, Row]]]:
    """Relative errors by measured key."""
    found: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    for row in rows:
        try:
            predicted = predict(row)
        except UnsupportedWorkload:
            continue
        for key, value in predicted.items():
            measured = row.case["measured"][key]
            if measured:
                found[key].append((value / measured - 1, row))
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """The value at a share of the sorted values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spreads(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Shares below and above the expected total between which all but the tails of the measurements lie."""
    by_engine: dict[str, list[float]] = defaultdict(list)
    for error, row in errors(rows)["total_gib"]:
        ratio = 1 / (1 + error)
        by_engine[_engine_fact(row, "name")].append(ratio)
        by_engine["default"].append(ratio)
    result = {}
    for engine, ratios in sorted(by_engine.items()):
        if len(ratios) >= FEWEST:
            low, high = quantile(ratios, TAIL), quantile(ratios, 1 - TAIL)
            result[engine] = [round(max(0.02, 1 - low), 3), round(max(0.02, high - 1), 3)]
    return result


def report(title: str, found: Mapping[str, list[tuple[float, Row]]]) -> None:
    """Prints count, median and 90th percentile of the absolute error of each key."""
    print(title)
    for key, pairs in sorted(found.items()):
        trusted = [abs(error) for error, row in pairs if row.trusted]
        if trusted:
            middle, tail = statistics.median(trusted), quantile(trusted, 0.9)
            print(f"  {key:22} n={len(trusted):4}  median {middle:7.2%}  p90 {tail:8.2%}")


def main() -> None:
    """Fits, prints, and writes where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="?", type=Path, default=ROOT / "tests/accuracy/cases/infer.jsonl")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = read_rows(options.cases)
    start = json.loads(FIT.read_text("utf-8"))["constants"]
    left_out: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    for source in sorted({row.source for row in rows}):
        use(fit([row for row in rows if row.source != source], start), {"default": [0.1, 0.1]})
        for key, pairs in errors(row for row in rows if row.source == source).items():
            left_out[key] += pairs
    constants = fit(rows, start)
    use(constants, {"default": [0.1, 0.1]})
    print(json.dumps(constants, indent=2))
    report("fitted on all sources", errors(rows))
    report("each source predicted from the others", left_out)
    spread = spreads([row for row in rows if row.trusted])
    if options.write:
        FIT.write_text(json.dumps({"constants": constants, "spread": spread}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
