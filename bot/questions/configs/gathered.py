"""The facts of all parts of a message, each with the part that says it most bindingly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from bot.questions.configs.config_read import Entry, Fact
from bot.questions.configs.convert import Unread, convert
from bot.questions.configs.tables import Family, Row, plain_key
from bot.questions.parsed import Problem
from rules.records import dataclass

NAMES_OF_MODELS = ("model", "gguf", "tag")
SHOWN_VALUE = 40
_RANKS = {"document": 1, "python": 1, "environment": 2, "launcher": 2, "command": 3}  # a higher one beats


@dataclass
class Gathered:
    """Facts of every part so far, with the families that gave them."""

    facts: dict[str, Fact] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    families: list[Family] = field(default_factory=list)
    frameworks: list[tuple[str, Fact]] = field(default_factory=list)
    extra: dict[str, Fact] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    reads_name_as: str = "model"
    trains: bool = False
    loads: Fact | None = None

    def add(self, entries: Iterable[Entry], family: Family, kind: str, own: dict[str, Row] | None = None) -> None:
        rank = _RANKS[kind]
        for entry in entries:
            key = entry.key if own and entry.key in own else plain_key(entry.key)
            row = (own or {}).get(key) or family.keys.get(key)
            if kind == "environment":
                row = family.env.get(entry.key)
            if row is None or row.fact == "ignored":
                continue
            try:
                value = convert(entry.value, row.reads_as)
            except Unread as error:
                shown = str(error)[:SHOWN_VALUE]
                self.problems.append(Problem("config_value_unread", None, {"key": key, "value": shown}))
                continue
            if value is None or (row.reads_as in NAMES_OF_MODELS and entry.value is True):
                continue
            self.put(row.fact, Fact(value, entry.start, entry.end), rank)
            if row.fact == "model" and row.reads_as in NAMES_OF_MODELS:
                self.reads_name_as = row.reads_as

    def put(self, name: str, fact: Fact, rank: int) -> None:
        if rank >= self.ranks.get(name, -1):
            self.facts[name], self.ranks[name] = fact, rank
