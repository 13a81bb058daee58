"""Patterns that are compiled only when a text can match them.

Compiling every word of every language would cost a cold command more than reading the question. A match must hold the
letters of one of its phrases, so a substring test (separators left out) decides which patterns are worth compiling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Protocol

EDGE_BEFORE = r"(?<![a-z0-9])"
EDGE_AFTER = r"(?![a-z0-9])"

_compiled = cache(re.compile)
_SEPARATORS = str.maketrans("", "", " -_\t\n")


class Finds(Protocol):
    """What recognisers use of a pattern."""

    def search(self, text: str, /) -> re.Match[str] | None:
        """The first match."""
        ...

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]:
        """Every match, not overlapping."""
        ...


@lru_cache(maxsize=64)
def _letters(text: str) -> str:
    return text.translate(_SEPARATORS)


def phrase_source(phrase: str) -> str:
    """Pattern source of one phrase, without word edges."""
    ending = r"[a-z]{0,12}" if phrase.endswith("*") else ""
    return r"[\s\-_]{0,2}".join(re.escape(w) for w in phrase.rstrip("*").split(" ")) + ending


def whole_source(phrase: str) -> str:
    """Pattern source of one phrase as whole words."""
    return EDGE_BEFORE + phrase_source(phrase) + EDGE_AFTER


class Alternatives:
    """Any of many phrases, each compiled by itself when a text holds its letters; leftmost match, then the longest
    match, then the longest phrase.

    `source_of` makes the pattern of a phrase; `always` is a pattern that is tried on every text, after the phrases.
    """

    def __init__(
        self,
        options: Iterable[str],
        source_of: Callable[[str], str] = whole_source,
        always: str | None = None,
    ) -> None:
        self._needles = [(_letters(option.rstrip("*")), option) for option in sorted(set(options), key=_longest_first)]
        self._source_of = source_of
        self._always = always

    def _patterns(self, text: str) -> Iterator[re.Pattern[str]]:
        letters = _letters(text)
        for needle, option in self._needles:
            if needle in letters:
                yield _compiled(self._source_of(option))
        if self._always is not None:
            yield _compiled(self._always)

    def search(self, text: str, /) -> re.Match[str] | None:
        """The leftmost match, the longest of those."""
        found = [m for pattern in self._patterns(text) for m in [pattern.search(text)] if m]
        return min(found, key=_order) if found else None

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]:
        """Matches from left to right, not overlapping."""
        end = 0
        for m in sorted((m for pattern in self._patterns(text) for m in pattern.finditer(text)), key=_order):
            if m.start() >= end:
                yield m
                end = m.end()


def _longest_first(phrase: str) -> tuple[int, str]:
    return -len(phrase), phrase


def _order(match: re.Match[str]) -> tuple[int, int]:
    return match.start(), -match.end()


class Needing:
    """A pattern that can only match a text that holds one phrase of each group; compiled when first a text does."""

    def __init__(self, source: str, *groups: Sequence[str]) -> None:
        self._source = source
        self._groups = [[_letters(phrase.rstrip("*")) for phrase in group] for group in groups]

    def _possible(self, text: str) -> bool:
        letters = _letters(text)
        return all(any(needle in letters for needle in group) for group in self._groups)

    def search(self, text: str, /) -> re.Match[str] | None:
        """The first match."""
        return _compiled(self._source).search(text) if self._possible(text) else None

    def finditer(self, text: str, /) -> Iterator[re.Match[str]]:
        """Every match."""
        return _compiled(self._source).finditer(text) if self._possible(text) else iter(())
