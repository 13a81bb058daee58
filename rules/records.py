"""Frozen dataclasses that are quick to make.

The standard decorator compiles six methods a class; of some hundred and fifty classes that is half the start-up time
of a command. Here the standard decorator finds the fields and makes the slots, one initialiser is compiled, and
comparison, hash, text and freezing are shared functions. Type checkers see the standard decorator, and `fields`,
`replace` and `asdict` of the standard library work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses
    from operator import attrgetter

    _OWN = ("__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__")
    _MISSING = dataclasses.MISSING
    _set = object.__setattr__

    def dataclass(cls=None, /, **options):
        """`dataclasses.dataclass`; what is frozen and has slots gets one compiled method instead of six."""

        def made(cls):
            quick = options.get("frozen") and options.get("slots") and not any(name in cls.__dict__ for name in _OWN)
            if not quick:
                return dataclasses.dataclass(**options)(cls)
            plain = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=True, kw_only=options.get("kw_only", False)
            )(cls)
            return _frozen(plain)

        return made if cls is None else made(cls)

    def _frozen(cls):
        fields = dataclasses.fields(cls)
        compared = tuple(field.name for field in fields if field.compare)
        shown = tuple(field.name for field in fields if field.repr)
        names = tuple(field.name for field in fields)
        values = attrgetter(*compared) if compared else lambda record: ()

        def equal(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        def hashed(self):
            return hash((cls, values(self)))

        def text(self):
            return f"{cls.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

        def state(self):
            return [getattr(self, name) for name in names]

        def restore(self, state):
            for name, value in zip(names, state, strict=True):
                _set(self, name, value)

        cls.__init__ = _initialiser(cls, fields)
        cls.__eq__, cls.__hash__, cls.__repr__ = equal, hashed, text
        cls.__getstate__, cls.__setstate__ = state, restore
        cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_delete
        return cls

    def _refuse_set(self, name, value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_delete(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _initialiser(cls, fields):
        """`__init__` with the fields' defaults; names of the code are those of the fields."""
        given, scope, lines = {False: [], True: []}, {"_set": _set, "_MISSING": _MISSING}, []
        for field in fields:
            name, value = field.name, field.name
            argument = name
            if field.default is not _MISSING:
                scope[f"_default_{name}"] = field.default
                argument = f"{name}=_default_{name}"
            elif field.default_factory is not _MISSING:
                scope[f"_make_{name}"] = field.default_factory
                argument, value = f"{name}=_MISSING", f"_make_{name}() if {name} is _MISSING else {name}"
            given[bool(field.kw_only)].append(argument)
            lines.append(f" _set(self, {name!r}, {value})")
        arguments = ["self", *given[False], *(["*", *given[True]] if given[True] else [])]
        if hasattr(cls, "__post_init__"):
            lines.append(" self.__post_init__()")
        exec(f"def __init__({', '.join(arguments)}):\n" + "\n".join(lines or [" pass"]), scope)
        return scope["__init__"]


__all__ = ("dataclass",)
