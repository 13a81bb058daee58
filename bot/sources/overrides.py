"""A team's own rows: models, devices, offers and owned hosts, in files with our columns, which win over ours.

The directory is `GPUFIT_HOME`, or what `--overrides` names, and may hold `models.jsonl`, `gpus.csv`, `offers.csv` and
`owned_hosts.csv`. A column that a file does not have is empty; a wrong row is an error that names file and line.
Prices of `gpufit catalog refresh` lie in `offers.refreshed.csv`: behind the team's own, before our older ones.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeVar

from bot.sources.errors import OverrideError
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue, OwnedHost
from rules.catalog.errors import CatalogError, UnknownName
from rules.catalog.models import ModelSpec
from rules.catalog.offers import Offer
from rules.records import dataclass

T = TypeVar("T")

MODELS, DEVICES, OFFERS, OWNED = "models.jsonl", "gpus.csv", "offers.csv", "owned_hosts.csv"
REFRESHED = "offers.refreshed.csv"

DEVICE_COLUMNS = (
    "name aliases vendor architecture compute_capability tier memory_gib memory_gb_marketed memory_gib_basis "
    "memory_type bandwidth_gb_s fp32_tflops tf32_dense bf16_dense fp16_dense fp8_dense int8_dense_tops fp4_dense tdp_w "
    "interconnect pcie form_factor needs_server_chassis release_year list_price_usd street_price_usd price_date "
    "price_source spec_source unverified_fields notes"
).split()
OFFER_COLUMNS = (
    "provider instance region gpu n_gpus gpu_memory_gb_each vcpus ram_gib on_demand_usd_h spot_usd_h on_demand_eur_h "
    "reserved_1y_usd_h reserved_3y_usd_h billing cpu cpu_flags price_date spot_date source notes"
).split()
OWNED_COLUMNS = "host gpu n_gpus cpu ram_gib price_paid_usd bought notes".split()
_TIERS = ("datacenter", "workstation", "consumer", "integrated", "cloud_only")


@dataclass(frozen=True, slots=True)
class Overrides:
    """Checked rows of a team's files, in file order."""

    models: tuple[Mapping[str, Any], ...] = ()
    devices: tuple[Mapping[str, str], ...] = ()
    offers: tuple[Mapping[str, str], ...] = ()
    owned: tuple[OwnedHost, ...] = ()
    refreshed: tuple[Mapping[str, str], ...] = ()

    def over(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue with these rows in front; the same object where there are none."""
        if not (self.models or self.devices or self.offers or self.owned or self.refreshed):
            return catalogue
        return catalogue.with_overrides(self.models, self.devices, self.offers, self.owned, self.refreshed)


def home_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a team's files lie: `GPUFIT_HOME`, else `.gpufit` in the home directory."""
    return Path(environment.get("GPUFIT_HOME") or Path.home() / ".gpufit")


def load_overrides(directory: Path, catalogue: Catalogue | None = None) -> Overrides:
    """Reads and checks the files of a directory; missing files and a missing directory mean no rows.

    Raises `OverrideError` for the first wrong row.
    """
    base = catalogue or Catalogue.load()
    models = tuple(_models(directory / MODELS))
    devices = tuple(_csv_rows(directory / DEVICES, DEVICE_COLUMNS, device_row))
    known = base.with_overrides(accelerators=devices)
    offers = tuple(_csv_rows(directory / OFFERS, OFFER_COLUMNS, lambda row: _offer_row(row, known)))
    owned = tuple(_csv_rows(directory / OWNED, OWNED_COLUMNS, lambda row: _owned_host(row, known)))
    return Overrides(models, devices, offers, owned, refreshed_rows(directory))


def refreshed_rows(directory: Path) -> tuple[dict[str, str], ...]:
    """The rows of the last price refresh; devices were resolved when it wrote them. Raises `OverrideError`."""
    return tuple(_csv_rows(directory / REFRESHED, OFFER_COLUMNS, _refreshed_row))


def write_model_row(directory: Path, row: Mapping[str, Any]) -> Path:
    """Adds a model row, or replaces the one of the same id; returns the file. Raises `CatalogError` for a wrong row."""
    ModelSpec.from_row(row, origin="override")
    path = directory / MODELS
    kept = [r for r in _models(path) if str(r["hf_id"]).lower() != str(row["hf_id"]).lower()]
    ordered = {"hf_id": row["hf_id"], "aliases": list(row.get("aliases") or ()), **row}
    _replace(path, "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in (*kept, ordered)))
    return path


def write_device_row(directory: Path, row: Mapping[str, str]) -> Path:
    """Adds a device row, or replaces the one of the same name; returns the file. Raises `CatalogError`."""
    full = device_row(row)
    path = directory / DEVICES
    kept = [r for r in _csv_rows(path, DEVICE_COLUMNS, device_row) if r["name"].lower() != full["name"].lower()]
    lines = [_csv_line(DEVICE_COLUMNS), *(_csv_line([r[c] for c in DEVICE_COLUMNS]) for r in (*kept, full))]
    _replace(path, "".join(lines))
    return path


def device_row(given: Mapping[str, str]) -> dict[str, str]:
    """A device row with every column, what follows from the rest filled in; raises `CatalogError` if it is wrong."""
    row = _filled(given, DEVICE_COLUMNS)
    row["memory_gb_marketed"] = row["memory_gb_marketed"] or row["memory_gib"]
    row["vendor"] = (row["vendor"] or "nvidia").lower()
    row["tier"] = row["tier"] or "workstation"
    if row["tier"] not in _TIERS:
        raise CatalogError("device_row_invalid", row=row["name"], detail=f"tier: {row['tier']!r}")
    if not row["name"]:
        raise CatalogError("device_row_invalid", row="?", detail="name is empty")
    Accelerator.from_row(row, origin="override")
    return row


def _offer_row(row: dict[str, str], catalogue: Catalogue) -> dict[str, str]:
    if row["gpu"]:
        row["gpu"] = catalogue.find_accelerator(row["gpu"]).name
    Offer.from_row(row, origin="override")
    return row


def _refreshed_row(row: dict[str, str]) -> dict[str, str]:
    Offer.from_row(row, origin="override")
    return row


def _owned_host(row: Mapping[str, str], catalogue: Catalogue) -> OwnedHost:
    count = int(row["n_gpus"] or 1)
    if not row["host"].strip() or count < 0:
        raise ValueError("host is empty" if not row["host"].strip() else f"n_gpus={count}")
    price = Decimal(row["price_paid_usd"]) if row["price_paid_usd"] else None
    if price is not None and not (price.is_finite() and price >= 0):
        raise ValueError(f"price_paid_usd={row['price_paid_usd']!r}")
    return OwnedHost(
        host=row["host"].strip(),
        gpu=catalogue.find_accelerator(row["gpu"]).name if row["gpu"] else "",
        n_gpus=count if row["gpu"] else 0,
        cpu=row["cpu"],
        ram_gib=float(row["ram_gib"]) if row["ram_gib"] else None,
        price_paid_usd=price,
        bought=date.fromisoformat(row["bought"]) if row["bought"] else None,
        notes=row["notes"],
    )


def _models(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            ModelSpec.from_row(row, origin="override")
        except json.JSONDecodeError as exc:
            raise OverrideError(path.name, number, f"not JSON: {exc.msg}") from exc
        except CatalogError as exc:
            raise OverrideError(path.name, number, f"{exc.params.get('row')}: {exc.params.get('detail')}") from exc
        except AttributeError as exc:
            raise OverrideError(path.name, number, "not a JSON object") from exc
        yield row


def _csv_rows(path: Path, columns: list[str], read: Callable[[dict[str, str]], T]) -> Iterator[T]:
    if not path.exists():
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, restkey="?")
        unknown = [c for c in reader.fieldnames or () if c not in columns]
        if unknown:
            raise OverrideError(path.name, 1, f"unknown columns: {', '.join(unknown)}")
        for raw in reader:
            if "?" in raw:
                raise OverrideError(path.name, reader.line_num, "more cells than columns")
            try:
                found = read(_filled(raw, columns))
            except UnknownName as exc:
                near = f"; near: {', '.join(exc.suggestions)}" if exc.suggestions else ""
                raise OverrideError(path.name, reader.line_num, f"unknown {exc.kind} {exc.name!r}{near}") from exc
            except CatalogError as exc:
                raise OverrideError(path.name, reader.line_num, str(exc.params.get("detail") or exc)) from exc
            except (ValueError, InvalidOperation) as exc:
                raise OverrideError(path.name, reader.line_num, str(exc)) from exc
            yield found


def _filled(row: Mapping[str, str | None], columns: list[str]) -> dict[str, str]:
    return {column: str(row.get(column) or "").strip() for column in columns}


def _csv_line(cells: list[str]) -> str:
    import io

    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _replace(path: Path, text: str) -> None:
    """Writes the whole file beside the old one and then swaps, so that no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(path.suffix + ".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
