"""How old the prices behind an answer are: at most one warning for its foot."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from rules.cost.types import RentalQuote
from rules.memory.footprint import Note, Param
from rules.policy import PricePolicy


def stale(quotes: Iterable[RentalQuote], as_of: date, policy: PricePolicy) -> Note | None:
    """The warning about the price that is furthest past its age in `policy`; None where none is past it.

    Ages are days from a quote's `price_date` to `as_of`; spot prices age sooner than the others. A price without a
    date is warned of only where no dated one is past its age: of its age nothing is known.
    """
    worst: tuple[float, Note] | None = None
    undated: RentalQuote | None = None
    for quote in quotes:
        if quote.price_date is None:
            undated = undated or quote
            continue
        spot = quote.purchase == "spot"
        limit = policy.spot_stale_after_days if spot else policy.stale_after_days
        days = (as_of - quote.price_date).days
        past = days / max(limit, 1)
        if days > limit and (worst is None or past > worst[0]):
            params: dict[str, Param] = {
                "provider": quote.provider,
                "date": quote.price_date.isoformat(),
                "days": days,
                "limit": limit,
            }
            worst = past, Note("prices_stale_spot" if spot else "prices_stale", params)
    if worst is not None:
        return worst[1]
    return Note("prices_undated", {"provider": undated.provider}) if undated else None
