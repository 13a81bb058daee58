"""Cleaning a question before it is read: Slack markup, invisible characters, accents, length."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

MAX_CHARS = 4000  # a Slack message; longer texts are cut and said to be

_SLACK = re.compile(r"<(?:[@#!][^<>|]{0,80}(?:\|[^<>]{0,80})?|(?:https?|mailto):[^<>|]{0,500}(?:\|([^<>]{0,200}))?)>")
_EMOJI_NAME = re.compile(r":[a-z][a-z0-9_+\-]{1,40}:", re.IGNORECASE)
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&nbsp;": " "}
_WIDE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WIDE_EDGE = re.compile(rf"(?<=[{_WIDE}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{_WIDE}])")
_SPACES = re.compile(r"\s+")
_SAME = str.maketrans({"×": "x", "✕": "x", "–": "-", "—": "-", "‑": "-", "’": "'", "‘": "'", "“": '"', "”": '"'})


@dataclass(frozen=True, slots=True)
class CleanText:
    """`shown` is the cleaned question; `folded` the same length in lower case without accents, to be matched."""

    shown: str
    folded: str
    truncated: bool


def clean(text: str) -> CleanText:
    """Normalises a question; never fails, whatever the characters."""
    truncated = len(text) > MAX_CHARS
    text = text[:MAX_CHARS]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME)[:MAX_CHARS]
        text = "".join(_visible(c) for c in text)
        text = _WIDE_EDGE.sub(" ", text)
    if "<" in text:
        text = _SLACK.sub(lambda m: f" {m.group(1) or ''} ", text)
    if "&" in text:
        for entity, char in _ENTITIES.items():
            text = text.replace(entity, char)
    text = _EMOJI_NAME.sub(" ", text) if ":" in text else text
    shown = _SPACES.sub(" ", text).strip()
    folded = shown.lower() if shown.isascii() else "".join(_fold(c) for c in shown)
    return CleanText(shown, folded, truncated)


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cf", "Cs", "Co", "Cn"):  # zero-width, direction marks, surrogates
        return ""
    return " " if category == "Cc" else char


def _fold(char: str) -> str:
    if char.isascii():
        return char.lower()
    first = unicodedata.normalize("NFD", char)[0].lower()
    return first[0]
