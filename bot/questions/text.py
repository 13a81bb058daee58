"""Cleaning a question before it is read: Slack's encodings, invisible characters, accents, digits, length."""

from __future__ import annotations

import re
import unicodedata

from rules.records import dataclass

MAX_CHARS = 4000  # a Slack message; longer texts are cut and said to be

# What Slack writes for a mention, a channel and a broadcast; and for a link, with its words if it has some.
_SLACK = re.compile(
    r"<(?:[@#!][^<>|]{0,80}(?:\|[^<>]{0,80})?|(?P<url>(?:https?|mailto|tel):[^<>|]{0,500})(?:\|(?P<words>[^<>]{0,200}))?)>"
)
_HUB_URL = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<id>[\w.\-]{1,60}/[\w.\-]{1,100})[^\s<>]{0,200}"
)
_FENCE = re.compile(r"```(?:[a-z]{1,12}\n)?|`", re.IGNORECASE)
_SPACED_THOUSANDS = re.compile(r"(?<=\d)(?:[\u00a0\u202f\u2009](?=\d{3}(?!\d))|\s(?=000(?!\d)))")
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
    text = _SPACED_THOUSANDS.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME)[:MAX_CHARS]
        text = "".join(_visible(c) for c in text)
        text = _WIDE_EDGE.sub(" ", text)
    if "<" in text:
        text = _SLACK.sub(_unwrapped, text)
    if "http" in text:
        text = _HUB_URL.sub(lambda m: f" {m.group('id')} ", text)
    if "`" in text:
        text = _FENCE.sub(" ", text)
    if "&" in text:
        for entity, char in _ENTITIES.items():
            text = text.replace(entity, char)
    text = _EMOJI_NAME.sub(" ", text) if ":" in text else text
    shown = _SPACES.sub(" ", text)[:MAX_CHARS].strip()
    folded = shown.lower() if shown.isascii() else "".join(_fold(c) for c in shown)
    return CleanText(shown, folded, truncated)


def _unwrapped(link: re.Match[str]) -> str:
    url, words = link.group("url") or "", link.group("words")
    return f" {words or ''} " if words or not _HUB_URL.match(url) else f" {url} "


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cf", "Cs", "Co", "Cn"):  # zero-width, direction marks, surrogates
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(char))
    return " " if category == "Cc" else char


def _fold(char: str) -> str:
    if char.isascii():
        return char.lower()
    first = unicodedata.normalize("NFD", char)[0].lower()
    return first[0]
