"""The clock: the only way in which time enters what is stored."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return datetime.now(UTC)


class SteppedClock:
    """A clock that stands still until it is moved, for tests."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """The moment to which it was moved last."""
        return self._now

    def move(self, by: timedelta) -> None:
        """Moves the time; a negative span moves it back, as real clocks are set back."""
        self._now += by


def to_us(moment: datetime) -> int:
    """Microseconds since 1970, exactly; `moment` has a time zone."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def from_us(moment_us: int) -> datetime:
    """The moment of so many microseconds since 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=moment_us)
