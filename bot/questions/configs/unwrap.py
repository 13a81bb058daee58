"""A message as it was meant: Slack's entities and links, typographic quotes and dashes undone; lengths bounded."""

from __future__ import annotations

import re

MAX_CHARS = 100_000
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}
_SAME = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u2028": "\n", "\u200b": None,
                       "\ufeff": None, "\u2011": "-", "\x00": None})  # fmt: skip
_LONG_DASH = re.compile(r"(?<![^\s\[(\"'])[—–](?=[A-Za-z])")  # what editors make of two hyphens before an option
_LINK = re.compile(r"<(https?://[^<>|\s]{1,500})(?:\|[^<>]{0,200})?>")


def unwrap(text: str) -> str:
    """The first `MAX_CHARS` characters with plain characters; line breaks stay."""
    text = text[:MAX_CHARS]
    if "&" in text:
        for entity, char in _ENTITIES.items():
            text = text.replace(entity, char)
    if not text.isascii():
        text = _LONG_DASH.sub("--", text.translate(_SAME))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _LINK.sub(r"\1", text) if "<http" in text else text
