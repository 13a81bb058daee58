"""`gpufit ask`: one question in plain words, one answer."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bot.commands import picture
from bot.commands.team import add_overrides, team_catalogue, team_policy
from bot.errors import BadUsage

if TYPE_CHECKING:
    from bot.answered import Answered
    from bot.answers.layout import Surface


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("question", nargs="+", help="the question, in plain words")
    parser.add_argument("--json", action="store_true", help="print what was understood and the whole advice as JSON")
    parser.add_argument("--lang", choices=("en", "es"), help="language of the answer (default: that of the question)")
    parser.add_argument("--plain", action="store_true", help="no colour, ASCII only")
    parser.add_argument("--explain", action="store_true", help="add every rule that fired, with its figures")
    parser.add_argument(
        "--chart",
        metavar="FILE",
        type=Path,
        help="also draw what was asked (.png or .svg): memory, throughput against load, or rent against own",
    )
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Prints the answer; exit code 3 where none is possible without more from the user."""
    from bot.answering import answer
    from bot.commands.surface import terminal

    question = " ".join(args.question)
    if not question.strip():
        raise BadUsage("usage_empty_question")
    if args.chart:
        picture.check(args.chart)
    catalogue = team_catalogue(args.overrides)
    policy = team_policy(args.overrides)
    answered = answer(question, catalogue=catalogue, policy=policy, lang=args.lang, as_of=date.today())
    if args.json:
        print(json.dumps(answered.json(), ensure_ascii=False, indent=2))
    else:
        sys.stdout.write(answered.text(terminal(args.plain)))
        if args.explain:
            _explain(answered, terminal(args.plain))
    if args.chart:
        picture.save(args.chart, answered)
    return answered.exit_code


def _explain(answered: Answered, surface: Surface) -> None:
    """The working below the answer; the JSON form always has it."""
    if answered.advice is None:
        print(f"gpufit: {answered.words('explain_needs_advice')}", file=sys.stderr)
        return
    from bot.answers.explained import explained

    sys.stdout.write("\n" + explained(answered.advice, answered.words, surface))
