"""Cells of the catalogue's CSV files: an empty one is not known; a wrong one raises `ValueError` or its like."""

from __future__ import annotations

from datetime import date
from decimal import Decimal


def amount_of(text: str) -> Decimal | None:
    """A sum or share of at least 0."""
    if not text:
        return None
    value = Decimal(text)
    if not (value.is_finite() and value >= 0):
        raise ValueError(f"{text!r} is not an amount")
    return value


def price_of(text: str) -> Decimal | None:
    """A price, which is above 0: what costs nothing is not offered."""
    if not text:
        return None
    value = Decimal(text)
    if not (value.is_finite() and value > 0):
        raise ValueError(f"{text!r} is not a price")
    return value


def date_of(text: str) -> date | None:
    """A full date, or the first day of the month or year where no more is known."""
    if not text:
        return None
    return date.fromisoformat(text + "-01-01"[len(text) - 4 :])
