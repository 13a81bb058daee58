"""What owning costs: one `OwnershipFact` per row of `data/ownership.csv`, and the look-up by parameter and region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation

from rules.catalog.cells import amount_of
from rules.catalog.errors import CatalogError
from rules.records import dataclass

_EU = frozenset("AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipFact:
    """One published figure, in `unit`; None = not sourced, which stays an operator's assumption.

    For power supplies the three columns are loads (20, 50 and 100 %), not a range.
    """

    parameter: str
    low: Decimal | None
    typical: Decimal | None
    high: Decimal | None
    unit: str
    region: str
    as_of: str
    source: str
    note: str = ""

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> OwnershipFact:
        """Builds one fact from a CSV row; raises `CatalogError` naming the parameter and what is wrong."""
        try:
            low, typical, high = (amount_of(row[key]) for key in ("low", "typical", "high"))
            return cls(
                parameter=row["parameter"],
                low=low,
                typical=typical,
                high=high,
                unit=row["unit"],
                region=row["region"],
                as_of=row["as_of"],
                source=row["source"],
                note=row["note"],
            )
        except (KeyError, ValueError, AttributeError, TypeError, InvalidOperation) as exc:
            raise CatalogError("ownership_row_invalid", row=row.get("parameter") or "?", detail=str(exc)) from exc

    @property
    def stale(self) -> bool:
        """True where the row itself says that it must not serve as a default."""
        return self.note.startswith("STALE")


class OwnershipFacts:
    """All facts, found by parameter."""

    def __init__(self, facts: Sequence[OwnershipFact]) -> None:
        self.all: tuple[OwnershipFact, ...] = tuple(facts)
        self._by_parameter: dict[str, list[OwnershipFact]] = {}
        for fact in facts:
            self._by_parameter.setdefault(fact.parameter, []).append(fact)

    def find(self, parameter: str, *, region: str | None = None, unit: str | None = None) -> OwnershipFact | None:
        """The newest row of `parameter` that has a typical value; None where nothing usable was sourced."""
        rows = [
            fact
            for fact in self._by_parameter.get(parameter, ())
            if fact.typical is not None
            and not fact.stale
            and region in (None, fact.region)
            and unit in (None, fact.unit)
        ]
        return max(rows, key=lambda fact: fact.as_of, default=None)

    def electricity(self, buyer: str, country: str | None) -> OwnershipFact | None:
        """USD a kWh for a `household` or `business` of a country (ISO 3166, or UK); the EU's average where it has none.

        None where neither the country nor its union has a usable row. Without a country: the United States.
        """
        place = "UK" if country == "GB" else country or "US"
        parameter = f"electricity_{buyer}"
        found = self.find(parameter, region=place, unit="USD/kWh")
        if found is None and place in _EU:
            found = self.find(parameter, region="EU", unit="USD/kWh")
        return found
