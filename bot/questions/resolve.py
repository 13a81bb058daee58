"""Which reading of a question holds: recognisers offer spans with confidence, and this settles what contradicts.

Two kinds of conflict. *Contradiction*: two spans give one field different values; the surer one wins, of equally sure
ones the first that was read, unless a word of correction ("I mean", "digo") stands before the later one. *Overlap*:
two recognisers understand the same words; the more particular grammar reads first and keeps them. Every span remembers
what it beat and why, so that a reading can be explained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from bot.questions.parsed import Beaten, Span
from rules.records import dataclass

Why = Literal["overlap", "surer", "first", "corrected", "implied"]


@dataclass(frozen=True, slots=True)
class Shadow:
    """Words that a recogniser of `field` would have read had another not taken them first."""

    field: str
    start: int
    end: int


class Resolver:
    """Collects offers as they come; `values` are the winning ones so far."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._winner: dict[str, int] = {}
        self._spans: list[Span] = []

    def offer(self, span: Span, corrects: bool = False) -> bool:
        """Takes a span's value for its field, or not; whether it now holds."""
        index = len(self._spans)
        self._spans.append(span)
        held = self._winner.get(span.field)
        if span.field not in self.values:
            self._settle(span, index)
            return True
        if self.values[span.field] == span.value:
            if held is None:
                self._winner[span.field] = index
            return True
        if held is None:  # set by implication: words beat it
            self._settle(span, index)
            return True
        other = self._spans[held]
        if corrects or span.confidence > other.confidence:
            self._beat(index, other, "corrected" if corrects else "surer")
            self._settle(span, index)
            return True
        self._beat(held, span, "surer" if other.confidence > span.confidence else "first")
        return False

    def imply(self, field: str, value: Any) -> None:
        """Sets a field that follows from other fields and not from words of its own."""
        self.values[field] = value

    def read(self, span: Span) -> None:
        """Remembers words that helped to a value without giving one of their own."""
        self._spans.append(span)

    def spans(self, shadows: list[Shadow], final: Mapping[str, Any]) -> tuple[Span, ...]:
        """Every span that holds, with what it beat, in the order of the text; `final` are the values in the end."""
        lost = {i for i, s in enumerate(self._spans) if s.field in self._winner and self._lost(i)}
        told = []
        for i, span in enumerate(self._spans):
            if i in lost:
                continue
            overlapped = tuple(
                Beaten(shadow.field, None, shadow.start, shadow.end, None, "overlap")
                for shadow in dict.fromkeys(shadows)
                if shadow.start < span.end and span.start < shadow.end
                and shadow.field != span.field
            )  # fmt: skip
            told.append(replace(span, value=final.get(span.field, span.value), beat=(*span.beat, *overlapped)))
        return tuple(sorted(told, key=lambda s: s.start))

    def _lost(self, index: int) -> bool:
        span, winner = self._spans[index], self._winner[self._spans[index].field]
        return index != winner and span.value is not None and span.value != self._spans[winner].value

    def _settle(self, span: Span, index: int) -> None:
        self.values[span.field] = span.value
        self._winner[span.field] = index

    def _beat(self, winner: int, loser: Span, why: Why) -> None:
        beaten = Beaten(loser.field, loser.value, loser.start, loser.end, loser.confidence, why)
        self._spans[winner] = replace(self._spans[winner], beat=(*self._spans[winner].beat, *loser.beat, beaten))
