"""Words: message ids and parameters into sentences of one language, from gettext catalogues.

Texts are ours; what users typed only ever enters as a parameter value, so it is never read as a format.
"""

from __future__ import annotations

import gettext
import string
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rules.memory.footprint import Note

LANGUAGES = ("en",)
_DOMAIN = "gpufit"


class _LocalFormatter(string.Formatter):
    """`str.format` with the language's decimal mark; a missing parameter shows as "?" instead of failing."""

    def __init__(self, decimal_mark: str) -> None:
        self._decimal_mark = decimal_mark

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key), "?")

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return str(value)
        text = format(value, format_spec) if format_spec else f"{value:.4g}" if isinstance(value, float) else str(value)
        if self._decimal_mark != ".":
            text = text.translate(str.maketrans(".,", f"{self._decimal_mark}."))
        return text


class Words:
    """One language's sentences. `say` turns a note or an id into text; unknown ids come back as they are."""

    def __init__(self, lang: str) -> None:
        self.lang = lang if lang in LANGUAGES else "en"
        path = resources.files("bot.answers").joinpath("locale")
        self._catalogue = gettext.translation(_DOMAIN, str(path), languages=[self.lang])
        self._formatter = _LocalFormatter(self("decimal_mark_"))

    def __call__(self, message_id: str) -> str:
        """The raw text of an id, for labels without parameters."""
        return self._catalogue.gettext(message_id)

    def knows(self, message_id: str) -> bool:
        """True where the catalogue has a text for this id."""
        return self._catalogue.gettext(message_id) != message_id

    def say(self, message: Note | str, params: Mapping[str, Any] | None = None) -> str:
        """The sentence of a note, or of an id with parameters."""
        if isinstance(message, Note):
            return self.say(message.message, message.params)
        return self._formatter.vformat(self(message), (), params or {})

    def number(self, value: float, digits: int = 1) -> str:
        """A number with the language's decimal mark."""
        return self._formatter.format_field(float(value), f".{digits}f")


@cache
def words(lang: str) -> Words:
    """The cached catalogue of a language; English where there is none."""
    return Words(lang)
