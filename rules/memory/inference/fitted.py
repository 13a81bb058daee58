"""Constants of the inference laws that come from published measurements, written by scripts/fit_inference_memory.py."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from rules.memory.footprint import Range
from rules.units import GIB


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        resources.files("rules.memory").joinpath("data/inference_fit.json").read_text("utf-8")
    )
    return data


@cache
def constant(name: str) -> float:
    """A fitted constant in the unit of its name; raises KeyError for a name that the fit does not know."""
    return float(_data()["constants"][name])


@cache
def constant_bytes(name_gib: str) -> float:
    """A fitted constant named in GiB, as bytes."""
    return constant(name_gib) * GIB


@cache
def _spread(engine: str) -> tuple[float, float]:
    spreads = _data()["spread"]
    below, above = spreads.get(engine, spreads["default"])
    return float(below), float(above)


def spread_range(engine: str, expected: float) -> Range:
    """Expected bytes with the range in which four of five published measurements of that engine fell."""
    return Range.around(expected, *_spread(engine))
