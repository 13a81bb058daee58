"""How names are compared: tokens, quantisation suffixes and the vocabulary of `data/names.toml`.

`Llama-3-8B`, `llama3 8b` and `LLAMA 3 8b` give the same tokens. A size (`8b`, `8x7b`, `350m`), an active size (`a3b`)
and a decimal version (`3.1`) stay one token each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from rules.records import dataclass

DATA = Path(__file__).with_name("data")

_TOKEN = re.compile(
    r"\d+(?:\.\d+)?x\d+(?:\.\d+)?b(?![a-z])|\d+k(?![a-z])|[ae]\d+(?:\.\d+)?b(?![a-z])|\d+(?:\.\d+)?[bm](?![a-z])|v\d+(?:\.\d+)*"
    r"|\d+(?:\.\d+)*|[a-z]+|[^\x00-\x7f]+"
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([bm])")
_MIXTURE = re.compile(r"(\d+)x(\d+(?:\.\d+)?)b")
_ACTIVE = re.compile(r"a(\d+(?:\.\d+)?)b")
_DECIMAL_UNDERSCORE = re.compile(r"(?<=\d)_(?=\d(?:\d?[bm])?(?![0-9]))")
_CONTEXT = re.compile(r"\d+k")
_VERSION = re.compile(r"v\d+(?:\.\d+)*")
_DATE = re.compile(r"(?:2[0-9](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])[0-3]\d|20\d\d|\d{6,8})")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Word lists and tables of `names.toml`; keys of tables are token strings."""

    variant: frozenset[str]
    tuned: frozenset[str]
    guarded: frozenset[str]
    lineage: Mapping[str, str]
    alias: Mapping[str, str]
    size: Mapping[float, str]
    domain: Mapping[str, str]


@cache
def tables() -> dict[str, Any]:
    """The packaged `names.toml` as it stands, read once."""
    return tomli.loads((DATA / "names.toml").read_text(encoding="utf-8"))


@cache
def _formats() -> tuple[tuple[re.Pattern[str], str, float | None], ...]:
    return tuple((re.compile(f["pattern"]), f["format"], f.get("bits")) for f in tables()["format"])


@cache
def vocabulary() -> Vocabulary:
    """The packaged vocabulary, read once."""
    raw = tables()
    words = {kind: frozenset(text.split()) for kind, text in raw["words"].items()}
    return Vocabulary(
        variant=words["variant"],
        tuned=words["tuned"],
        guarded=words["guarded"],
        lineage={key(k): key(v) for k, v in raw["lineage"].items()},
        alias={key(k): v for k, v in raw["alias"].items()},
        size={float(k): v for k, v in raw["size"].items()},
        domain={key(k): v for k, v in raw["domain"].items()},
    )


def tokens(text: str) -> list[str]:
    """Lower-case tokens of a name; cut the publisher first (`split_publisher`)."""
    return _TOKEN.findall(_DECIMAL_UNDERSCORE.sub(".", text.lower()).replace("+", " plus "))


def key(text: str) -> str:
    """The comparison key of a name."""
    return " ".join(tokens(text))


def without_variant(words: list[str], dropped: frozenset[str]) -> list[str]:
    """Tokens without the words that name a variant of the same architecture, dates and context lengths."""
    kept = [w for w in words if w not in dropped and not _DATE.fullmatch(w) and not _CONTEXT.fullmatch(w)]
    return kept or words


def without_version(words: list[str]) -> list[str]:
    """Tokens without version marks such as v0.2 or v1.5."""
    return [w for w in words if not _VERSION.fullmatch(w)] or words


def sizes_last(words: list[str]) -> list[str]:
    """Tokens with the sizes at the end, as most names have them ("7b llama" becomes "llama 7b")."""
    return [w for w in words if not is_size(w)] + [w for w in words if is_size(w)]


def split_publisher(name: str) -> tuple[str, str]:
    """Publisher ("" where there is none) and the rest; a slash as in "CLIP ViT-B/16" separates no publisher."""
    publisher, slash, rest = name.strip().partition("/")
    if not slash or " " in publisher or not any(c.isalpha() for c in rest):
        return "", name.strip()
    return publisher, rest.rpartition("/")[2]


def size_b(words: list[str]) -> float | None:
    """The size that the tokens state, in billions of parameters; 8x7b gives None, because experts share layers."""
    for word in words:
        if found := _SIZE.fullmatch(word):
            value = float(found.group(1))
            return value / 1000 if found.group(2) == "m" else value
    return None


def mixture(words: list[str]) -> tuple[int, float] | None:
    """Experts and size of each, where the name is of the form 8x7b."""
    for word in words:
        if found := _MIXTURE.fullmatch(word):
            return int(found.group(1)), float(found.group(2))
    return None


def active_b(words: list[str]) -> float | None:
    """Active parameters that the tokens state (a3b), in billions."""
    for word in words:
        if found := _ACTIVE.fullmatch(word):
            return float(found.group(1))
    return None


def is_size(word: str) -> bool:
    """True for a token that states a parameter count (8b, 350m, 8x7b, a3b)."""
    return bool(_SIZE.fullmatch(word) or _MIXTURE.fullmatch(word) or _ACTIVE.fullmatch(word))


_HINT = re.compile(r"q\d|int\d|bit|awq|gptq|fp\d|f16|f32|f8|e4m3|nf4|w\da|exl|bpw|gg|mlx|hqq")
_BARE_GGUF = {"Q2": "Q2_K", "Q3": "Q3_K_M", "Q4": "Q4_K_M", "Q5": "Q5_K_M", "Q6": "Q6_K", "Q8": "Q8_0"}


def split_format(name: str) -> tuple[str, str | None, float | None]:
    """The name without its quantisation suffix, the weight format that the suffix implies, nominal bits a weight."""
    text, found_format, found_bits = name.lower(), None, None
    if not _HINT.search(text):
        return text, None, None
    for pattern, template, bits in _formats():
        found = pattern.search(text)
        if not found:
            continue
        group = next((g for g in found.groups() if g), "") if found.groups() else ""
        if found_format is None:
            found_format, found_bits = _filled(template, group, bits)
        start, end = found.span(1) if group and pattern.pattern.startswith("(?<=") else found.span()
        text = text[:start] + " " + text[end:]
    return text, found_format, found_bits


def _filled(template: str, group: str, bits: float | None) -> tuple[str | None, float | None]:
    if template.startswith("gguf:"):
        name = group.upper()
        digit = re.search(r"Q(\d)", name)
        return f"gguf:{_BARE_GGUF.get(name, name)}", bits or (float(digit.group(1)) if digit else None)
    if "{0}" in template:
        if not group:
            return None, None
        group = group.replace("_", ".")
        return template.format(group), float(group)
    return template, bits
