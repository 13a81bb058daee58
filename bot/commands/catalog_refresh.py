"""`gpufit catalog refresh`: fresh prices from a source, checked and swapped in whole, or the previous ones back."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.commands.team import folder, team_policy
from bot.errors import BadUsage, CommandError

if TYPE_CHECKING:
    from bot.sources.prices.port import PriceSource
    from bot.sources.prices.refresh import Refresh

SOURCES = ("azure", "csv", "gpuhunt")
_REFUSALS_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the action, without those that all actions share."""
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--source", choices=SOURCES, help="where from; csv needs --url or --file")
    given.add_argument("--revert", action="store_true", help="exchange the prices in use with the previous ones")
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        "--url", help="of a price list with the columns of offers.csv, or of another endpoint of the API"
    )
    place.add_argument("--file", type=Path, help="a price list on disk; needs no outbound access")
    parser.add_argument("--dry-run", action="store_true", help="ask and check, change nothing")
    parser.add_argument("--accept-partial", action="store_true", help="take a list that lacks many known offers")
    parser.add_argument("--lang", choices=("en", "es"), default="en", help="language of the report")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """What was done, as plain data; raises `CommandError` where nothing was."""
    from bot.sources.errors import OverrideError
    from bot.sources.prices.errors import PriceError

    place = folder(args.overrides)
    try:
        if args.revert:
            from bot.sources.prices.swap import revert, sole_writer

            with sole_writer(place):
                return {"reverted": str(revert(place))}
        return _report(_refreshed(args, place), args)
    except OverrideError as exc:
        raise BadUsage(exc.message_id, **exc.params) from exc
    except PriceError as exc:
        raise CommandError(exc.message_id, **exc.params) from exc


def text(found: dict[str, Any], lang: str) -> list[str]:
    """The report in words."""
    from bot.answers.words import words

    say = words(lang).say
    if "reverted" in found:
        return [say("refresh_reverted", {"path": found["reverted"]})]
    done = "refresh_dry_run" if found["written"] is None else "refresh_done"
    lines = [say(done, {**found, "path": found["written"] or ""})]
    if found["newest"]:
        lines.append(say("refresh_dates", {"oldest": found["oldest"], "newest": found["newest"]}))
    if found["refused"]:
        lines.append(say("refresh_refused", {"count": len(found["refused"])}))
        lines += [f"  {row['text']}" for row in found["refused"][:_REFUSALS_SHOWN]]
        if len(found["refused"]) > _REFUSALS_SHOWN:
            lines.append(f"  {say('refresh_refused_more', {'count': len(found['refused']) - _REFUSALS_SHOWN})}")
    return lines


def _refreshed(args: argparse.Namespace, place: Path) -> Refresh:
    from datetime import UTC, datetime

    from bot.sources.prices.refresh import allow_outbound, refresh

    if (args.source == "csv") != bool(args.url or args.file) and args.source != "azure":
        raise BadUsage("usage_refresh_place")
    if args.source != "csv" and args.file:
        raise BadUsage("usage_refresh_place")
    if not args.file:
        allow_outbound(args.source)
    progress = _Progress(args.lang)
    try:
        return refresh(
            _source(args, place),
            place,
            team_policy(args.overrides).prices,
            today=datetime.now(UTC).date(),
            progress=progress,
            dry_run=args.dry_run,
            accept_partial=args.accept_partial,
        )
    finally:
        progress.end()


def _source(args: argparse.Namespace, place: Path) -> PriceSource:
    if args.source == "csv":
        from bot.sources.prices.csv_list import CsvFile, CsvPrices

        return CsvFile(args.file) if args.file else CsvPrices(args.url)
    if args.source == "azure":
        from bot.sources.prices.azure import URL, AzurePrices

        return AzurePrices(args.url or URL)
    from bot.sources.prices.gpuhunt_catalog import GpuhuntPrices
    from rules.catalog.catalogue import Catalogue

    return GpuhuntPrices(Catalogue.load())


def _report(done: Refresh, args: argparse.Namespace) -> dict[str, Any]:
    from bot.answers.words import words

    say = words(args.lang).say
    return {
        "source": done.source,
        "known": done.known,
        "confirmed": done.confirmed,
        "new": done.new,
        "changed": done.changed,
        "oldest": done.oldest.isoformat() if done.oldest else None,
        "newest": done.newest.isoformat() if done.newest else None,
        "written": str(done.written) if done.written else None,
        "refused": [{"id": n.message, "params": dict(n.params), "text": say(n)} for n in done.refused],
    }


class _Progress:
    """One line on standard error, rewritten, and only where somebody looks at it."""

    def __init__(self, lang: str) -> None:
        self._lang = lang
        self._shown = False
        self._next = 0

    def __call__(self, source: str, amount: int) -> None:
        if not sys.stderr.isatty() or (self._shown and amount < self._next and amount > self._next // 2):
            return
        from bot.answers.words import words

        line = words(self._lang).say("refresh_progress", {"source": source, "amount": amount})
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self._shown, self._next = True, amount + 2**16

    def end(self) -> None:
        """Leaves the line clear for what comes after it."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
