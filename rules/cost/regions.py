"""Whether a provider's region lies where the user wants it. The region `any` names no place and satisfies none."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import tomli


def satisfies(region: str, location: str | None) -> bool:
    """True where `region` is in `location`: a union ("eu"), a country (ISO 3166 or its name) or the region itself."""
    if not location:
        return True
    return _within(region.strip().lower(), location.strip().lower())


@cache
def _within(region: str, location: str) -> bool:
    table = _table()
    wanted = table["names"].get(location, location)
    if region == "any":
        return False
    if region == wanted:
        return True
    country = _countries().get(region)
    return country is not None and (country == wanted or country in table["union"].get(wanted, ()))


@cache
def _countries() -> dict[str, str]:
    return {region: country for country, regions in _table()["country"].items() for region in regions}


@cache
def _table() -> dict[str, Any]:
    return tomli.loads(resources.files("rules.cost").joinpath("data/regions.toml").read_text("utf-8"))
