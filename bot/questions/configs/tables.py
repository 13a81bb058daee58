"""The families' tables: which key says what, which program is whose. A new key is a line in `tables/<family>.toml`.

A row is `key = "fact as"`: the fact's name in our words, and how its value is read (a name of `convert.CONVERSIONS`).
Other entries of a table: `framework` and `task` (what a config of this family says by itself), `signature` (keys that
tell the family), `programs` (patterns of its commands), `positional` (row of a command's first plain word),
`takes_config` (that word is a file), `overrides` (a command takes key=value), `by_keys` (the program is any script, so
the options decide the family), `secondary` (says how a run is split; another config names the trainer),
`without_adapter` (the method where no adapter is named), `least` (options that a bare fragment needs),
`[env]` (environment variables) and `[calls]` (Python calls with rows of their own; `first` is the first plain
argument, `says` a fact that the call itself gives).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from rules.records import dataclass

_FOLDER = Path(__file__).with_name("tables")
NAMES = ("axolotl", "llama_factory", "torchtune", "huggingface", "deepspeed", "accelerate",
         "vllm", "sglang", "tgi", "llama_cpp", "ollama")  # fmt: skip
LAUNCHER = "accelerate"


@dataclass(frozen=True, slots=True)
class Row:
    """What a key says: the fact and how to read its value."""

    fact: str
    reads_as: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One tool's table."""

    name: str
    framework: str
    task: str
    keys: Mapping[str, Row]
    signature: frozenset[str]
    programs: tuple[str, ...]
    env: Mapping[str, Row]
    calls: Mapping[str, Mapping[str, Any]]
    positional: Row | None
    takes_config: bool
    overrides: bool
    by_keys: bool
    secondary: bool
    without_adapter: str | None
    needs_model_for_method: bool
    least: int

    def score(self, keys: frozenset[str]) -> int:
        """How much these keys look like this family; 0 where none is its own."""
        own = len(keys & self.signature)
        return 3 * own + sum(k in self.keys for k in keys) if own else 0


@cache
def families() -> Mapping[str, Family]:
    """Every family by name."""
    return {name: _family(name) for name in NAMES}


@cache
def values() -> Mapping[str, Mapping[str, str]]:
    """The tools' words for number formats, optimizers and attention -> ours."""
    return tomli.loads((_FOLDER / "values.toml").read_text("utf-8"))


def row(text: str) -> Row:
    """Reads a table's row."""
    fact, reads_as = text.split()
    return Row(fact, reads_as)


def plain_key(key: str) -> str:
    """A key for comparison: without leading dashes; long ones in lower case with underscores."""
    bare = key.lstrip("-").rstrip("?!,;:)").replace("-", "_")
    return bare if key.startswith("-") and not key.startswith("--") and len(bare) == 1 else bare.lower()


def likeliest(keys: frozenset[str], among: tuple[str, ...] = NAMES) -> Family | None:
    """The family that these keys look like most; None where no key tells one."""
    best = max((families()[name] for name in among), key=lambda f: f.score(keys))
    return best if best.score(keys) else None


@cache
def _table(name: str) -> Mapping[str, Any]:
    return tomli.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))


def _family(name: str) -> Family:
    table = _table(name)
    base = _table(table["extends"]) if "extends" in table else {}
    keys = {**base.get("keys", {}), **table["keys"]}
    return Family(
        name=name,
        framework=table["framework"],
        task=table["task"],
        keys={key: row(text) for key, text in keys.items()},
        signature=frozenset(table["signature"]),
        programs=tuple(table["programs"]),
        env={key: row(text) for key, text in table.get("env", {}).items()},
        calls=table.get("calls", {}),
        positional=row(table["positional"]) if "positional" in table else None,
        takes_config=table.get("takes_config", False),
        overrides=table.get("overrides", False),
        by_keys=table.get("by_keys", False),
        secondary=table.get("secondary", False),
        without_adapter=table.get("without_adapter"),
        needs_model_for_method=table.get("needs_model_for_method", False),
        least=table.get("least", 1),
    )
