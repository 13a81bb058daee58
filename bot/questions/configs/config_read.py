"""What a pasted config, command or memory error says: `ConfigRead`, and the entries and facts on the way there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from bot.questions.parsed import Problem, Span
from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value as the text `start:end` gives them; nested keys are joined by dots."""

    key: str
    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A value in our words, and the part of the text that gave it."""

    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Told:
    """A field of the question with its value and the fact that it rests on."""

    field: str
    value: Any
    fact: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRead:
    """What the config parts of a message say.

    `families` are the kinds that were read (axolotl, vllm, oom…), the leading one first. `fields` and `extra` have the
    names of `Parsed`. `rest` is the message without those parts; spans count in the message as it came.
    """

    families: tuple[str, ...]
    rest: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    spans: tuple[Span, ...] = ()
    problems: tuple[Problem, ...] = ()
