"""The speed part of the accuracy report: errors by area, engine and class of device, and with each source left out.

A law of speed is known by its fit script, which offers `standing()` (predictions with the constants in use) and
`leave_one_source_out()` (with constants fitted without the row's source); both give (source, case, key, predicted,
measured). Leaving sources out takes minutes, so its rows are kept in `tests/accuracy/speed_left_out.json` with a digest
of what they depend on, and made again when that has changed:

    python -m scripts.accuracy_speed
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bot.estimate import Estimator
from bot.evaluate_scores import Errors
from scripts.accuracy_lines import JUDGED_FROM, Line, percent

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/accuracy/cases"
LEFT_OUT = ROOT / "tests/accuracy/speed_left_out.json"
SMALLEST_GROUP = 5
LENIENCE = 1.5  # a source that the fit has not seen may miss by so many times the target

# Fit script and the constants that it writes.
LAWS = {
    "scripts.fit_llm_speed": "rules/speed/data/llm_speed.json",
    "scripts.fit_media_speed": "rules/speed/data/media_speed.json",
    "scripts.fit_training_speed": "rules/speed/data/training_speed.json",
}
# Area of the report: the most that the median error may be, and what other tools reach on these cases.
TARGETS = {
    "single-stream decode": 0.09,
    "prefill": 0.18,
    "under load": 0.18,
    "encoders": 0.25,
    "vision": 0.25,
    "diffusion": 0.25,
    "Whisper": 0.25,
    "CPU": 0.25,
    "training tokens/s": 0.15,
}
PEERS = {
    "single-stream decode": "llmfit 17 % (llama.cpp)",
    "under load": "aiconfigurator 15 % (29 of 36 points, only cards it has tables for)",
    "training tokens/s": "ftuneai 45 %",
}
_DECODE_WITHIN_20 = 0.85
_AREAS = {"encoder": "encoders", "seq2seq": "encoders", "dual-encoder": "encoders", "audio": "Whisper"}
_PREFILL = ("prefill_tok_s", "ttft_ms")
_LOAD = ("total_tok_s", "requests_s", "gen_tok_s_incl_prefill", "prompt_plus_gen_tok_s")

Row = tuple[str, str, str, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """One measured speed beside its prediction, with the groups that it belongs to."""

    area: str
    error: float
    labels: Mapping[str, str]
    source: str
    case: str


def points(rows: Iterable[Row]) -> list[Point]:
    """Rows of the laws with their groups."""
    known, estimator = _cases(), _estimator()
    found = []
    for source, name, key, predicted, measured in rows:
        case = known[name]
        labels = {
            "engine": str(case.get("engine") or case.get("framework")),
            "device class": estimator.gpu_class(case),
            "devices": "one" if (case.get("n_gpus") or 1) == 1 else "several",
        }
        if case.get("method"):
            labels["method"] = str(case["method"])
        found.append(Point(area_of(case, key), predicted / measured - 1, labels, source, name))
    return found


def area_of(case: Mapping[str, Any], key: str) -> str:
    """The line of the report that a measured value counts in."""
    if case["kind"] in ("train_speed", "train_memory"):
        return "training tokens/s" if key == "tokens_per_s_per_gpu" else "training, samples or steps"
    domain = _domain(str(case.get("model")))
    if (case.get("cpu") and not case.get("gpu")) or str(case.get("gpu")).lower().startswith("cpu"):
        return "CPU"
    if domain != "llm":
        return _AREAS.get(domain, domain)
    if key in _PREFILL:
        return "prefill"
    many = (case.get("concurrency") or case.get("batch") or 1) > 1
    return "under load" if many or key in _LOAD else "single-stream decode"


def standing() -> list[Point]:
    """Every speed that the laws predict, with the constants in use."""
    return points(row for law in laws() for row in importlib.import_module(law).standing())


def left_out() -> list[Point]:
    """The same with each row's source left out of the fit, as kept in the file."""
    kept = json.loads(LEFT_OUT.read_text("utf-8"))
    return points((s, c, k, p, m) for law in laws() if law in kept for s, c, k, p, m in kept[law]["rows"])


def stale() -> list[str]:
    """Laws whose kept rows are of other constants, cases or another fit than today's."""
    kept = json.loads(LEFT_OUT.read_text("utf-8")) if LEFT_OUT.exists() else {}
    return [law for law in laws() if kept.get(law, {}).get("digest") != digest(law)]


def refresh() -> None:
    """Leaves each source out again for the laws that changed, and keeps the rows."""
    kept = json.loads(LEFT_OUT.read_text("utf-8")) if LEFT_OUT.exists() else {}
    for law in stale():
        before = digest(law)
        rows = importlib.import_module(law).leave_one_source_out()
        kept[law] = {
            "digest": before,
            "rows": [(s, c, k, float(f"{p:.5g}"), float(f"{m:.5g}")) for s, c, k, p, m in rows],
        }
        lines = (f" {json.dumps(name)}: {_law_text(kept[name])}" for name in sorted(kept))
        LEFT_OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _law_text(kept: Mapping[str, Any]) -> str:
    rows = ",\n  ".join(json.dumps(row) for row in kept["rows"])
    return f'{{"digest": {json.dumps(kept["digest"])}, "rows": [\n  {rows}\n ]}}'


