"""The catalogue: models, accelerators, CPUs and offers with their names, read once from package data.

`Catalogue.load()` reads only what a question asks for: every file is parsed on first use, and a typed object is built
when its row is resolved or when a whole list is asked for.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache, cached_property
from typing import Any

from rules.catalog.accelerator_names import AcceleratorIndex
from rules.catalog.accelerators import Accelerator
from rules.catalog.cpus import Cpu, CpuIndex
from rules.catalog.instances import InstanceIndex, notebook
from rules.catalog.managed import ManagedPrice
from rules.catalog.model_names import ModelIndex, ModelMatch, ModelRows
from rules.catalog.models import ModelSpec
from rules.catalog.names import DATA
from rules.catalog.offers import Offer, later, machine_of, not_replaced
from rules.catalog.ownership import OwnershipFact, OwnershipFacts
from rules.records import dataclass

AS_OF = date(2026, 11, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedHost:
    """A host that the team owns; `price_paid_usd` is what the whole host cost, None where nobody said."""

    host: str
    gpu: str
    n_gpus: int
    cpu: str = ""
    ram_gib: float | None = None
    price_paid_usd: Decimal | None = None
    bought: date | None = None
    notes: str = ""


Row = Mapping[str, Any]


class Catalogue:
    """Facts about hardware, prices and models. Immutable; `with_overrides` gives a new one with a team's rows first."""

    def __init__(
        self,
        *,
        models: Sequence[Row] = (),
        accelerators: Sequence[Mapping[str, str]] = (),
        offers: Sequence[Mapping[str, str]] = (),
        owned: Sequence[OwnedHost] = (),
        refreshed: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self._models, self._accelerators, self._offers = tuple(models), tuple(accelerators), tuple(offers)
        self._refreshed = tuple(refreshed)
        self.owned: tuple[OwnedHost, ...] = tuple(owned)

    @staticmethod
    def load() -> Catalogue:
        """The packaged catalogue, the same object on every call."""
        return _packaged()

    def with_overrides(
        self,
        models: Sequence[Row] = (),
        accelerators: Sequence[Mapping[str, str]] = (),
        offers: Sequence[Mapping[str, str]] = (),
        owned: Sequence[OwnedHost] = (),
        refreshed: Sequence[Mapping[str, str]] = (),
    ) -> Catalogue:
        """A catalogue in which these rows come before ours and replace rows of the same id, name or instance.

        `refreshed` are offers of a price refresh: they come behind the team's own and before our older ones.
        """
        return Catalogue(
            models=(*models, *self._models),
            accelerators=(*accelerators, *self._accelerators),
            offers=(*offers, *self._offers),
            owned=(*owned, *self.owned),
            refreshed=(*refreshed, *self._refreshed),
        )

    @property
    def as_of(self) -> date:
        """The date of the packaged facts; each price carries its own date besides."""
        return AS_OF

    @property
    def version(self) -> str:
        """The date of the facts, with a mark where a team's rows were added."""
        own = bool(self._models or self._accelerators or self._offers or self._refreshed or self.owned)
        return f"{AS_OF.isoformat()}{'+team' if own else ''}"

    @cached_property
    def _model_index(self) -> ModelIndex:
        rows = ModelRows(self._models, _model_lines())
        own = len(self._models)
        return ModelIndex(rows, ["override"] * own + ["catalogue"] * (len(rows) - own))

    @cached_property
    def _accelerator_index(self) -> AcceleratorIndex:
        rows, origins = _merged(self._accelerators, _csv_rows("gpus.csv"), "name")
        return AcceleratorIndex(rows, origins)

    @cached_property
    def models(self) -> tuple[ModelSpec, ...]:
        """Every model, the team's first."""
        return self._model_index.all()

    @cached_property
    def accelerators(self) -> tuple[Accelerator, ...]:
        """Every accelerator, the team's first."""
        return self._accelerator_index.all()

    @cached_property
    def accelerator_rows(self) -> tuple[Mapping[str, str], ...]:
        """Every accelerator's row as text, the team's first: cheap, for spotting names in a question."""
        return tuple(_merged(self._accelerators, _csv_rows("gpus.csv"), "name")[0])

    @cached_property
    def model_ids(self) -> tuple[str, ...]:
        """Every model's Hub id, the team's first."""
        return self._model_index.ids()

    @cached_property
    def cpus(self) -> tuple[Cpu, ...]:
        """Every CPU."""
        return tuple(Cpu.from_row(row) for row in _csv_rows("cpus.csv"))

    @cached_property
    def offers(self) -> tuple[Offer, ...]:
        """Every offer, the team's first; a team's row replaces ours of the same machine (see `not_replaced`).

        Of a refreshed row and ours for the same machine the later counts.
        """
        own = [Offer.from_row(row, "override") for row in self._offers]
        fresh = [Offer.from_row(row, "refreshed") for row in self._refreshed]
        ours = [Offer.from_row(row) for row in _csv_rows("offers.csv")]
        if fresh:
            fresh, ours = later(fresh, ours)
        if own:
            fresh, ours = (list(not_replaced({machine_of(o) for o in own}, rows, machine_of)) for rows in (fresh, ours))
        return (*own, *fresh, *ours)

    @cached_property
    def managed(self) -> tuple[ManagedPrice, ...]:
        """Every managed and serverless price."""
        return tuple(ManagedPrice.from_row(row) for row in _csv_rows("managed.csv"))

    @cached_property
    def ownership(self) -> OwnershipFacts:
        """What owning costs: electricity, hosts, colocation, residual values, exchange rates."""
        return OwnershipFacts([OwnershipFact.from_row(row) for row in _csv_rows("ownership.csv")])

    @cached_property
    def _cpu_index(self) -> CpuIndex:
        return CpuIndex(self.cpus)

    @cached_property
    def _instance_index(self) -> InstanceIndex:
        return InstanceIndex(self.offers)

    def find_model(
        self, name: str | None, params_b: float | None = None, active_params_b: float | None = None
    ) -> ModelMatch:
        """Resolves a model by name, by size in billions of parameters, or both; see `ModelIndex.find`."""
        return self._model_index.find(name, params_b, active_params_b)

    def find_accelerator(self, name: str, memory_gib: float | None = None) -> Accelerator:
        """Resolves a device; `memory_gib` picks the variant. A hosted notebook's name gives its device."""
        hosted = notebook(name)
        return self._accelerator_index.find(hosted[0] if hosted else name, memory_gib)

    def find_cpu(self, name: str) -> Cpu:
        """Resolves a CPU; raises `UnknownName`."""
        return self._cpu_index.find(name)

    def find_instance(self, name: str) -> tuple[Accelerator | None, float, Offer | None]:
        """Accelerator, how many of it, and the offer of a cloud instance or hosted notebook; raises `UnknownName`.

        A CPU-only instance gives (None, 0, offer); a notebook has no offer.
        """
        if hosted := notebook(name):
            return self.find_accelerator(hosted[0]), float(hosted[1]), None
        offer = self._instance_index.find(name)
        return (self.find_accelerator(offer.gpu) if offer.gpu else None), offer.n_gpus, offer


def _merged(own: Sequence[Row], packaged: Sequence[Row], key: str) -> tuple[list[Row], list[str]]:
    replaced = {str(row[key]).lower() for row in own}
    kept = [row for row in packaged if str(row[key]).lower() not in replaced]
    return [*own, *kept], ["override"] * len(own) + ["catalogue"] * len(kept)


@cache
def _packaged() -> Catalogue:
    return Catalogue()


@cache
def _model_lines() -> tuple[str, ...]:
    lines = (DATA / "models.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line)


@cache
def _csv_rows(name: str) -> tuple[dict[str, str], ...]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        return tuple(dict(zip(header, values, strict=True)) for values in reader)
