"""Whole conversations in English and Spanish, stored as text and held against what the product answers now.

Verdicts, questions with their choices and what was understood must stay as stored, word for word; the figures of the
laws may move. `python -m scripts.transcripts` rewrites the files; read them before committing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rules.catalog.catalogue import Catalogue
from scripts.transcripts import FOLDER, messages, transcript

FILES = sorted(FOLDER.glob("*.txt"))
_FIGURE = re.compile(r"\d[\d.,]*\d|\d")
_READ_AS = ("Read as:", "He entendido:")


def _lines(text: str) -> list[str]:
    """The lines without the laws' figures; what was understood keeps its figures, which are the user's."""
    joined = re.sub(r"(?<=\S)\n(?=[^\n>?-])(?!Read as:|He entendido:)", " ", text)
    return [line if line.startswith(_READ_AS) else _FIGURE.sub("#", line) for line in joined.splitlines() if line]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_conversation_goes_as_stored(path: Path) -> None:
    """Each stored conversation is answered today with the same verdicts, questions and understood workload."""
    stored = path.read_text("utf-8")
    assert _lines(transcript(*messages(stored), Catalogue.load())) == _lines(stored)


def test_there_are_enough_conversations_in_both_languages() -> None:
    """At least 25 conversations of two or more messages, a third of them or more in Spanish."""
    texts = [path.read_text("utf-8") for path in FILES]
    assert len(texts) >= 25
    assert all(len(messages(text)[1]) > 1 for text in texts)
    assert sum("He entendido:" in text for text in texts) >= len(texts) // 3
