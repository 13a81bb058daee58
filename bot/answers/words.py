"""Words: message ids and parameters into sentences of one language, from gettext catalogues.

Texts are ours; what users typed only ever enters as a parameter value, so it is never read as a format. Three things a
text can do with a parameter: a number takes a format (`{need_gib:.1f}`) and the language's marks; a word takes the name
of a vocabulary (`{value:optimizer}` is the text of `optimizer_<value>`, or the value itself where there is none); a
`Note` is said in its place. A text with plural forms is chosen by the first parameter of `_COUNTED_BY` that it has.
"""

from __future__ import annotations

import gettext
import re
import string
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from rules.memory.footprint import Note

LANGUAGES = ("en", "es")
_DOMAIN = "gpufit"
_COUNTED_BY = ("count", "sequences", "n", "batch", "windows", "pictures", "samples")
_PARAMS = "params"  # the format of a number of parameters
_ONE = "one"  # the format of a device that stands alone: with the article of its name's gender
_RATE = "rate"  # the format of a rate of any size: three significant digits, never an exponent
_CARD_BY_MEMORY = re.compile(r"(?P<memory_gb>\d+(?:\.\d+)?) GB GPU")
_Marks = Callable[[str], str]


class _Formatter(string.Formatter):
    """`str.format` in one language; a missing parameter shows as "?" instead of failing."""

    def __init__(self, words: Words, marks: _Marks) -> None:
        self._words = words
        self._marks = marks

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key), "?")

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Note):
            value = self._words.say(value)
            return self._words.one(value) if format_spec == _ONE else value
        if format_spec == _ONE:
            return self._words.one(self._words.term("hardware", str(value)))
        if format_spec == _RATE and isinstance(value, (int, float)):
            return self._marks(_rate(value))
        if format_spec == _PARAMS and isinstance(value, (int, float)):
            return self._marks(_params(value))
        if isinstance(value, str) and format_spec and not format_spec.isidentifier():
            value = _as_number(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return self._words.term(format_spec, str(value))
        if format_spec.isidentifier():
            word = self._words.term(format_spec, str(value))
            if word != str(value):
                return word
            format_spec = ""
        plain = f",.{_digits(value)}g" if isinstance(value, float) else ",d" if abs(value) >= 1000 else "d"
        return self._marks(format(value, format_spec or plain))


def _params(params_b: float) -> str:
    """Billions of parameters as people write them: 8.03 B, 125 M; sizes have no other form in any language."""
    return f"{params_b:.3g} B" if params_b >= 1 else f"{params_b * 1000:.3g} M"


def _rate(value: float) -> str:
    """2,480; 36.4; 0.034."""
    size = abs(value)
    return (
        f"{value:,.0f}" if size >= 100 else f"{value:,.1f}" if size >= 10 else f"{value:.3g}" if size >= 1e-3 else "0"
    )


def _as_number(text: str) -> str | float:
    """A figure that a law gives as text, for the marks of a language."""
    try:
        return float(text)
    except ValueError:
        return text


def _digits(value: float) -> int:
    """Significant digits of a number without a format: all of a large one before the decimal mark, else four."""
    return max(4, len(str(int(abs(value))))) if abs(value) < 1e15 else 4


class Words:
    """One language's sentences. `say` turns a note or an id into text; unknown ids come back as they are.

    `folder` holds the catalogues, `<lang>/LC_MESSAGES/gpufit.mo`; the shipped ones where it is None.
    """

    def __init__(self, lang: str, folder: Path | None = None) -> None:
        self.lang = lang if lang in LANGUAGES or folder else "en"
        path = folder or resources.files("bot.answers").joinpath("locale")
        self._catalogue = gettext.translation(_DOMAIN, str(path), languages=[self.lang])
        self._formatter = _Formatter(self, _marks_of(self.lang) if self.lang in LANGUAGES else _as_written)

    def __call__(self, message_id: str) -> str:
        """The raw text of an id, for labels without parameters."""
        return self._catalogue.gettext(message_id)

    def knows(self, message_id: str) -> bool:
        """True where the catalogue has a text for this id."""
        return self._catalogue.gettext(message_id) != message_id

    def term(self, vocabulary: str, value: str) -> str:
        """A word of a vocabulary in this language; names that no catalogue holds stay as they are.

        A card that is known by its memory alone ("12 GB GPU") is no name.
        """
        card = _CARD_BY_MEMORY.fullmatch(value)
        if card:
            return self.say("card_by_memory", card.groupdict())
        message_id = f"{vocabulary}_{value.lower()}"
        return self(message_id) if self.knows(message_id) else value.removeprefix("gguf:")

    def one(self, name: str) -> str:
        """One device by its name: "one RTX 4090", "un Apple M2 Ultra". A language lists its masculine names by their
        first word; the others are cards and go with those.
        """
        first = name.partition(" ")[0].lower()
        masculine = first in self("names_masculine").split()
        return self.say("one_masculine" if masculine else "one_feminine", {"name": name})

    def say(self, message: Note | str, params: Mapping[str, Any] | None = None) -> str:
        """The sentence of a note, or of an id with parameters."""
        if isinstance(message, Note):
            return self.say(message.message, message.params)
        params = params or {}
        count = next((params[name] for name in _COUNTED_BY if type(params.get(name)) is int), None)
        text = message if count is None else self._catalogue.ngettext(message, message, count)
        if text == message:  # no plural forms
            text = self(message)
        if text == message:
            return message
        return self._formatter.vformat(text, (), params)

    def number(self, value: float, digits: int = 1) -> str:
        """A number with the language's decimal mark."""
        return self._formatter.format_field(float(value), f",.{digits}f")


def _as_written(text: str) -> str:
    return text


def _marks_of(lang: str) -> _Marks:
    """Puts a language's decimal and grouping marks into a number as Python writes it; English needs none."""
    if lang == "en":
        return _as_written
    from babel import Locale

    symbols = Locale.parse(lang).number_symbols["latn"]
    table = str.maketrans({".": symbols["decimal"], ",": symbols["group"]})
    return lambda text: text.translate(table)


@cache
def words(lang: str) -> Words:
    """The cached catalogue of a language; English where there is none."""
    return Words(lang)
