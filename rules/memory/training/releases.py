"""Which versions of the libraries were current in a month, for reports that say when but not which version."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import tomli


@cache
def _releases() -> dict[str, list[tuple[str, str]]]:
    text = files("rules.memory.data").joinpath("releases.toml").read_text(encoding="utf-8")
    return {library: sorted(months.items()) for library, months in tomli.loads(text).items()}


@cache
def versions_of_month(month: str) -> str:
    """The newest releases up to a month ("2023-07"), as "torch 2.0, transformers 4.31"; "" before the first."""
    current = {
        library: [version for released, version in releases if released <= month]
        for library, releases in _releases().items()
    }
    return ", ".join(f"{library} {versions[-1]}" for library, versions in current.items() if versions)
