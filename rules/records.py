"""Frozen dataclasses that are quick to make.

The standard decorator compiles six methods a class; of some hundred and fifty classes that is half the start-up time
of a command. This one leaves comparison, hash and text to shared functions and is otherwise the standard decorator, and
type checkers see it as that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter

    _OWN = ("__eq__", "__hash__", "__repr__")

    def dataclass(cls=None, /, **options):
        """`dataclasses.dataclass`, with shared `__eq__`, `__hash__` and `__repr__` where the class has none."""

        def made(cls):
            if not options.get("frozen") or any(name in cls.__dict__ for name in _OWN):
                return dataclasses.dataclass(**options)(cls)
            return _with_shared(dataclasses.dataclass(**options, repr=False, eq=False)(cls))

        return made if cls is None else made(cls)

    def _with_shared(cls):
        fields = dataclasses.fields(cls)
        compared = tuple(field.name for field in fields if field.compare)
        shown = tuple(field.name for field in fields if field.repr)
        values = attrgetter(*compared) if compared else lambda record: ()

        def equal(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def hashed(self):
            return hash((cls, values(self)))

        def text(self):
            return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

        cls.__eq__, cls.__hash__, cls.__repr__ = equal, hashed, text
        return cls


__all__ = ("dataclass",)
