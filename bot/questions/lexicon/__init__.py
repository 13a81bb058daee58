"""Words of questions per language (data files) and the patterns that they compile to.

A phrase of the data files matches whole words: a space in it matches a space, a hyphen, an underscore or nothing, and
a final `*` any ending. All languages are read at once, because people mix them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

LANGUAGES = ("en", "es", "other")
EDGE_BEFORE = r"(?<![a-z0-9])"
EDGE_AFTER = r"(?![a-z0-9])"


@cache
def table(name: str) -> Mapping[str, Any]:
    """The data file `name`.toml."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def phrases(section: str, key: str) -> tuple[str, ...]:
    """The phrases of one entry in every language."""
    return tuple(p for lang in LANGUAGES for p in table(lang).get(section, {}).get(key, ()))


def keys(section: str) -> tuple[str, ...]:
    """The entries of a section, in the order of the first language."""
    return tuple(dict.fromkeys(k for lang in LANGUAGES for k in table(lang).get(section, {})))


def source(options: Iterable[str]) -> str:
    """The pattern source that matches any of the phrases, the longest first; without word edges."""
    return "(?:" + "|".join(_one(p) for p in sorted(options, key=lambda p: (-len(p), p))) + ")"


def _one(phrase: str) -> str:
    ending = r"[a-z]{0,12}" if phrase.endswith("*") else ""
    return r"[\s\-_]{0,2}".join(re.escape(w) for w in phrase.rstrip("*").split(" ")) + ending


def whole(options: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any of the phrases as whole words."""
    return re.compile(EDGE_BEFORE + source(options) + EDGE_AFTER)


@cache
def word(key: str) -> str:
    """Pattern source of the words `key` (section `words`) of every language."""
    return source(phrases("words", key))


@cache
def cue(section: str, key: str) -> re.Pattern[str]:
    """Compiled whole-word pattern of one entry."""
    return whole(phrases(section, key))


@cache
def choices(section: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """(value, pattern) pairs of a section of the shared file that maps values to phrases."""
    return tuple((value, whole(options)) for value, options in table("common")[section].items())


@cache
def stopwords(lang: str) -> frozenset[str]:
    """Frequent words that give a language away."""
    return frozenset(table(lang)["stopwords"])
