"""Rewrites the stored conversations of tests/e2e/transcripts from what the product answers now.

A transcript is a text file: the first line is its title, lines that start with "> " are what a person writes, and what
follows each is the answer, shortened to what a reader acts on. To add a conversation, write a file with a title and the
person's lines and run this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bot.answered import Answered
from bot.answering import answer
from bot.answers.layout import Surface
from bot.questions.dialogue import Conversation
from rules.catalog.catalogue import Catalogue

FOLDER = Path(__file__).resolve().parents[1] / "tests/e2e/transcripts"
SURFACE = Surface(width=100)


def messages(text: str) -> tuple[str, list[str]]:
    """Title and the person's lines of a transcript."""
    title, *lines = text.splitlines()
    return title, [line.removeprefix(">").strip() for line in lines if line.startswith(">")]


def transcript(title: str, said: Sequence[str], catalogue: Catalogue) -> str:
    """The whole conversation as it goes now."""
    conversation = Conversation()
    parts = [title]
    for message in said:
        answered = answer(message, catalogue=catalogue, conversation=conversation)
        conversation = answered.conversation
        parts.append(f"> {message}\n\n{shortened(answered)}")
    return "\n\n".join(parts) + "\n"


def shortened(answered: Answered) -> str:
    """An answer without its breakdown, options, levers and small print; short ones stay whole."""
    if answered.advice is None or answered.explanation is not None or answered.comparison is not None:
        return answered.text(SURFACE).strip()
    words, told = answered.words, answered.advice.headlines
    lines = [
        *(
            words.say(told[name])
            for name in ("time", "capacity", "cost")
            if name == answered.parsed.intent and name in told
        ),
        f"{words('outcome_' + answered.advice.outcome).upper()}: {words.say(answered.advice.verdict)}",
        *(words.say(note) for note in answered.remarks),
        f"{words('understood')} {answered.understood}.",
        *answered.asked,
    ]
    return "\n".join(lines)


def main() -> int:
    """Rewrites every file; says which changed."""
    catalogue = Catalogue.load()
    for path in sorted(FOLDER.glob("*.txt")):
        before = path.read_text("utf-8")
        now = transcript(*messages(before), catalogue)
        if now != before:
            path.write_text(now, "utf-8")
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
