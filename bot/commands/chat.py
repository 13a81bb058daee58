"""`gpufit chat`: a conversation; a follow-up changes what was understood before it. Also reads from a pipe."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from datetime import date

from bot.commands.team import add_overrides, team_catalogue, team_policy

LEAVE = frozenset(("exit", "quit", ":q", "salir"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--lang", choices=("en", "es"), help="language of the answers (default: that of each question)")
    parser.add_argument("--plain", action="store_true", help="no colour, ASCII only")
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Answers line by line until the end of the input."""
    from bot.answering import answer
    from bot.commands.surface import terminal
    from bot.questions.dialogue import Conversation

    catalogue, policy = team_catalogue(args.overrides), team_policy(args.overrides)
    surface = terminal(args.plain)
    conversation = Conversation()
    for line in whole_messages(_lines(args.lang)):
        if line.lower() in LEAVE:
            break
        if not line:
            conversation = Conversation()
            continue
        answered = answer(
            line,
            catalogue=catalogue,
            policy=policy,
            lang=args.lang,
            conversation=conversation,
            as_of=date.today(),
        )
        sys.stdout.write(f"{answered.text(surface)}\n")
        sys.stdout.flush()
        conversation = answered.conversation
    return 0


def whole_messages(lines: Iterator[str]) -> Iterator[str]:
    """Lines joined to messages: a code fence goes on to its end, a line that ends in a backslash with the next one."""
    held: list[str] = []
    for line in lines:
        held.append(line)
        open_fence = sum(part.count("```") for part in held) % 2 == 1
        if open_fence or line.endswith("\\"):
            continue
        yield "\n".join(held).strip()
        held = []
    if held:
        yield "\n".join(held).strip()


def _lines(lang: str | None) -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from (line.rstrip() for line in sys.stdin)
        return
    with contextlib.suppress(ImportError):  # a platform without it: the prompt works without line editing
        import readline  # noqa: F401
    from bot.answers.words import words

    print(words(lang or "en")("chat_greeting"), end="\n\n")
    while True:
        try:
            yield input("gpufit> ").rstrip()
        except EOFError:
            print()
            return
