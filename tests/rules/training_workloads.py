"""Makers of training workloads for the tests of the memory law."""

from __future__ import annotations

from functools import cache
from typing import Any

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Footprint
from rules.memory.training import training_footprint
from rules.workload import Given, Hardware, ModelRef, TrainingWorkload

GIB = 2**30
LLAMA_3_8B = "meta-llama/Meta-Llama-3-8B"
LLAMA_2_7B = "meta-llama/Llama-2-7b-hf"
LLAMA_2_13B = "meta-llama/Llama-2-13b-hf"


@cache
def model(name: str) -> ModelSpec:
    """A model of the catalogue."""
    return Catalogue.load().find_model(name).spec


def workload(name: str = LLAMA_3_8B, devices: int = 1, **fields: Any) -> TrainingWorkload:
    """A workload with plain values for its fields; None leaves a field unsaid."""
    given = {key: Given(value) for key, value in fields.items() if value is not None}
    return TrainingWorkload(model=ModelRef(name=name), hardware=(Hardware(name="A100", count=devices),), **given)


def footprint(name: str = LLAMA_3_8B, devices: int = 1, **fields: Any) -> Footprint:
    """The footprint of such a workload."""
    return training_footprint(workload(name, devices, **fields), model(name), None)


def gib(name: str = LLAMA_3_8B, devices: int = 1, **fields: Any) -> float:
    """Its allocated peak in GiB."""
    return footprint(name, devices, **fields).allocated.expected / GIB


def part(found: Footprint, name: str) -> float:
    """Bytes of one part of the peak, 0 where it has none."""
    return sum(p.bytes for p in found.parts if p.name == f"training_part_{name}")
