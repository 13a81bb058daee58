"""What was understood of a question: `Parsed`, with the words that gave each field and what is still missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Intent = Literal["fit", "recommend", "capacity", "cost", "compare", "time", "concept", "benchmark", "unclear", "help"]
Lang = Literal["en", "es"]


@dataclass(frozen=True, slots=True)
class Span:
    """The words `text[start:end]` of the cleaned question gave `field`; `confidence` is between 0 and 1."""

    field: str
    start: int
    end: int
    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the question that cannot be right: a message id with its parameters, and the field it spoils."""

    id: str
    field: str | None = None
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One understood question.

    `fields` holds what the text says, in the words of the published-case schema; `extra` holds stated facts outside
    that list (image size, epochs, sharding…). `ask` names missing fields that matter, the most decisive first, and
    `assumed` the defaults taken for missing ones. Lengths are tokens, sizes billions of parameters, memory GB.
    """

    text: str
    intent: Intent
    lang: Lang
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    ask: tuple[str, ...] = ()
    assumed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    spans: tuple[Span, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The answer of `gpufit parse --json` as plain data."""
        return {
            "intent": self.intent,
            "lang": self.lang,
            "fields": dict(self.fields),
            "extra": dict(self.extra),
            "ask": list(self.ask),
            "assumed": dict(self.assumed),
            "problems": [
                {"id": p.id, "params": dict(p.params)} | ({"field": p.field} if p.field else {}) for p in self.problems
            ],
        }
