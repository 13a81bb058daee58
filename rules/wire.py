"""The edge where data from outside becomes rules' types and back: strict validation and JSON by pydantic.

The types themselves are frozen standard dataclasses, so that ranking thousands of candidates and starting the command
stay cheap; pydantic is imported only when something is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class WireError(ValueError):
    """Data from outside that does not fit the type; the text names the field and what is wrong with it."""


_adapters: dict[Any, Any] = {}


def _adapter(kind: Any) -> Any:
    if kind not in _adapters:
        from pydantic import ConfigDict, TypeAdapter

        if not hasattr(kind, "__pydantic_config__"):
            kind.__pydantic_config__ = ConfigDict(extra="forbid")
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """Validates plain data into `kind`; raises `WireError` naming the first wrong field."""
    from pydantic import ValidationError

    try:
        result: T = _adapter(kind).validate_python(data)
    except ValidationError as exc:
        first = exc.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "value")
        raise WireError(f"{place}: {first['msg']}") from exc
    return result


def plain(value: Any) -> Any:
    """The JSON-ready form (dicts, lists, strings, numbers) of one of rules' types."""
    return _adapter(type(value)).dump_python(value, mode="json", exclude_none=True)
