"""Errors of a command in the user's language: the one of `--lang`, else that of the question, else English."""

from __future__ import annotations

from collections.abc import Sequence

from bot.errors import CommandError

_ASK_IN_WORDS = ("ask", "chat", "parse", "catalog", "study")


def in_words(error: CommandError, arguments: Sequence[str]) -> str:
    """The error in one line."""
    from bot.answers.words import words

    return " ".join(words(_language(arguments)).say(error.message_id, error.params).split())


def _language(arguments: Sequence[str]) -> str:
    for at, argument in enumerate(arguments):
        if argument.startswith("--lang="):
            return argument.partition("=")[2]
        if argument == "--lang" and at + 1 < len(arguments):
            return arguments[at + 1]
    if not arguments or arguments[0] not in _ASK_IN_WORDS:
        return "en"
    from bot.questions.parse import language
    from bot.questions.text import clean

    said = clean(" ".join(a for a in arguments[1:] if not a.startswith("-")))
    return language(said.shown, said.folded)
