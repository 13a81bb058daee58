"""Records of conversations and studies as JSON text, and back the same.

JSON knows fewer kinds of value than Python: what it would change (tuples, sets, decimals, dates, records, mappings)
is written as an object with one key that names its kind. Only the records listed here are ever built, each from exactly
its own fields, so a stored text can make nothing else; one of another version raises `StateUnreadable`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Any, TypeVar

from bot.store.errors import StateUnreadable

T = TypeVar("T")


@cache
def _records() -> Mapping[str, type]:
    from bot.questions.dialogue import Conversation, Turn
    from bot.questions.open_points import Choice, Point
    from bot.questions.parsed import Beaten, Parsed, Problem, Span
    from rules.cost.study import PurchaseStudy, StudyMeasurement
    from rules.cost.types import Amount, AmountRange, CostLine, OwnershipCost
    from rules.memory.footprint import Note

    kinds = (Conversation, Turn, Choice, Point, Beaten, Parsed, Problem, Span, Note)
    money = (PurchaseStudy, StudyMeasurement, Amount, AmountRange, CostLine, OwnershipCost)
    return {kind.__name__: kind for kind in (*kinds, *money)}


def to_text(value: Any) -> str:
    """The value as JSON text; raises `TypeError` for a kind that cannot be kept and `ValueError` for NaN."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_text(text: str, kind: type[T]) -> T:
    """The value again; raises `StateUnreadable` where the text is none or holds another kind."""
    try:
        value = _value(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError, InvalidOperation) as exc:
        raise StateUnreadable(f"{kind.__name__}: {exc}") from exc
    if not isinstance(value, kind):
        raise StateUnreadable(f"{kind.__name__}: holds {type(value).__name__}")
    return value


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(item) for item in value]}
    if isinstance(value, frozenset):
        return {"set": sorted((_plain(item) for item in value), key=lambda item: json.dumps(item))}
    if isinstance(value, Mapping):
        return {"map": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if type(value) is date:
        return {"date": value.isoformat()}
    name = type(value).__name__
    if dataclasses.is_dataclass(value) and _records().get(name) is type(value):
        return {"record": [name, {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}]}
    raise TypeError(f"{name} cannot be stored")


def _value(plain: Any) -> Any:
    if isinstance(plain, list):
        return [_value(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    ((tag, inner),) = plain.items()
    return _BUILDERS[tag](inner)


def _record(inner: Any) -> Any:
    name, fields = inner
    kind = _records()[name]
    known = {f.name for f in dataclasses.fields(kind)}
    if fields.keys() != known:
        raise ValueError(f"{name} has other fields: {', '.join(sorted(fields.keys() ^ known))}")
    return kind(**{key: _value(item) for key, item in fields.items()})


_BUILDERS: Mapping[str, Callable[[Any], Any]] = {
    "tuple": lambda inner: tuple(map(_value, inner)),
    "set": lambda inner: frozenset(map(_value, inner)),
    "map": lambda inner: {_value(key): _value(item) for key, item in inner},
    "decimal": Decimal,
    "date": date.fromisoformat,
    "float": float,
    "record": _record,
}
