"""`gpufit doctor`: whether the bot has what it needs, and what to do where it has not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.commands.store import add_shared, database_of, settings_in_force
from bot.commands.team import add_overrides, team_catalogue, team_policy
from bot.errors import CommandError

if TYPE_CHECKING:
    from bot.commands.doctor_checks import Finding
    from bot.commands.doctor_reach import Reach
    from bot.store.clock import Clock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--online",
        action="store_true",
        help="also ask Slack about the tokens and the sources that are switched on (without it nothing leaves)",
    )
    add_shared(parser)
    add_overrides(parser)


def run(args: argparse.Namespace) -> int:
    """Prints a line a check; exit code 1 where one failed."""
    try:
        from bot.commands.doctor_reach import HttpReach
        from bot.store.clock import SystemClock

        findings = list(examined(args, SystemClock(), HttpReach()))
    except ModuleNotFoundError as exc:
        raise CommandError("bot_not_installed", package=exc.name or "") from exc
    return report(findings, args)


def examined(args: argparse.Namespace, clock: Clock, reach: Reach) -> Iterator[Finding]:
    """All findings, in the order in which they are told."""
    settings = settings_in_force()
    from bot.commands import doctor_checks as checks
    from bot.settings import settings_path

    yield from checks.settings_file(settings_path())
    catalogue = team_catalogue(args.overrides)
    yield from checks.tokens(settings)
    yield from checks.database(database_of(args))
    yield from checks.catalogue_age(catalogue, team_policy(args.overrides), clock)
    yield from checks.clock_set(catalogue, clock)
    if args.online:
        yield from checks.online(settings, clock, reach)


def report(findings: list[Finding], args: argparse.Namespace) -> int:
    """Prints the findings; the exit code."""
    from bot.answers.words import words
    from rules.memory.footprint import Note

    say = words(args.lang).say
    if args.json:
        form = [
            {
                "check": one.check,
                "level": one.level,
                "id": one.found.message,
                "params": {k: say(v) if isinstance(v, Note) else v for k, v in one.found.params.items()},
                "text": say(one.found),
                "do": say(one.do) if one.do else None,
            }
            for one in findings
        ]
        print(json.dumps(form, ensure_ascii=False, indent=2))
    else:
        for one in findings:
            told = say(one.found) + (f" {say(one.do)}" if one.do else "")
            print(f"{one.level:<4}  {one.check:<11}  {' '.join(told.split())}")
    return 1 if any(one.level == "fail" for one in findings) else 0
