"""The fitted constants of the laws of speed, with what stands in where a pair of engine and memory was never measured.

`data/llm_speed.json` is written by `scripts/fit_llm_speed.py`: every constant has a physical meaning and a prior, and
its count of cases beside it. Keys are `name.family[.class]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import tomli

from rules.records import dataclass

# What each constant means, and the value that holds until cases move it; `*` stands for any family.
PRIORS: dict[str, float] = {
    "share.*.gddr": 0.90,  # share of peak bandwidth that reading weights reaches
    "share.*.hbm": 0.70,
    "share.*.unified": 0.78,
    "share.*.cpu": 0.65,
    "unpack.*.16": 0.0,  # fp32 operations to widen one weight
    "unpack.*.8": 1.0,
    "unpack.*.4": 3.0,
    "unpack.*.2": 6.0,
    "layer_us.*": 40.0,  # fixed time of a layer: launches, norms, small kernels
    "layer_us.eager": 20.0,
    "layer_us.server": 25.0,
    "layer_us.stalling": 1000.0,
    "step_us.*": 200.0,  # fixed time of a step: the host's loop, sampling, what no layer repeats
    "step_us.server": 800.0,
    "step_us.server_early": 2500.0,
    "request_us.*": 2000.0,  # what a request costs before its prompt runs: protocol, tokenising, queue
    "request_us.server": 20000.0,
    "moe.*": 1.2,  # routed experts are read at a lower share than dense weights
    "moe_layer_us.*": 20.0,  # routing, sorting and gathering beside the experts' products
    "allreduce_us.*": 10.0,  # latency of one all-reduce for each doubling of the devices
    "cache.*": 1.2,  # cached keys and values are read at a lower share than weights
    "sequence_us.*": 15.0,  # scheduling, sampling and detokenising of one sequence and step
    "compute.*.gddr": 0.65,  # share of the peak that prefill's products reach
    "compute.*.hbm": 0.50,
    "compute.*.unified": 0.45,
    "compute.*.cpu": 0.40,
    "compute.ggml.gddr": 0.80,
    "compute.ggml.hbm": 0.25,
    "compute.server.hbm": 0.60,
    "compute.native.gddr": 1.0,  # sums in 16 bits, at twice the rate of sums in 32
    "compute.eager.gddr": 0.85,
    "compute_moe.*": 0.45,  # the same for routed experts, relative
    "narrow.8": 0.75,  # share of the 8-bit peak, relative to the share of the 16-bit peak
    "narrow.4": 0.45,
    "widened.*.8": 0.9,  # prefill with weights that are widened first, relative
    "widened.*.4": 0.85,
    "widened.*.2": 0.7,
    "widened.cpu.2": 0.4,
    "attention.*": 0.6,  # attention's products, relative to the weights'
    "attention.early": 0.15,
    "batched.*": 0.6,  # products of a decode step over a batch, relative to prefill's
    "bf16.vulkan": 0.4,  # bf16 weights where the driver has no bf16 matrix instructions, relative
    "vendor.amd": 0.6,  # software on other vendors' matrix units, relative
    "vendor.intel": 0.45,
}


@dataclass(frozen=True, slots=True)
class Constants:
    """Values by name; `of` falls back from the family to the prior of any family."""

    values: Mapping[str, float]

    def of(self, name: str, family: str, kind: str = "") -> float:
        """The constant `name` of a family of engines, and of a class of memory or width where it has one."""
        tail = f".{kind}" if kind else ""
        key = f"{name}.{family}{tail}"
        found = self.values.get(key)
        return found if found is not None else prior(name, family, kind)

    def plain(self, name: str) -> float:
        """A constant that no family has of its own."""
        found = self.values.get(name)
        return found if found is not None else PRIORS[name]


def prior(name: str, family: str, kind: str = "") -> float:
    """The value before any case is seen."""
    tail = f".{kind}" if kind else ""
    own = PRIORS.get(f"{name}.{family}{tail}")
    return own if own is not None else PRIORS[f"{name}.*{tail}"]


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rules.speed").joinpath("data/llm_speed.json").read_text("utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@cache
def fitted() -> Constants:
    """The constants as the last fit left them."""
    return Constants(_data()["constants"])


def spread(group: str) -> float:
    """Half-width of the range as a factor less one: what eight of ten rows of unseen sources keep to in `group`."""
    spreads: Mapping[str, float] = _data()["spread"]
    return spreads.get(group, spreads["other"])


@cache
def engine_table() -> Mapping[str, Any]:
    """Families of engines and what divides them by age."""
    text = resources.files("rules.speed").joinpath("data/engines.toml").read_text("utf-8")
    return tomli.loads(text)
