"""The state of one reading: the text with claimed words blanked out, and what they gave.

Recognisers run in a fixed order, the more particular first; each claims the words that it understood, so that no later
one reads them again. Which of contradicting values holds is the resolver's matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bot.questions.lexicon import Finds, cue, decimal_comma
from bot.questions.parsed import Lang, Problem, Span
from bot.questions.resolve import Resolver, Shadow
from bot.questions.text import CleanText

BLANK = "\x01"
_CORRECTION_REACH = 24


class Reader:
    """Collects fields, spans and problems while recognisers claim parts of the text.

    With `explain`, what a recogniser would have read in words that are taken is remembered too.
    """

    def __init__(self, text: CleanText, lang: Lang, explain: bool = False) -> None:
        self.shown = text.shown
        self.whole = text.folded  # untouched, for words whose context matters
        self.left = text.folded  # claimed words are blanked
        self.lang = lang
        self.decimal_comma = decimal_comma(lang)
        self.problems: list[Problem] = []
        self.named: dict[str, list[dict[str, Any]]] = {}  # alternatives by kind, in the order in which they were said
        self._stated, self._extra = Resolver(), Resolver()
        self._explain = explain
        self._shadows: list[Shadow] = []

    @property
    def fields(self) -> dict[str, Any]:
        """The stated fields, as far as they are settled; what is set here follows from other fields."""
        return self._stated.values

    @property
    def extra(self) -> dict[str, Any]:
        """The stated facts outside the field list."""
        return self._extra.values

    @property
    def spans(self) -> tuple[Span, ...]:
        """The spans that hold, in the order of the text."""
        told = (
            *self._stated.spans(self._shadows, self.fields),
            *self._extra.spans(self._shadows, self.extra),
        )
        return tuple(sorted(told, key=lambda s: s.start))

    def search(self, pattern: Finds) -> re.Match[str] | None:
        """First match in the words that nobody has claimed."""
        return pattern.search(self.left)

    def matches(self, pattern: Finds, field: str = "") -> Iterator[re.Match[str]]:
        """Matches in the words that nobody has claimed; `field` is what they would give."""
        if self._explain and field and BLANK in self.left:
            self._shadows += [
                Shadow(field, *m.span()) for m in pattern.finditer(self.whole) if BLANK in self.left[slice(*m.span())]
            ]
        return pattern.finditer(self.left)

    def claim(self, match: re.Match[str], field: str | None = None, confidence: float = 0.9) -> None:
        """Blanks the words of a match and remembers which field they helped to."""
        self.claim_range(match.start(), match.end(), field, confidence)

    def claim_range(self, start: int, end: int, field: str | None = None, confidence: float = 0.9) -> None:
        """Blanks `start:end` and remembers which field it helped to."""
        if field:
            self.read(field, start, end, confidence)
        self.left = self.left[:start] + BLANK * (end - start) + self.left[end:]

    def read(self, field: str, start: int, end: int, confidence: float = 0.9) -> None:
        """Remembers words that helped to a field."""
        self._stated.read(self._span(field, start, end, confidence, None))

    def offer(self, field: str, value: Any, start: int, end: int, confidence: float = 0.9) -> bool:
        """Offers a field's value that the words `start:end` give, without claiming them; whether it holds."""
        return self._stated.offer(self._span(field, start, end, confidence, value), self._corrects(start))

    def give(self, field: str, value: Any, match: re.Match[str], confidence: float = 0.9) -> bool:
        """Offers a field's value and claims the words; whether the value holds."""
        holds = self.offer(field, value, *match.span(), confidence)
        self.claim(match)
        return holds

    def offer_extra(self, field: str, value: Any, start: int, end: int, confidence: float = 0.9) -> bool:
        """Offers a fact outside the field list that the words `start:end` give, without claiming them."""
        return self._extra.offer(self._span(field, start, end, confidence, value), self._corrects(start))

    def give_extra(self, field: str, value: Any, match: re.Match[str], confidence: float = 0.9) -> bool:
        """Offers a fact outside the field list and claims the words; whether it holds."""
        holds = self.offer_extra(field, value, *match.span(), confidence)
        self.claim(match)
        return holds

    def has(self, pattern: Finds) -> bool:
        """Whether the whole text, claimed or not, holds a match."""
        return pattern.search(self.whole) is not None

    def name(self, kind: str, **item: Any) -> None:
        """Notes one of possibly several alternatives of a kind (hardware, model, weights_format)."""
        self.named.setdefault(kind, []).append(item)

    def problem(self, id: str, field: str | None = None, **params: Any) -> None:
        """Notes something that cannot be right."""
        self.problems.append(Problem(id, field, params))

    def _span(self, field: str, start: int, end: int, confidence: float, value: Any) -> Span:
        return Span(field, start, end, self.shown[start:end].strip(), confidence, value)

    def _corrects(self, start: int) -> bool:
        head = re.split(r"[.;!?]", self.whole[max(0, start - _CORRECTION_REACH) : start])[-1]
        return cue("words", "correction").search(head) is not None
