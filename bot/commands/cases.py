"""`gpufit cases`: what users measured, as cases of the published-case format."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from bot.commands.store import add_shared, command_error, opened
from bot.commands.team import add_overrides, team_catalogue

if TYPE_CHECKING:
    from bot.store.sqlite.store import SqliteStore
    from rules.catalog.catalogue import Catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command and its action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="one case a line, as gpufit estimate and evaluate read them")
    add_shared(export)
    add_overrides(export)


def run(args: argparse.Namespace) -> int:
    """Prints the cases as JSON Lines (`--json`: one array); how many reports made none goes to standard error."""
    catalogue = team_catalogue(args.overrides)
    with closing(_store(args)) as store:
        cases, left_out = _cases(store, catalogue)
    if args.json:
        print(json.dumps(cases, ensure_ascii=False, indent=2))
    else:
        for case in cases:
            print(json.dumps(case, ensure_ascii=False))
    if left_out:
        from bot.answers.words import words

        print(f"gpufit: {words(args.lang).say('cases_left_out', {'reports': left_out})}", file=sys.stderr)
    return 0


def _store(args: argparse.Namespace) -> SqliteStore:
    from bot.commands.store import settings_in_force

    settings_in_force()
    from bot.store.errors import StoreError

    try:
        return opened(args)
    except StoreError as exc:
        raise command_error(exc) from exc


def _cases(store: SqliteStore, catalogue: Catalogue) -> tuple[list[dict[str, Any]], int]:
    from bot.store.cases import cases_of
    from bot.store.errors import StoreError

    cases, left_out = [], 0
    try:
        for feedback, asked in store.opinions.reported():
            found = list(cases_of(feedback, asked, catalogue))
            cases += found
            left_out += not found
    except StoreError as exc:
        raise command_error(exc) from exc
    return cases, left_out
