"""A team's own files win over ours, and a wrong row is named."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from bot.sources.errors import OverrideError
from bot.sources.overrides import Overrides, home_directory, load_overrides, write_device_row, write_model_row
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError

DEVICE = {"name": "RTX 4090 blower", "aliases": "blower", "memory_gib": "48", "bandwidth_gb_s": "1008"}


def _model(**changes: object) -> dict[str, object]:
    return {
        "hf_id": "acme/tiny", "aliases": ["acme tiny"], "arch_type": "decoder", "hf_model_type": "llama", "layers": 2,
        "params_total": 1_000_000, "params_active": 1_000_000, "hidden": 64, "heads": 4, "kv_heads": 4, "head_dim": 16,
        "intermediate": 128, "vocab": 1000, "tie_embeddings": True, **changes,
    }  # fmt: skip


def test_an_empty_or_missing_directory_changes_nothing(tmp_path: Path) -> None:
    """Without rows the packaged catalogue is used as it is."""
    overrides = load_overrides(tmp_path / "nowhere")
    assert overrides == Overrides()
    assert overrides.over(Catalogue.load()) is Catalogue.load()


def test_the_directory_comes_from_the_environment(tmp_path: Path) -> None:
    """`GPUFIT_HOME` names the directory."""
    assert home_directory({"GPUFIT_HOME": str(tmp_path)}) == tmp_path
    assert home_directory({}).name == ".gpufit"


def test_a_written_model_is_found_by_its_alias(tmp_path: Path) -> None:
    """A model row round-trips through the file into the catalogue, and a second write replaces it."""
    write_model_row(tmp_path, _model())
    write_model_row(tmp_path, _model(layers=3))
    catalogue = load_overrides(tmp_path).over(Catalogue.load())
    match = catalogue.find_model("acme tiny")
    assert (match.spec.hf_id, match.spec.layers, match.spec.origin) == ("acme/tiny", 3, "override")
    assert len((tmp_path / "models.jsonl").read_text().splitlines()) == 1


def test_a_written_device_is_found_and_others_stay(tmp_path: Path) -> None:
    """A device row round-trips, with the columns that follow from the rest filled in."""
    write_device_row(tmp_path, DEVICE)
    write_device_row(tmp_path, {**DEVICE, "name": "Other", "aliases": "other card"})
    catalogue = load_overrides(tmp_path).over(Catalogue.load())
    device = catalogue.find_accelerator("blower")
    assert (device.name, device.memory_gib, device.memory_gb_marketed, device.origin) == (
        "RTX 4090 blower", 48, 48, "override",
    )  # fmt: skip
    assert catalogue.find_accelerator("other card").name == "Other"
    assert catalogue.find_accelerator("4090").origin == "catalogue"


def test_an_offer_of_the_team_replaces_ours(tmp_path: Path) -> None:
    """A negotiated price for the same instance and region wins; the device may be named as people write it."""
    head = "provider,instance,region,gpu,n_gpus,on_demand_usd_h,price_date"
    text = f"{head}\naws,p4d.24xlarge,us-east-1,a100 40,8,11.5,2026-11-01\n"
    (tmp_path / "offers.csv").write_text(text)
    catalogue = load_overrides(tmp_path).over(Catalogue.load())
    prices = [
        o.on_demand_usd_per_hour for o in catalogue.offers if (o.instance, o.region) == ("p4d.24xlarge", "us-east-1")
    ]
    assert prices == [Decimal("11.5")]


def test_owned_hosts_carry_the_price_paid(tmp_path: Path) -> None:
    """Hosts are typed, with the price as an exact decimal."""
    (tmp_path / "owned_hosts.csv").write_text(
        "host,gpu,n_gpus,cpu,ram_gib,price_paid_usd,bought,notes\n"
        "lab-01,4090,2,5950x,128,5200.50,2025-03-01,under the desk\n"
    )
    (host,) = load_overrides(tmp_path).over(Catalogue.load()).owned
    assert (host.host, host.gpu, host.n_gpus, host.price_paid_usd) == ("lab-01", "RTX 4090", 2, Decimal("5200.50"))


@pytest.mark.parametrize(
    ("file", "text", "line", "word"),
    [
        ("models.jsonl", json.dumps(_model()) + "\n{oops\n", 2, "JSON"),
        ("models.jsonl", json.dumps(_model(layers=-1)), 1, "layers"),
        ("models.jsonl", "[1]", 1, "object"),
        ("gpus.csv", "name,memory_gib,bandwidth_gb_s\nGood,24,900\nBad,lots,900\n", 3, "lots"),
        ("gpus.csv", "name,memory_gib,bandwidth_gb_s,tier\nBad,24,900,huge\n", 2, "tier"),
        ("gpus.csv", "name,colour\nBad,red\n", 1, "colour"),
        ("offers.csv", "provider,instance,gpu,n_gpus,on_demand_usd_h\nx,y,4080 ti,1,1\n", 2, "4080 ti"),
        ("offers.csv", "provider,instance,gpu,n_gpus,on_demand_usd_h\nx,y,4090,1,-3\n", 2, "price"),
        ("owned_hosts.csv", "host,gpu,n_gpus,price_paid_usd\nlab,4090,1,cheap\n", 2, ""),
        ("owned_hosts.csv", "host,gpu,n_gpus,bought\nlab,4090,1,last year\n", 2, "last year"),
    ],
)
def test_a_wrong_row_names_file_and_line(tmp_path: Path, file: str, text: str, line: int, word: str) -> None:
    """The error says where the row is and what is wrong with it."""
    (tmp_path / file).write_text(text)
    with pytest.raises(OverrideError) as caught:
        load_overrides(tmp_path)
    assert (caught.value.file, caught.value.line) == (file, line)
    assert word in str(caught.value)


def test_a_wrong_row_is_not_written(tmp_path: Path) -> None:
    """A row that would not load leaves the file as it was."""
    with pytest.raises(CatalogError):
        write_device_row(tmp_path, {**DEVICE, "bandwidth_gb_s": "0"})
    with pytest.raises(CatalogError):
        write_model_row(tmp_path, _model(params_total=0))
    assert list(tmp_path.iterdir()) == []
