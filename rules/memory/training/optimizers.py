"""Optimizers: bytes that live between steps, and bytes that a step needs for a moment.

The table is `data/optimizers.toml`; an unknown name falls back on AdamW and the caller is told.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import tomli

from rules.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """One row of the table; see the file for the meaning of each column."""

    name: str
    states: int
    state_bytes: float | None = None
    temporaries: int = 0
    largest: int = 0
    fused_only: bool = False
    cpu: bool = False
    low_rank: int | None = None
    matrices_only: bool = False

    def bytes_per_param(self, weight_bytes: float, stated_bytes: float | None) -> float:
        """State bytes a trained parameter; `weight_bytes` is the type of the weights the optimizer updates."""
        value = self.state_bytes if self.state_bytes is not None else (stated_bytes or weight_bytes)
        return self.states * value


@cache
def _table() -> dict[str, Optimizer]:
    rows = tomli.loads(files("rules.memory.data").joinpath("optimizers.toml").read_text(encoding="utf-8"))
    table: dict[str, Optimizer] = {}
    for name, row in rows.items():
        aliases = row.pop("aliases", [])
        optimizer = Optimizer(name=name, **row)
        for alias in (name, *aliases):
            table[alias] = optimizer
    return table


@cache
def find_optimizer(name: str) -> tuple[Optimizer, bool]:
    """The optimizer of that name and whether the name is known; words of the name decide where the whole does not."""
    table = _table()
    key = name.strip().lower().replace("-", "_").replace(" ", "_").replace("torch.optim.", "")
    if key in table:
        return table[key], True
    paged, eight, four = "paged" in key, "8bit" in key or "8_bit" in key, "4bit" in key or "4_bit" in key
    suffix = "_8bit" if eight else "_4bit" if four else ""
    for stem in (
        "ademamix",
        "adafactor",
        "adalomo",
        "lomo",
        "lion",
        "muon",
        "shampoo",
        "galore",
        "prodigy",
        "adam",
        "sgd",
    ):
        if stem in key:
            base = "adamw" if stem == "adam" else stem
            for candidate in (f"{'paged_' if paged else ''}{base}{suffix}", f"{base}{suffix}", base):
                if candidate in table:
                    return table[candidate], True
    return table["adamw"], False
