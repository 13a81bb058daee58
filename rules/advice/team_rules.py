"""A team's own constraints: typed expressions over one option, from the policy file ("no consumer cards on premises").

Each constraint has an id, an expression that is true for what must not be proposed, and the team's own reason. The
expressions are read by the `rule-engine` library, which knows only the names below: no code is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from rules.policy import PolicyError, TeamConstraint
from rules.records import dataclass

# What an expression may name, and of which type; a value that is not known (a price, a provider) is null.
TEXTS = ("device", "vendor", "tier", "kind", "where", "provider", "region", "purchase", "form_factor", "memory_type")
NUMBERS = ("devices", "memory_gib", "watts", "release_year", "usd_per_hour", "usd_per_month", "price_usd")


@dataclass(frozen=True, slots=True)
class Broken:
    """A constraint that an option breaks. `certain` is False where a value that it needs is not known."""

    constraint: TeamConstraint
    certain: bool = True


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    from rule_engine import Context, DataType, EngineError, Rule, type_resolver_from_dict  # late: few teams have any

    kinds = {**dict.fromkeys(TEXTS, DataType.STRING), **dict.fromkeys(NUMBERS, DataType.FLOAT)}
    context = Context(type_resolver=type_resolver_from_dict(kinds), default_value=None)
    try:
        return Rule(expression, context=context)
    except EngineError as error:
        known = ", ".join((*TEXTS, *NUMBERS))
        raise PolicyError(f"[[constraint]] {expression!r}: {error.message}; it may name: {known}") from error


def check(constraints: Sequence[TeamConstraint]) -> None:
    """Raises `PolicyError` for the first expression that cannot be read or names something unknown."""
    for each in constraints:
        _compiled(each.exclude)


def broken(facts: Mapping[str, str | float | None], constraints: Sequence[TeamConstraint]) -> tuple[Broken, ...]:
    """The constraints that an option with these facts breaks, or may break where a fact is not known."""
    if not constraints:
        return ()
    from rule_engine import EngineError

    found = []
    for each in constraints:
        try:
            if _compiled(each.exclude).matches(facts):
                found.append(Broken(each))
        except EngineError:  # a comparison with something that is not known
            found.append(Broken(each, certain=False))
    return tuple(found)
