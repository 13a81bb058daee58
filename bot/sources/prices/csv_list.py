"""A price list with the columns of `offers.csv`: at a URL, or in a file on disk."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import field
from datetime import date
from pathlib import Path

from bot.sources.overrides import OFFER_COLUMNS
from bot.sources.prices.download import MIB, Downloader
from bot.sources.prices.errors import PricesMalformed, PricesTooLarge, PricesUnreachable
from bot.sources.prices.port import Answer, Progress
from rules.catalog.offers import Offer
from rules.records import dataclass

_NEEDED = ("provider", "instance", "region", "gpu", "n_gpus", "price_date")


@dataclass(frozen=True, slots=True)
class CsvPrices:
    """Reads the list over HTTP."""

    url: str
    downloader: Downloader = field(default_factory=Downloader)

    @property
    def name(self) -> str:
        """The host of the list, without user, password or query."""
        from urllib.parse import urlsplit

        return urlsplit(self.url).hostname or "csv"

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """Every line of the list."""
        return _answer(self.downloader.get(self.url, self.name, progress), self.name)


@dataclass(frozen=True, slots=True)
class CsvFile:
    """Reads the list from disk; nothing leaves the machine."""

    path: Path
    most_bytes: int = 64 * MIB

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    def offers(self, known: Sequence[Offer], today: date, progress: Progress) -> Answer:
        """Every line of the list."""
        try:
            if self.path.stat().st_size > self.most_bytes:
                raise PricesTooLarge(self.name, self.most_bytes / MIB)
            body = self.path.read_bytes()
        except OSError as exc:
            raise PricesUnreachable(self.name, exc.strerror or type(exc).__name__) from exc
        progress(self.name, len(body))
        return _answer(body, self.name)


def _answer(body: bytes, source: str) -> Answer:
    try:
        reader = csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), restkey="?", strict=True)
        columns = reader.fieldnames or ()
        missing = [column for column in _NEEDED if column not in columns]
        if missing:
            raise PricesMalformed(source, f"without the columns {', '.join(missing)}")
        rows = []
        for raw in reader:
            if "?" in raw or None in raw.values():
                raise PricesMalformed(source, f"line {reader.line_num}: cells do not match the columns")
            rows.append({column: str(raw.get(column) or "").strip() for column in OFFER_COLUMNS})
    except UnicodeDecodeError as exc:
        raise PricesMalformed(source, "not UTF-8 text") from exc
    except csv.Error as exc:
        raise PricesMalformed(source, str(exc)) from exc
    if not rows:
        raise PricesMalformed(source, "no offers")
    return Answer(tuple(rows), frozenset(row["provider"] for row in rows))