def laws() -> list[str]:
    """The fit scripts of the laws that there are."""
    return [law for law, constants in LAWS.items() if (ROOT / constants).exists()]


def digest(law: str) -> str:
    """What the rows with sources left out depend on: the constants (which the fit makes of law and cases)."""
    text = (ROOT / LAWS[law]).read_bytes()
    return hashlib.sha256(text).hexdigest()[:16]


def speed_lines() -> list[Line]:
    """Each area's target and what was reached, with the constants in use and with sources left out."""
    found = []
    now, apart = _by_area(standing()), _by_area(left_out())
    for area, limit in TARGETS.items():
        for name, errors, most in (
            (f"speed, {area}", now.get(area), limit),
            (f"speed, {area}, source left out", apart.get(area), limit * LENIENCE),
        ):
            if errors is None or errors.median is None:
                continue
            target, reached = f"median ≤ {percent(most)}", f"median {percent(errors.median)}"
            met = errors.median <= most
            if area == "single-stream decode" and most == limit:
                target += f", within 20 % ≥ {percent(_DECODE_WITHIN_20, 0)}"
                reached += f", within 20 % {percent(errors.within_20)}"
                met = met and (errors.within_20 or 0.0) >= _DECODE_WITHIN_20
            found.append(Line(name, errors.count, target, reached, met if errors.count >= JUDGED_FROM else None))
    return found


_HEAD = (
    "| group | rows | median | 90th percentile | within 10 % | within 20 % | within 25 % | bias |",
    "|---" * 8 + "|",
)


def speed_sections() -> Iterator[str]:
    """The sections of the report on speed."""
    now, apart = standing(), left_out()
    yield ""
    yield "## Speed"
    yield ""
    yield "Measured speeds of confidence high and medium. With “source left out”, a row is predicted by constants that"
    yield "were fitted without any row of its source. Other tools' figures are medians over all collected cases."
    if stale():
        yield ""
        yield "The rows with sources left out are of constants before the last fit of: " + ", ".join(stale()) + "."
    yield ""
    yield "| area | rows | median | 90th percentile | within 20 % | left out: median | within 20 % | other tools |"
    yield "|---" * 8 + "|"
    by_area, by_area_apart = _by_area(now), _by_area(apart)
    for area in _ordered(by_area):
        e, a = by_area[area], by_area_apart.get(area)
        cells = [area, str(e.count), percent(e.median), percent(e.p90), percent(e.within_20, 0)]
        cells += [percent(a.median if a else None), percent(a.within_20 if a else None, 0), PEERS.get(area, "")]
        yield f"| {' | '.join(cells)} |"
    for area in _ordered(by_area):
        rows = [point for point in now if point.area == area]
        yield ""
        yield f"### Speed: {area}"
        yield ""
        yield from _HEAD
        yield _row("all", [point.error for point in rows])
        yield from _groups(rows)
        sources = [point for point in apart if point.area == area]
        for source in _frequent(point.source for point in sources):
            yield _row(f"left out: {source}", [point.error for point in sources if point.source == source])


def _groups(rows: list[Point]) -> Iterator[str]:
    for dimension in ("engine", "method", "device class", "devices"):
        told = [point for point in rows if dimension in point.labels]
        if len({point.labels[dimension] for point in told}) > 1:
            for label in _frequent(point.labels[dimension] for point in told):
                yield _row(f"{dimension}: {label}", [p.error for p in told if p.labels[dimension] == label])


def _row(name: str, errors: list[float]) -> str:
    e = Errors.of(errors)
    bias = "-" if e.bias is None else f"{100 * e.bias:+.1f} %"
    shares = [percent(share, 0) for share in (e.within_10, e.within_20, e.within_25)]
    return f"| {' | '.join([name, str(e.count), percent(e.median), percent(e.p90), *shares, bias])} |"


def _frequent(labels: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return sorted((label for label, n in counts.items() if n >= SMALLEST_GROUP), key=lambda k: (-counts[k], k))


def _by_area(rows: Iterable[Point]) -> dict[str, Errors]:
    found: dict[str, list[float]] = {}
    for point in rows:
        found.setdefault(point.area, []).append(point.error)
    return {area: Errors.of(errors) for area, errors in found.items()}


def _ordered(areas: Mapping[str, Errors]) -> list[str]:
    first = [area for area in TARGETS if area in areas]
    return first + sorted(area for area in areas if area not in TARGETS)


@cache
def _cases() -> Mapping[str, Mapping[str, Any]]:
    files = (CASES / f"{name}.jsonl" for name in ("train", "infer"))
    cases = (json.loads(line) for file in files for line in file.read_text("utf-8").splitlines())
    return {case["id"]: case for case in cases if case["kind"] != "infer_memory"}


@cache
def _estimator() -> Estimator:
    return Estimator()


@cache
def _domain(model: str) -> str:
    from rules.catalog.errors import CatalogError

    try:
        return str(_estimator().catalogue.find_model(model).spec.domain)
    except CatalogError:
        return "llm"


def main() -> int:
    """Leaves sources out where something changed and prints the lines."""
    refresh()
    for line in speed_lines():
        print(f"{line.name:50.50} {line.count:4}  {line.target:30} {line.reached:40} {line.met}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
