"""What was understood of a question: `Parsed`, with the words that gave each field and what is still missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from rules.records import dataclass

Intent = Literal[
    "fit", "recommend", "capacity", "cost", "compare", "time", "concept", "benchmark", "unclear", "help", "followup"
]
Lang = str  # the code of a lexicon: en, es, …


@dataclass(frozen=True, slots=True)
class Beaten:
    """A reading that did not hold: the field and value that the words `start:end` would have given.

    `why`: `overlap` (the words were read as something more particular), `surer` or `first` (another span gave the
    field), `corrected` (a later span corrects it). Value and confidence are None for an overlap.
    """

    field: str
    value: Any
    start: int
    end: int
    confidence: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Span:
    """The words `text[start:end]` of the cleaned question gave `field` its `value`; `confidence` is between 0 and 1."""

    field: str
    start: int
    end: int
    text: str
    confidence: float
    value: Any = None
    beat: tuple[Beaten, ...] = ()


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

    def spans_json(self) -> list[dict[str, Any]]:
        """Which words gave what, and what they beat, as plain data."""
        return [dataclasses.asdict(span) for span in self.spans]
