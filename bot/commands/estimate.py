"""`gpufit estimate`: predictions for published cases, one JSON object in, one out."""

from __future__ import annotations

import argparse
import json
import sys

from bot.commands.batch import lines_of
from bot.commands.team import add_overrides, team_catalogue, team_policy
from bot.errors import BadUsage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--batch", metavar="FILE", help="JSON Lines, one case a line; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON Lines (the only form; kept for scripts)")
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Prints one answer for each case; a bad line gives an error object and the others go on."""
    from bot.estimate import Estimator

    estimator = Estimator(team_catalogue(args.overrides), team_policy(args.overrides))
    answers = estimator.lines(lines_of(args.batch)) if args.batch else [estimator.text(_standard_input())]
    for answer in answers:
        print(json.dumps(answer, ensure_ascii=False))
    return 0


def _standard_input() -> str:
    text = sys.stdin.read()
    if not text.strip():
        raise BadUsage("usage_no_case")
    return text
