"""Recipes: what a training framework does by default, read from `data/recipes.toml` (columns explained there)."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from rules.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Defaults of one framework; see the data file for the meaning of each field."""

    name: str = "default"
    precision: str
    master_when_sharded: bool
    grad_bytes: int
    optimizer: str
    step: str
    optimizer_in_backward: bool
    in_backward_optimizers: list[str]
    adapter_bytes: int
    adapter_casts: bool
    autocast: bool
    mixed_is_autocast: bool
    adapter_dropout: bool
    kbit_fp32: bool
    double_quant: bool
    norm: str
    loss: str
    logits_held: bool
    logits_extra: float
    adapts_experts: bool
    gradients_kept: bool
    sdpa_mask: bool
    packed: bool
    capped_tokens: int
    checkpointing: str
    checkpointing_on: str
    attention: str
    checkpoint_offload: bool
    untied_head: bool
    keeps_inputs: bool
    fused_qkv: bool
    repeats_kv: bool
    gathers_all: bool
    gathers_ahead: bool
    fused_mlp: bool
    zero_stage: int
    statistic: str
    family: str


@cache
def _eras() -> tuple[dict[str, Any], ...]:
    return tuple(_data().get("era", ()))


@cache
def _rows() -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    data = _data()
    return data["default"], tuple(data["recipe"])


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = tomli.loads(files("rules.memory.data").joinpath("recipes.toml").read_text(encoding="utf-8"))
    return data


_VERSION = re.compile(r"([a-z][a-z_\-]*)[ =@:v]*(\d+(?:\.\d+)*)")


def _versions(framework: str, version: str) -> dict[str, tuple[int, ...]]:
    """Versions named in a text such as "torch 2.1.0, bitsandbytes 0.41.1"; a bare number is the framework's own."""
    found = {
        {"bnb": "bitsandbytes"}.get(name.strip("-_"), name.strip("-_")): _numbers(number)
        for name, number in _VERSION.findall(version.lower())
    }
    bare = re.match(r"\s*v?(\d+(?:\.\d+)+)", version)
    if bare:
        found[framework.lower()] = _numbers(bare.group(1))
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:4] if len(part) < 9)


@cache
def find_recipe(framework: str | None, version: str | None) -> Recipe:
    """The recipe of a framework as people name it; the default one where nothing matches."""
    default, rows = _rows()
    name = (framework or "").lower()
    versions = _versions(name, version or "")
    for row in rows:
        if not all(word in name for word in row["match"]) or not any(word in name for word in row.get("any", [""])):
            continue
        if not _before(row, versions):
            continue
        if any(versions.get(lib, (0,)) < _numbers(limit) for lib, limit in row.get("since", {}).items()):
            continue
        return _recipe(default, row, versions)
    return _recipe(default, {}, versions)


def _before(row: dict[str, Any], versions: dict[str, tuple[int, ...]]) -> bool:
    """True where every library that `before` names is known to be older."""
    return all(versions.get(lib, (1 << 30,)) < _numbers(limit) for lib, limit in row.get("before", {}).items())


def _recipe(default: dict[str, Any], row: dict[str, Any], versions: dict[str, tuple[int, ...]]) -> Recipe:
    """The row over what its family did at these versions, over the default."""
    known = {f.name for f in fields(Recipe)}
    family = row.get("family", default["family"])
    old = [era for era in _eras() if era["family"] == family and _before(era, versions)]
    merged = {k: v for part in (default, *old, row) for k, v in part.items() if k in known}
    return Recipe(**merged)
