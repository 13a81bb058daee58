"""The state of one reading: the text with claimed words blanked out, and what they gave.

Recognisers run in a fixed order; each claims the words that it understood, so that no later one reads them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bot.questions.lexicon import Finds
from bot.questions.parsed import Lang, Problem, Span
from bot.questions.text import CleanText

_BLANK = "\x01"


class Reader:
    """Collects fields, spans and problems while recognisers claim parts of the text."""

    def __init__(self, text: CleanText, lang: Lang) -> None:
        self.shown = text.shown
        self.whole = text.folded  # untouched, for words whose context matters
        self.left = text.folded  # claimed words are blanked
        self.lang = lang
        self.fields: dict[str, Any] = {}
        self.extra: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.spans: list[Span] = []

    def search(self, pattern: Finds) -> re.Match[str] | None:
        """First match in the words that nobody has claimed."""
        return pattern.search(self.left)

    def matches(self, pattern: Finds) -> Iterator[re.Match[str]]:
        """Matches in the words that nobody has claimed."""
        return pattern.finditer(self.left)

    def claim(self, match: re.Match[str], field: str | None = None, confidence: float = 0.9) -> None:
        """Blanks the words of a match and remembers which field they gave."""
        self.claim_range(match.start(), match.end(), field, confidence)

    def claim_range(self, start: int, end: int, field: str | None = None, confidence: float = 0.9) -> None:
        """Blanks `start:end` and remembers which field it gave."""
        self.left = self.left[:start] + _BLANK * (end - start) + self.left[end:]
        if field:
            self.spans.append(Span(field, start, end, self.shown[start:end].strip(), confidence))

    def give(self, field: str, value: Any, match: re.Match[str], confidence: float = 0.9) -> None:
        """Sets a field unless an earlier part of the text already did, and claims the words."""
        self.fields.setdefault(field, value)
        self.claim(match, field, confidence)

    def give_extra(self, field: str, value: Any, match: re.Match[str], confidence: float = 0.9) -> None:
        """Sets a fact outside the field list unless already set, and claims the words."""
        self.extra.setdefault(field, value)
        self.claim(match, field, confidence)

    def has(self, pattern: Finds) -> bool:
        """Whether the whole text, claimed or not, holds a match."""
        return pattern.search(self.whole) is not None

    def problem(self, id: str, field: str | None = None, **params: Any) -> None:
        """Notes something that cannot be right."""
        self.problems.append(Problem(id, field, params))
