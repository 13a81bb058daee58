"""Explanations: which topic a question asks about, its text, and the user's own figures in it.

Topics are data (`topics.toml`), the words that raise them too (`triggers/<language>.toml`), and their texts stand in
the gettext catalogues: `concept_<topic>`, `figure_<figure>` and `correction_<topic>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli

from bot.questions.lexicon import Alternatives
from bot.questions.text import clean
from rules.memory.footprint import Note
from rules.records import dataclass

if TYPE_CHECKING:
    from bot.answers.concepts.figures import Facts

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that can be explained; `figures` are names of `FIGURES`."""

    id: str
    requirements: tuple[str, ...]
    figures: tuple[str, ...]
    correction: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to a concept question: general text first, then the user's own figures."""

    topic: Topic
    notes: tuple[Note, ...]


@cache
def topics() -> tuple[Topic, ...]:
    """Every topic, in the order of the file."""
    rows = tomli.loads((_HERE / "topics.toml").read_text("utf-8"))["topic"]
    return tuple(
        Topic(r["id"], tuple(r["requirements"]), tuple(r["figures"]), bool(r.get("correction", False))) for r in rows
    )


def topic_of(text: str) -> Topic | None:
    """The topic that a question asks about, by the words in it; None where it touches none."""
    return _best(clean(text).folded, "topics")


def explain(topic: Topic, facts: Facts) -> Explanation:
    """The topic's text and what can be computed for it from the question."""
    from bot.answers.concepts.figures import FIGURES  # draws on every law

    found = (FIGURES[name](facts) for name in topic.figures)
    return Explanation(topic, (Note(f"concept_{topic.id}", {}, topic.requirements[0]), *(n for n in found if n)))


def correction(text: str) -> Note | None:
    """One kind sentence where a question that asks something else rests on a known misreading."""
    topic = _best(clean(text).folded, "corrections")
    return Note(f"correction_{topic.id}", {}, topic.requirements[0]) if topic is not None else None


def _best(folded: str, section: str) -> Topic | None:
    best: Topic | None = None
    most = 0
    for topic in topics():
        score = max((_score(trigger, folded) for trigger in _triggers(section, topic.id)), default=0)
        if score > most:
            best, most = topic, score
    return best


def _score(trigger: str, folded: str) -> int:
    """Letters of the matching phrases; 0 unless all of the trigger's phrases stand in the text."""
    total = 0
    for phrase in trigger.split(" + "):
        found = _pattern(phrase).search(folded)
        if found is None:
            return 0
        total += len(phrase.rstrip("*"))
    return total


@cache
def _pattern(phrase: str) -> Alternatives:
    return Alternatives((phrase,))


@cache
def _languages() -> tuple[Mapping[str, Any], ...]:
    return tuple(tomli.loads(p.read_text("utf-8")) for p in sorted((_HERE / "triggers").glob("*.toml")))


def _triggers(section: str, topic_id: str) -> Iterator[str]:
    for table in _languages():
        yield from table[section].get(topic_id, ())
