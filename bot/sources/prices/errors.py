"""Errors of a price refresh; after each of them the prices in use are what they were before.

PriceError                  one line for the operator (a `SourceError`)
├── PricesSwitchedOff       outbound access is not allowed
├── PricesNotInstalled      the optional package of a source is missing
├── PricesUnreachable       no answer, an answer with an error status, or one that never ends
├── PricesTooLarge          more bytes than a price list has
├── PricesMalformed         an answer that is no price list
├── PricesOlder             a price list older than the one in use
├── PricesPartial           too few of the known offers
├── RefreshBusy             another refresh holds the folder
└── NothingToRevert         no previous prices are kept
"""

from __future__ import annotations

from datetime import date

from bot.sources.errors import SourceError


class PriceError(SourceError):
    """Prices that cannot be refreshed."""


class PricesSwitchedOff(PriceError):
    """Outbound access is off."""

    def __init__(self, source: str) -> None:
        super().__init__(
            "prices_switched_off", f"{source}: outbound access is off; set GPUFIT_ALLOW_PRICES=1", source=source
        )


class PricesNotInstalled(PriceError):
    """The package behind a source is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__("prices_not_installed", f"the package {package} is missing", package=package)


class PricesUnreachable(PriceError):
    """The source did not give an answer that can be used."""

    def __init__(self, source: str, detail: str) -> None:
        super().__init__("prices_unreachable", f"{source}: no usable answer ({detail})", source=source, detail=detail)


class PricesTooLarge(PriceError):
    """The answer was cut: it is larger than any price list."""

    def __init__(self, source: str, limit_mib: float) -> None:
        text = f"{source}: the answer is larger than {limit_mib:g} MiB and was cut"
        super().__init__("prices_too_large", text, source=source, limit_mib=f"{limit_mib:g}")


class PricesMalformed(PriceError):
    """The answer is no price list."""

    def __init__(self, source: str, detail: str) -> None:
        super().__init__("prices_malformed", f"{source}: not a price list ({detail})", source=source, detail=detail)


class PricesOlder(PriceError):
    """The newest price of the answer is older than the newest that is in use."""

    def __init__(self, source: str, answered: date, known: date) -> None:
        text = f"{source}: its prices are of {answered}, those in use of {known}"
        super().__init__("prices_older", text, source=source, answered=answered.isoformat(), known=known.isoformat())


class PricesPartial(PriceError):
    """The answer covers too few of the offers in use."""

    def __init__(self, source: str, found: int, known: int) -> None:
        text = f"{source}: {found} of {known} known offers; --accept-partial takes them all the same"
        super().__init__("prices_partial", text, source=source, found=found, known=known)


class RefreshBusy(PriceError):
    """Another refresh is at work in this folder."""

    def __init__(self) -> None:
        super().__init__("prices_refresh_busy", "another refresh is at work in this folder")


class NothingToRevert(PriceError):
    """There are no previous prices."""

    def __init__(self) -> None:
        super().__init__("prices_nothing_to_revert", "no previous prices are kept in this folder")
