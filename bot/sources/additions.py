"""New rows for a team's files: a model from the Hub or from a `config.json`, a device from given figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bot.sources.errors import ConfigError
from bot.sources.hub import HubClient, hub_client
from bot.sources.overrides import DEVICE_COLUMNS, device_row, write_device_row, write_model_row
from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError
from rules.catalog.hf_config import row_from_config
from rules.catalog.models import ModelSpec


def add_model(source: str, directory: Path, name: str | None = None, hub: HubClient | None = None) -> ModelSpec:
    """Writes the row of a Hub id, or of a path to a `config.json` (or its folder), and returns its spec.

    `name` is the id to file it under; a path's folder name otherwise. Raises `SourceError` where the source cannot be
    read, `CatalogError` where its config says too little.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        path = path / "config.json"
    local = path.suffix == ".json" or path.is_file()
    if local:
        row = row_from_config(_read(path), name or f"local/{path.resolve().parent.name}")
    else:
        client = hub or hub_client(directory / "hub", source)
        found = client.model(source)
        row = row_from_config(found.config, name or found.hub_id, found.safetensors_params)
        row["source"] = f"Hugging Face Hub, commit {found.commit}"
    write_model_row(directory, row)
    return ModelSpec.from_row(row, origin="config" if local else "hub")


def add_device(fields: Mapping[str, str], directory: Path, like: str | None = None) -> Accelerator:
    """Writes a device row from given columns and returns it; `like` names a known device to take the rest from.

    Raises `CatalogError` for an unknown column or a wrong value, `UnknownName` where `like` is not known.
    """
    unknown = [column for column in fields if column not in DEVICE_COLUMNS]
    if unknown:
        raise CatalogError("device_row_invalid", row=fields.get("name", "?"), detail=f"columns: {', '.join(unknown)}")
    row = {**(_columns_of(Catalogue.load().find_accelerator(like)) if like else {}), **fields}
    if "memory_gib" in fields and "memory_gb_marketed" not in fields:
        row["memory_gb_marketed"] = fields["memory_gib"]
    write_device_row(directory, row)
    return Accelerator.from_row(device_row(row), origin="override")


def _columns_of(device: Accelerator) -> dict[str, str]:
    """The columns of a known device that describe its chip; names, prices and sources are its own."""
    own = {
        "name",
        "aliases",
        "list_price_usd",
        "street_price_usd",
        "price_date",
        "unverified_fields",
        "notes",
        "origin",
    }
    out = {}
    for column in DEVICE_COLUMNS:
        value = getattr(device, column, None)
        if column in own or value is None:
            continue
        out[column] = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    return out


def _read(path: Path) -> Mapping[str, object]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ConfigError(str(path), exc.strerror or "cannot be read") from exc
    except (json.JSONDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(str(path), "not JSON") from exc
    if not isinstance(config, dict):
        raise ConfigError(str(path), "not a JSON object")
    return config
