"""How long a recommendation over the whole catalogue takes in process, and with ten times the offers.

Each workload is one that names no hardware, so every device, count and offer is ranked. The tenfold catalogue has each
offer ten times, with other instances and prices. Prints a table, with `--json` the same figures as JSON.
"""

from __future__ import annotations

import csv
import gc
import io
import time
from importlib import resources
from statistics import median

from benchmarks.figures import run
from rules.advice.advise import advise
from rules.catalog.catalogue import Catalogue
from rules.policy import default_policy
from rules.workload import Constraints, Given, InferenceWorkload, ModelRef, Traffic, TrainingWorkload, Workload

_TIMES = 10
_FIRST_ROUNDS = 3
_PRICES = ("on_demand_usd_h", "spot_usd_h", "on_demand_eur_h", "reserved_1y_usd_h", "reserved_3y_usd_h")
_LLAMA_8B, _LLAMA_70B = "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-3.3-70B-Instruct"
WORKLOADS: tuple[Workload, ...] = (
    InferenceWorkload(model=ModelRef(name=_LLAMA_8B), traffic=Traffic(concurrency=30, ttft_ms=300)),
    InferenceWorkload(
        model=ModelRef(name="Qwen/Qwen2.5-32B"),
        traffic=Traffic(tokens_per_day=3e6),
        constraints=Constraints(location="eu"),
    ),
    InferenceWorkload(model=ModelRef(name=_LLAMA_70B), traffic=Traffic(hours_per_week=168)),
    InferenceWorkload(model=ModelRef(name="google-bert/bert-base-uncased"), traffic=Traffic(requests_per_s=20)),
    TrainingWorkload(
        model=ModelRef(name="meta-llama/Llama-2-13b-hf"), method=Given("qlora"), traffic=Traffic(hours_per_week=40)
    ),
    TrainingWorkload(model=ModelRef(name=_LLAMA_8B), method=Given("full")),
)


def with_more_offers(times: int) -> Catalogue:
    """The packaged catalogue with every offer `times` times: copies are other instances, each a little dearer."""
    text = resources.files("rules.catalog").joinpath("data/offers.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    more = []
    for copy in range(1, times):
        for row in rows:
            dearer = {name: f"{float(row[name]) * (1 + copy / 100):.4f}" for name in _PRICES if row[name]}
            more.append(row | dearer | {"instance": f"{row['instance']}-copy{copy}"})
    return Catalogue.load().with_overrides(offers=more)


def recommend_ms(catalogue: Catalogue, repeats: int) -> list[float]:
    """Milliseconds of each recommendation, `repeats` times all workloads, after one round that is not counted."""
    policy, times = default_policy(), []
    gc.collect()
    gc.freeze()
    for turn in range(repeats + 1):
        for workload in WORKLOADS:
            start = time.perf_counter()
            advise(workload, catalogue, policy)
            if turn:
                times.append(1000 * (time.perf_counter() - start))
    return times


def first_ms(times: int) -> float:
    """Milliseconds of the first round over the workloads with a catalogue just made, which still indexes its offers."""
    catalogue, policy = with_more_offers(times), default_policy()
    start = time.perf_counter()
    for workload in WORKLOADS:
        advise(workload, catalogue, policy)
    return 1000 * (time.perf_counter() - start)


def measure(repeats: int) -> dict[str, float]:
    """Median and slowest recommendation, the same with the tenfold offers, and how many times longer that is."""
    packaged, tenfold = Catalogue.load(), with_more_offers(_TIMES)
    once, more = recommend_ms(packaged, repeats), recommend_ms(tenfold, repeats)
    first, first_more = (median(first_ms(times) for _ in range(_FIRST_ROUNDS)) for times in (1, _TIMES))
    return {
        "devices": len(packaged.accelerators),
        "offers": len(packaged.offers),
        "recommend_median_ms": median(once),
        "recommend_slowest_ms": max(once),
        "tenfold_offers": len(tenfold.offers),
        "tenfold_median_ms": median(more),
        "tenfold_times": median(more) / median(once),
        "first_round_ms": first,
        "first_round_tenfold_times": first_more / first,
    }


if __name__ == "__main__":
    run(__doc__, measure, 7, "rounds over the workloads")
