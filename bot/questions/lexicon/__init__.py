"""Words of questions per language (data files) and the patterns that they compile to.

A phrase of the data files matches whole words: a space in it matches a space, a hyphen, an underscore or nothing, and
a final `*` any ending. All languages are read at once, because people mix them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bot.questions.lexicon.matching import EDGE_AFTER, EDGE_BEFORE, Alternatives, Finds, Needing, phrase_source

__all__ = (
    "EDGE_AFTER", "EDGE_BEFORE", "LANGUAGES", "Alternatives", "Finds", "Needing", "choices", "cue", "phrases", "source",
    "stopwords", "table", "word", "words",
)  # fmt: skip

LANGUAGES = ("en", "es", "other")


@cache
def table(name: str) -> Mapping[str, Any]:
    """The data file `name`.toml."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


@cache
def phrases(section: str, key: str) -> tuple[str, ...]:
    """The phrases of one entry in every language."""
    return tuple(p for lang in LANGUAGES for p in table(lang).get(section, {}).get(key, ()))


def words(*keys: str) -> tuple[str, ...]:
    """The phrases of entries of the section `words`, together."""
    return tuple(p for key in keys for p in phrases("words", key))


def source(options: Iterable[str]) -> str:
    """The pattern source that matches any of the phrases, the longest first; without word edges."""
    return "(?:" + "|".join(phrase_source(p) for p in sorted(options, key=lambda p: (-len(p), p))) + ")"


@cache
def word(key: str) -> str:
    """Pattern source of the words `key` (section `words`) of every language."""
    return source(phrases("words", key))


@cache
def cue(section: str, key: str) -> Alternatives:
    """The phrases of one entry as whole words."""
    return Alternatives(phrases(section, key))


@cache
def choices(section: str) -> tuple[tuple[str, Alternatives], ...]:
    """(value, pattern) pairs of a section of the shared file that maps values to phrases."""
    return tuple((value, Alternatives(options)) for value, options in table("common")[section].items())


@cache
def stopwords(lang: str) -> frozenset[str]:
    """Frequent words that give a language away."""
    return frozenset(table(lang)["stopwords"])
