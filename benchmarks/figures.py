"""The command line that the benchmarks share: measures, prints a table, and the same figures as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping


def run(about: str | None, measure: Callable[[int], Mapping[str, float]], repeats: int, repeats_help: str) -> None:
    """Prints what `measure` finds for the number of repeats asked for; `about` is the benchmark's own docstring."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    parser.add_argument("--json", action="store_true", help="print JSON alone")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"{repeats_help} (default {repeats})")
    args = parser.parse_args()
    figures = {name: round(value, 3) for name, value in measure(args.repeats).items()}
    if not args.json:
        for name, value in figures.items():
            print(f"{name:34}{value:>10.2f}")
    print(json.dumps(figures))
