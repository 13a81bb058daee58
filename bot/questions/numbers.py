"""Numbers as people write them: 2k, 3.000, 0,25, 1.5M, "20 mil millones", "two"."""

from __future__ import annotations

import re

from bot.questions.lexicon import languages, remembered, table

NUMBER = r"\d{1,15}(?:[.,]\d{1,12}){0,4}"
_SUFFIX = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
_BINARY_K = frozenset((1, 2, 4, 8, 16, 32, 64, 128, 256))


@remembered
def magnitudes() -> dict[str, float]:
    """Words and letters that multiply the number before them."""
    found = dict(_SUFFIX)
    for lang in languages():
        found |= table(lang).get("magnitudes", {})
    return found


@remembered
def count_words() -> dict[str, int]:
    """Number words of every language."""
    return {w: n for lang in languages() for w, n in table(lang).get("numbers", {}).items()}


@remembered
def magnitude_source() -> str:
    """Pattern source of a magnitude, the longest first."""
    words = sorted(magnitudes(), key=lambda w: (-len(w), w))
    return r"(?:" + "|".join(re.escape(w).replace(r"\ ", r"\s") for w in words) + r")(?![a-z0-9])"


@remembered
def count_source() -> str:
    """Pattern source of a small count in digits or words."""
    words = sorted(count_words(), key=lambda w: (-len(w), w))
    return r"(?:\d{1,9}|(?:" + "|".join(re.escape(w).replace(r"\ ", r"\s") for w in words) + ")(?![a-z]))"


def count(text: str) -> int:
    """The value of a text that `count_source` matched."""
    return int(text) if text.isdigit() else count_words()[" ".join(text.split())]


def number(text: str, magnitude: str | None = None, decimal_comma: bool = False) -> float:
    """The value of a text that `NUMBER` matched, times its magnitude.

    A dot or comma before exactly three digits separates thousands where it is repeated, where it is a comma, or,
    with `decimal_comma` (Spanish text, euro amounts), where it is a dot and no zero leads.
    """
    digits = text
    if "." in digits and "," in digits:
        last = max(digits.rfind("."), digits.rfind(","))
        digits = re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :]
    elif "." in digits or "," in digits:
        separator = "." if "." in digits else ","
        parts = digits.split(separator)
        grouped = all(len(p) == 3 for p in parts[1:]) and 1 <= len(parts[0]) <= 3 and parts[0].strip("0") != ""
        if grouped and (len(parts) > 2 or separator == "," or decimal_comma):
            digits = "".join(parts)
        else:
            digits = parts[0] + "." + "".join(parts[1:])
    value = float(digits)
    return value * magnitudes()[" ".join(magnitude.split())] if magnitude else value


@remembered
def amount_source(group: str = "n") -> str:
    """Pattern source of an amount in digits, or in words before a magnitude ("half a trillion", "un billón")."""
    words = sorted({*count_words(), *parts()}, key=lambda w: (-len(w), w))
    worded = "|".join(re.escape(w).replace(r"\ ", r"\s") for w in words)
    return rf"(?:(?P<{group}>{NUMBER})|(?P<{group}_word>{worded})(?=\s{magnitude_source()}))"


@remembered
def parts() -> dict[str, float]:
    """Words of fractions before a magnitude: half a million, medio millón."""
    return {w: v for lang in languages() for w, v in table(lang).get("parts", {}).items()}


def amount(m: re.Match[str], group: str = "n", magnitude: str | None = None, decimal_comma: bool = False) -> float:
    """The value of what `amount_source` matched, times its magnitude."""
    word = m.group(f"{group}_word")
    if word is None:
        return number(m.group(group), magnitude, decimal_comma)
    said = " ".join(word.split())
    value = parts().get(said) or float(count_words()[said])
    return value * magnitudes()[" ".join(magnitude.split())] if magnitude else value


def tokens(value: float, suffix: str | None) -> int:
    """A length in tokens: a k after 1, 2, 4 … 256 is 1024, after any other number 1000."""
    if suffix == "k":
        return int(value * (1024 if value in _BINARY_K else 1000))
    return int(value * (1e6 if suffix == "m" else 1))


def tidy(value: float) -> float | int:
    """A whole number as int."""
    return int(value) if value == int(value) and abs(value) < 1e18 else value
