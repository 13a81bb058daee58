"""The rules registry: small pure functions with an id and the requirement that each implements.

A rule looks at the `Facts` of one question and returns what it found, or None. What it found is a note for the reader
plus the figures that made it fire; the advice lists both, so every sentence can be traced to a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from rules.advice.judge import Judged
from rules.advice.types import Fired, Limits, Option, QuickRule
from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note, Param
from rules.policy import Policy
from rules.records import dataclass
from rules.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a rule may look at. `device` and `judged` are None where no hardware was stated or none is needed."""

    workload: Workload
    model: ModelSpec
    policy: Policy
    device: Accelerator | None = None
    count: int = 1
    judged: Judged | None = None
    options: tuple[Option, ...] = ()
    limits: Limits = field(default_factory=Limits)
    quick_rule: QuickRule | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule says and the figures behind it."""

    note: Note
    figures: Mapping[str, Param] = field(default_factory=dict)


Check = Callable[[Facts], Found | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule."""

    id: str
    requirement: str
    check: Check


_RULES: list[Rule] = []


def rule(rule_id: str, requirement: str) -> Callable[[Check], Check]:
    """Registers a check under its id; ids are unique."""

    def register(check: Check) -> Check:
        if any(known.id == rule_id for known in _RULES):
            raise ValueError(f"rule id {rule_id!r} is taken")
        _RULES.append(Rule(rule_id, requirement, check))
        return check

    return register


def registered() -> tuple[Rule, ...]:
    """Every rule, in the order of registration."""
    from rules.advice import inference_rules, training_rules  # noqa: F401 - importing registers their rules

    return tuple(_RULES)


def apply_rules(facts: Facts, rules: Iterable[Rule]) -> tuple[tuple[Note, ...], tuple[Fired, ...]]:
    """Runs every rule; returns the notes for the reader and the trace."""
    notes: list[Note] = []
    fired: list[Fired] = []
    for each in rules:
        found = each.check(facts)
        if found is not None:
            notes.append(Note(found.note.message, found.note.params, each.requirement))
            fired.append(Fired(each.id, each.requirement, {**found.note.params, **found.figures}))
    return tuple(notes), tuple(fired)
