"""Short replies of a conversation: yes, no, thanks, "cheaper", and the words that pick a choice.

One file per language beside this one; all languages are read at once, because people mix them. A phrase matches the
whole reply, or stands in it as whole words where a command is looked for (`Replies.command`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tomli

from bot.questions.lexicon import Alternatives
from bot.questions.text import clean

MAX_REPLY_CHARS = 60  # longer messages are read as questions, not as replies
_COUNTED = re.compile(r"^\d+\s")  # "20 in total": the count is known from the question
_BARE = re.compile(r"[^\w/+.,\-]+")


@cache
def _tables() -> tuple[Mapping[str, Any], ...]:
    files = sorted(Path(__file__).parent.glob("*.toml"))
    return tuple(tomli.loads(path.read_text("utf-8")) for path in files)


@cache
def _phrases(section: str, key: str) -> tuple[str, ...]:
    return tuple(phrase for table in _tables() for phrase in table.get(section, {}).get(key, ()))


@cache
def _command(key: str) -> Alternatives:
    return Alternatives(_phrases("commands", key))


def bare(text: str) -> str:
    """A reply in lower case without accents, punctuation and doubled spaces, to be compared whole."""
    return _BARE.sub(" ", clean(text).folded).strip(" .,-")


def is_reply(kind: str, text: str) -> bool:
    """Whether the whole message is a reply of this kind: yes, no, thanks."""
    return bare(text) in _phrases("replies", kind)


def has_command(kind: str, text: str) -> bool:
    """Whether a short message holds a command of this kind: cheaper, any_hardware…"""
    folded = clean(text).folded
    return len(folded) <= MAX_REPLY_CHARS and _command(kind).search(folded) is not None


def picks(choice: str, text: str, also: Iterable[str] = ()) -> bool:
    """Whether the whole message is one of the words of a choice (or its id), leading and trailing words aside."""
    said = bare(text)
    if said == choice:
        return True
    options = {bare(word) for word in (*_phrases("choices", choice), *also)}
    trimmed = _trimmed(said)
    return said in options or trimmed in options or _COUNTED.sub("", trimmed) in options


def _trimmed(said: str) -> str:
    """A reply without the words that lead to it ("yes, ") and that trail it (" instead")."""
    for lead in _phrases("replies", "lead"):
        if said.startswith(f"{lead} "):
            said = said[len(lead) + 1 :]
            break
    for tail in _phrases("replies", "tail"):
        if said.endswith(f" {tail}"):
            return said[: -len(tail) - 1]
    return said
