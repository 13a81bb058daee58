"""One refresh: ask a source, check its rows, and take them all or keep what is in use."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from bot.sources.overrides import load_overrides, refreshed_rows
from bot.sources.prices.check import Checked, RowCheck
from bot.sources.prices.errors import PricesOlder, PricesPartial, PricesSwitchedOff
from bot.sources.prices.port import Answer, Key, PriceSource, Progress, Row, key_of
from bot.sources.prices.swap import sole_writer, swap_in
from rules.catalog.catalogue import Catalogue
from rules.catalog.offers import Offer
from rules.memory.footprint import Note
from rules.policy import PricePolicy
from rules.records import dataclass

SWITCH = "GPUFIT_ALLOW_PRICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """What a refresh did. `known` are the offers in use of the source's providers, `confirmed` those it priced again.

    `written` is None after a dry run.
    """

    source: str
    known: int
    confirmed: int
    new: int
    changed: int
    refused: tuple[Note, ...]
    oldest: date | None
    newest: date | None
    written: Path | None


def allow_outbound(source: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raises `PricesSwitchedOff` without `GPUFIT_ALLOW_PRICES=1`."""
    if environment.get(SWITCH, "").lower() not in ("1", "true", "yes"):
        raise PricesSwitchedOff(source)


def refresh(
    source: PriceSource,
    folder: Path,
    policy: PricePolicy,
    *,
    today: date,
    progress: Progress,
    dry_run: bool = False,
    accept_partial: bool = False,
) -> Refresh:
    """Asks, checks and swaps. Raises a `PriceError`, and then nothing has changed.

    The team's own `offers.csv` is neither asked about nor touched: it stays in front of every fresh price.
    """
    with sole_writer(folder):
        overrides = load_overrides(folder)
        catalogue = Catalogue.load().with_overrides(accelerators=overrides.devices)
        own = refreshed_rows(folder)
        known = catalogue.with_overrides(refreshed=own).offers
        answer = source.offers(known, today, progress)
        checked = RowCheck(catalogue, known, policy, today).all(answer.rows)
        in_scope = {key_of(offer): offer for offer in known if offer.provider in answer.scope}
        confirmed = in_scope.keys() & checked.accepted.keys()
        _not_older(source.name, answer, in_scope)
        if not accept_partial and len(confirmed) < policy.refresh_least_share * len(in_scope):
            raise PricesPartial(source.name, len(confirmed), len(in_scope))
        written = None if dry_run else swap_in(folder, _merged(own, checked))
    dates = [day for offer, _ in checked.accepted.values() for day in (offer.price_date,) if day]
    return Refresh(
        source=source.name,
        known=len(in_scope),
        confirmed=len(confirmed),
        new=len(checked.accepted) - len(confirmed),
        changed=sum(_moved(in_scope[key], checked.accepted[key][0]) for key in confirmed),
        refused=checked.refused,
        oldest=min(dates, default=None),
        newest=max(dates, default=None),
        written=written,
    )


def _not_older(source: str, answer: Answer, in_scope: Mapping[Key, Offer]) -> None:
    known = [offer.price_date for offer in in_scope.values() if offer.price_date]
    answered = []
    for row in answer.rows:
        try:
            answered.append(date.fromisoformat(row.get("price_date", "")))
        except ValueError:
            continue
    if known and answered and max(answered) < max(known):
        raise PricesOlder(source, max(answered), max(known))


def _moved(old: Offer, fresh: Offer) -> bool:
    return (old.on_demand_usd_per_hour, old.spot_usd_per_hour) != (
        fresh.on_demand_usd_per_hour,
        fresh.spot_usd_per_hour,
    )


def _merged(own: Sequence[Row], checked: Checked) -> list[Row]:
    """The accepted rows, then what earlier refreshes brought and this one did not."""
    kept = [row for row in own if key_of(Offer.from_row(row)) not in checked.accepted]
    return [*(row for _, row in checked.accepted.values()), *kept]
