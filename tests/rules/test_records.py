"""Records behave as the frozen dataclasses that they stand for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field, fields, replace
from typing import Any

import pytest

from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """Two fields, one with a default, and a list of its own."""

    a: int
    b: str = "x"
    many: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Fields by name only; a default may come first."""

    first: int = 1
    second: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Does something after it is made."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("negative")


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    """The same as `Pair`, by the standard decorator."""

    a: int
    b: str = "x"
    many: list[int] = field(default_factory=list)


def test_records_equal_by_value_and_hash_alike() -> None:
    """Equal fields are equal records of one class only, with one hash."""
    assert Pair(1) == Pair(1)
    assert Pair(1) != Pair(2)
    assert Pair(1) != Standard(1)
    assert hash(Counted(3)) == hash(Counted(3))
    assert len({Counted(1), Counted(1), Counted(2)}) == 2


def test_records_are_frozen_and_have_no_other_fields() -> None:
    """Assigning, deleting and new names are refused as the standard decorator refuses them."""
    record: Any = Pair(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del record.a
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.other = 1
    assert not hasattr(record, "__dict__")


def test_records_read_and_copy_as_dataclasses() -> None:
    """`fields`, `replace`, `asdict`, copies and pickles work; defaults of lists are not shared."""
    assert [f.name for f in fields(Pair)] == [f.name for f in fields(Standard)]
    assert replace(Pair(1), a=5) == Pair(5)
    assert dataclasses.asdict(Pair(1)) == dataclasses.asdict(Standard(1))
    assert copy.deepcopy(Pair(1, "y", [2])) == pickle.loads(pickle.dumps(Pair(1, "y", [2]))) == Pair(1, "y", [2])
    assert Pair(1).many is not Pair(1).many
    assert repr(Pair(1)) == repr(Standard(1)).replace("Standard", "Pair")


def test_records_take_their_arguments_as_declared() -> None:
    """By place or by name alone, with what is missing or unknown refused, and a check after making."""
    assert Named(second=2) == Named(first=1, second=2)
    makers: tuple[Any, ...] = (lambda: Named(2), lambda: Named(first=1), lambda: Pair(), lambda: Pair(1, c=2))  # type: ignore[call-arg, misc]
    for make in makers:
        with pytest.raises(TypeError):
            make()
    with pytest.raises(ValueError, match="negative"):
        Counted(-1)
