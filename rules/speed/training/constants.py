"""Constants of the law of training speed: physical priors, and what `scripts/fit_training_speed.py` made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

# share: of the 16-bit peak that large products reach on a device with the A100's peak; narrow: how that falls
# as the peak grows; the rest are factors on it, shares, bytes or microseconds as named.
PRIORS: Mapping[str, float] = {
    "share": 0.75,
    "narrow": 0.4,
    "tuned": 1.1,
    "benchmark": 1.15,
    "tuned_traffic": 0.4,
    "slimmer": 0.1,
    "other_vendor": 0.6,
    "eight_bit": 0.75,
    "four_bit": 0.5,
    "experts": 0.6,
    "attention": 0.6,
    "traffic": 3.0,
    "fused": 0.6,
    "scores": 4.0,
    "layer_us": 250.0,
    "adapter": 1.8,
    "unpack": 2.0,
    "link": 0.6,
    "width": 0.7,
    "filled": 0.8,
    "reach": 0.6,
}


@cache
def fitted() -> Mapping[str, Any]:
    """The file that the fit wrote: `constants`, `spread` and where they come from."""
    text = files("rules.speed.data").joinpath("training_speed.json").read_text("utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def constants() -> Mapping[str, float]:
    """Fitted constants by name."""
    return {**PRIORS, **fitted()["constants"]}


@cache
def given() -> Mapping[str, Mapping[str, Any]]:
    """Facts and assumptions of `data/training.toml` by section."""
    text = files("rules.speed.data").joinpath("training.toml").read_text("utf-8")
    data: dict[str, Mapping[str, Any]] = tomli.loads(text)
    return data
