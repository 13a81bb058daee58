"""Compares the training memory law with the exact traces of `traces.jsonl`.

    python -m tests.accuracy.trace_comparison            # table
    python -m tests.accuracy.trace_comparison --worst 20 # the lines that disagree most, phase by phase

A pure reader: it needs no torch. The law gets the model row of each line, so the catalogue is not asked.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.law import footprint
from rules.wire import read
from rules.workload import ModelRef, TrainingWorkload

TRACES = Path(__file__).with_name("traces.jsonl")
MEDIAN_LIMIT = 0.03
P90_LIMIT = 0.08
_FAMILIES = ("llama", "qwen", "gemma", "gpt2", "mixtral", "bert")

Law = Callable[[TrainingWorkload, ModelSpec], Footprint]


@dataclass(frozen=True, slots=True)
class Difference:
    """One line: what was traced, what the law says (None where it is unsupported), in bytes."""

    id: str
    family: str
    method: str
    traced_bytes: int
    law_bytes: float | None
    traced_phases: Mapping[str, int]
    law_phases: Mapping[str, float]

    @property
    def error(self) -> float | None:
        """Signed relative error of the law against the trace."""
        return None if self.law_bytes is None else self.law_bytes / self.traced_bytes - 1


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of one group: how many lines, how many of them the law answers, median and 90th percentile of |error|."""

    group: str
    count: int
    answered: int
    median: float
    p90: float
    bias: float


def read_traces(path: Path = TRACES) -> list[dict[str, Any]]:
    """The committed lines, in their order."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def workload_of_trace(line: Mapping[str, Any]) -> TrainingWorkload:
    """The workload of one line; the model is given beside it, so its reference is only a name."""
    words = {key: {"value": tuple(v) if isinstance(v, list) else v} for key, v in line["workload"].items()}
    return read(TrainingWorkload, {"model": ModelRef(name=line["model"]["hf_id"]), **words})


def family_of(line: Mapping[str, Any]) -> str:
    """The architecture family of one line."""
    name = str(line["request"]["shape"])
    return next(family for family in _FAMILIES if family in name)


def compare(law: Law, traces: Iterable[Mapping[str, Any]]) -> list[Difference]:
    """The law's allocated peak beside the traced one, line by line."""
    return list(_differences(law, traces))


def _differences(law: Law, traces: Iterable[Mapping[str, Any]]) -> Iterator[Difference]:
    for line in traces:
        try:
            found = law(workload_of_trace(line), ModelSpec.from_row(line["model"], origin="config"))
            expected, phases = found.allocated.expected, dict(found.phases)
        except UnsupportedWorkload:
            expected, phases = None, {}
        method = line["workload"]["method"] + ("-autocast" if line["workload"]["mixed_precision"] else "")
        yield Difference(line["id"], family_of(line), method, line["peak_bytes"], expected, line["phases"], phases)


def summaries(differences: Sequence[Difference]) -> list[Summary]:
    """One summary over all lines, then one for each family, each method and each pair of them."""
    groups: dict[str, list[Difference]] = defaultdict(list)
    for difference in differences:
        groups["all"].append(difference)
        groups[difference.family].append(difference)
        groups[difference.method].append(difference)
    for difference in differences:
        groups[f"{difference.family} {difference.method}"].append(difference)
    return [_summary(name, group) for name, group in groups.items()]


def _summary(name: str, group: Sequence[Difference]) -> Summary:
    signed = sorted(d.error for d in group if d.error is not None)
    errors = sorted(map(abs, signed))
    return Summary(name, len(group), len(errors), _at(errors, 0.5), _at(errors, 0.9), _at(signed, 0.5))


def _at(ordered: Sequence[float], share: float) -> float:
    """A percentile by linear interpolation; infinite where there is nothing."""
    if not ordered:
        return float("inf")
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def table(found: Iterable[Summary]) -> str:
    """The summaries as a Markdown table, errors in per cent."""
    rows = ["| group | traces | answered | median % | p90 % | bias % |", "|---|---|---|---|---|---|"]
    rows += [
        f"| {s.group} | {s.count} | {s.answered} | {100 * s.median:.1f} | {100 * s.p90:.1f} | {100 * s.bias:+.1f} |"
        for s in found
    ]
    return "\n".join(rows)


def main() -> None:
    """Prints the table; with `--worst N` also the lines that differ most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=TRACES)
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    differences = compare(footprint, read_traces(options.traces))
    print(table(summaries(differences)))
    worst = sorted(differences, key=lambda d: -abs(d.error or 0.0))[: options.worst]
    for d in worst:
        phases = {k: f"{v / 2**30:.2f}" for k, v in d.traced_phases.items()}
        law = {k: f"{v / 2**30:.2f}" for k, v in d.law_phases.items()}
        print(f"{d.id:60} {100 * (d.error or 0.0):+6.1f} %  traced {phases}  law {law}")


if __name__ == "__main__":
    main()
