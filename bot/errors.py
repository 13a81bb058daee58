"""Errors of the command line, each with the exit code it ends in.

CommandError            one line on standard error, no traceback
├── BadUsage            exit code 2: the command cannot be understood or a file cannot be used
└── NoAnswer            exit code 3: no answer is possible without something that the user must say
"""

from __future__ import annotations


class CommandError(Exception):
    """A command that ends early: a message id and its parameters, said in one line in the user's language."""

    exit_code = 1

    def __init__(self, message_id: str, **params: str | int) -> None:
        super().__init__(message_id, params)
        self.message_id = message_id
        self.params = params


class BadUsage(CommandError):
    """Wrong arguments, or a file that is missing or malformed."""

    exit_code = 2


class NoAnswer(CommandError):
    """Nothing can be said without more from the user."""

    exit_code = 3
