"""Words of questions per language (data files) and the patterns that they compile to.

A phrase of the data files matches whole words: a space in it matches a space, a hyphen, an underscore or nothing, and
a final `*` any ending. All languages are read at once, because people mix them. A language is one file beside this
one, or one that `use` adds; nothing else names languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import tomli

from bot.questions.lexicon.matching import EDGE_AFTER, EDGE_BEFORE, Alternatives, Finds, Needing, phrase_source

__all__ = (
    "EDGE_AFTER", "EDGE_BEFORE", "Alternatives", "Finds", "Needing", "choices", "cue", "decimal_comma", "endings",
    "languages", "marks", "phrases", "remembered", "source", "stopwords", "table", "use", "word", "words",
)  # fmt: skip

_SHARED = "common"  # words that are no language's own
_files: dict[str, Path] = {p.stem: p for p in sorted(Path(__file__).parent.glob("*.toml"))}
_forget: list[Callable[[], None]] = []
_F = TypeVar("_F", bound=Callable[..., Any])


def remembered(function: _F) -> _F:
    """`functools.cache` for what is made from the words: forgotten when `use` adds a language."""
    made: Any = cache(function)
    _forget.append(made.cache_clear)
    return made  # type: ignore[no-any-return]


def use(path: Path) -> None:
    """Adds the language of a file (its name is the language's code), or replaces it; patterns are made anew."""
    tomli.loads(path.read_text("utf-8"))  # a broken file is refused before it is added
    _files[path.stem] = path
    for forget in _forget:
        forget()


@remembered
def languages() -> tuple[str, ...]:
    """The codes of all languages that there are words of."""
    return tuple(name for name in _files if name != _SHARED)


@remembered
def table(name: str) -> Mapping[str, Any]:
    """The data file `name`.toml."""
    return tomli.loads(_files[name].read_text("utf-8"))


@remembered
def phrases(section: str, key: str) -> tuple[str, ...]:
    """The phrases of one entry in every language."""
    return tuple(p for lang in languages() for p in table(lang).get(section, {}).get(key, ()))


@remembered
def words(*keys: str) -> tuple[str, ...]:
    """The phrases of entries of the section `words`, together."""
    return tuple(p for key in keys for p in phrases("words", key))


def source(options: Iterable[str]) -> str:
    """The pattern source that matches any of the phrases, the longest first; without word edges."""
    return "(?:" + "|".join(phrase_source(p) for p in sorted(set(options), key=lambda p: (-len(p), p))) + ")"


@remembered
def word(key: str) -> str:
    """Pattern source of the words `key` (section `words`) of every language."""
    return source(phrases("words", key))


@remembered
def cue(section: str, key: str) -> Alternatives:
    """The phrases of one entry as whole words."""
    return Alternatives(phrases(section, key))


@remembered
def choices(section: str) -> tuple[tuple[str, Alternatives], ...]:
    """(value, pattern) pairs: phrases of the shared file, and of languages' own sections of the same name."""
    shared = table(_SHARED)[section]
    return tuple((value, Alternatives((*options, *phrases(section, value)))) for value, options in shared.items())


@remembered
def stopwords(lang: str) -> frozenset[str]:
    """Frequent words that give a language away."""
    return frozenset(table(lang).get("stopwords", ()))


@remembered
def marks(lang: str) -> frozenset[str]:
    """Letters and signs that give a language away."""
    return frozenset(table(lang).get("marks", ""))


@remembered
def endings(lang: str) -> tuple[str, ...]:
    """Endings of longer words that give a language away."""
    return tuple(table(lang).get("endings", ()))


@remembered
def decimal_comma(lang: str) -> bool:
    """Whether the language writes 2.500,75 for two and a half thousand and three quarters."""
    return bool(table(lang).get("decimal_comma", False))
