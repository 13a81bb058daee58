"""What a chart shows, before anybody draws it. Text is in the reader's language; values have the chart's unit.

Specifications are frozen and picklable, so that a picture may be drawn in another process.
"""

from __future__ import annotations

from typing import TypeAlias

from rules.records import dataclass

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NumberMarks:
    """Decimal and grouping marks of the reader's language."""

    decimal: str = "."
    group: str = ","


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a sum; `value` is at least 0."""

    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Level:
    """A named value that others are held against: a limit, a target."""

    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Parts of a sum, one after the other up to the total, against a limit. `description` says it without the picture.

    `total` may be more than the sum of the bars, never less.
    """

    title: str
    description: str
    unit: str
    bars: tuple[Bar, ...]
    total: Level
    limit: Level | None = None
    marks: NumberMarks = NumberMarks()

    @property
    def over(self) -> bool:
        """Whether the total is above the limit."""
        return self.limit is not None and self.total.value > self.limit.value

    @property
    def most(self) -> float:
        """The largest value on the axis; above 0."""
        return max(self.total.value, self.limit.value if self.limit else 0.0, sum(b.value for b in self.bars)) or 1.0


@dataclass(frozen=True, slots=True)
class Series:
    """A line; points by rising x."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """What lies between two lines of the same x: the range of a series."""

    label: str
    low: tuple[Point, ...]
    high: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """One point worth naming."""

    label: str
    at: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines over one axis, with a band, a horizontal target and a marked point. Axis labels carry their units."""

    title: str
    description: str
    x_label: str
    y_label: str
    lines: tuple[Series, ...]
    band: Band | None = None
    target: Level | None = None
    mark: Mark | None = None
    x_doubles: bool = False  # each step of the x axis doubles it
    marks: NumberMarks = NumberMarks()

    @property
    def x_range(self) -> Point:
        """Least and largest x; raises `ValueError` for a chart without points."""
        xs = [x for line in self.lines for x, _ in line.points]
        return min(xs), max(xs)

    @property
    def y_most(self) -> float:
        """The largest y of anything shown; above 0."""
        ys = [y for line in self.lines for _, y in line.points]
        ys += [y for _, y in self.band.high] if self.band else []
        ys += [self.target.value] if self.target else []
        return max(ys) or 1.0


Chart: TypeAlias = "BarChart | LineChart"
