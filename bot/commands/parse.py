"""`gpufit parse`: what was understood of a question, without answering it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from bot.commands.batch import lines_of
from bot.commands.team import add_overrides, team_catalogue
from bot.errors import BadUsage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("question", nargs="*", help="the question, in plain words")
    parser.add_argument("--batch", metavar="FILE", help="many questions, one a line; - reads standard input")
    parser.add_argument("--json", action="store_true", help="print JSON (with --batch: JSON Lines)")
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Prints intent, fields, what would be asked back, what is assumed."""
    if bool(args.question) == bool(args.batch):
        raise BadUsage("give either a question or --batch FILE")
    from bot.questions.parse import parse

    catalogue = team_catalogue(args.overrides)
    if args.question:
        understood = parse(" ".join(args.question), catalogue).to_json()
        print(json.dumps(understood, ensure_ascii=False, indent=2) if args.json else "\n".join(_text(understood)))
        return 0
    for line in lines_of(args.batch):
        understood = parse(line.rstrip("\n"), catalogue).to_json()
        print(json.dumps(understood, ensure_ascii=False) if args.json else "\n".join([*_text(understood), ""]))
    return 0


def _text(understood: dict[str, Any]) -> Iterator[str]:
    yield f"intent    {understood['intent']} ({understood['lang']})"
    for name, value in understood["fields"].items():
        yield f"stated    {name} = {value}"
    for name, value in understood["assumed"].items():
        yield f"assumed   {name} = {value}"
    for name in understood["ask"]:
        yield f"to ask    {name}"
    for problem in understood["problems"]:
        yield f"problem   {problem['id']} {problem['params'] or ''}".rstrip()
