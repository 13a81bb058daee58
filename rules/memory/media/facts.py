"""Facts and fitted constants of the media laws, read once from `memory/data/media.toml` and `media_fit.json`.

The files say where each figure comes from. Families and engines are found by words of a name: the first table whose
`match` word occurs in the name wins, and the table called `default` answers for everything else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import tomli

from rules.records import dataclass
from rules.units import GIB


@cache
def tables() -> dict[str, Any]:
    """The facts of media.toml."""
    return tomli.loads(resources.files("rules.memory").joinpath("data/media.toml").read_text("utf-8"))


@cache
def fitted() -> dict[str, Any]:
    """The constants of media_fit.json, written by scripts/fit_media_memory.py."""
    loaded: dict[str, Any] = json.loads(
        resources.files("rules.memory").joinpath("data/media_fit.json").read_text("utf-8")
    )
    return loaded


def matching(section: str, name: str) -> tuple[str, Mapping[str, Any]]:
    """Key and table of `section` whose words occur in `name` (any case); `default` where none does."""
    text = name.lower()
    rows: dict[str, Mapping[str, Any]] = tables()[section]
    for key, row in rows.items():
        if key != "default" and any(word in text for word in row.get("match", (key,))):
            return key, row
    return "default", rows.get("default", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How an engine holds a model; see the comments of media.toml."""

    name: str
    statistic: str
    runtime: str
    eager: bool
    cross_per_beam: bool
    quantises_tables: bool
    score_copies: float
    beams: int
    speech_beams: int
    batch: int
    highest_bits: int | None = None
    kv_bytes: float | None = None
    score_bytes: float | None = None
    quantises_after_loading: bool = False

    def runtime_bytes(self, on_cpu: bool) -> float:
        """What the process holds before any tensor: driver context and libraries, or the interpreter on a CPU."""
        row = fitted()["runtime_gib"][self.runtime]
        return float(row["cpu" if on_cpu else "gpu"]) * GIB


@lru_cache(maxsize=128)
def engine(name: str | None) -> Engine:
    """The engine of that name; an unknown one behaves like plain torch."""
    key, row = matching("engine", name or "")
    merged = {k: v for k, v in {**tables()["engine"]["default"], **row}.items() if k != "match"}
    return Engine(name=key, **merged)


def anchored(anchors: list[list[float]], params_millions: float, column: int) -> float:
    """A power law through anchors [parameters, value...], between the two nearest; one anchor scales with the root."""
    x = max(params_millions, 1e-3)
    if len(anchors) == 1:
        return float(anchors[0][column] * math.sqrt(x / anchors[0][0]))
    above = next((i for i, row in enumerate(anchors) if row[0] >= x), len(anchors) - 1)
    low, high = anchors[max(0, above - 1)], anchors[max(1, above)]
    slope = math.log(high[column] / low[column]) / math.log(high[0] / low[0])
    return float(low[column] * (x / low[0]) ** slope)
