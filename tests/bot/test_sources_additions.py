"""Adding a model and a device to a team's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_sources_hub import CONFIG, FakeHub

from bot.sources.additions import add_device, add_model
from bot.sources.errors import ConfigError, HubSwitchedOff
from bot.sources.hub import HubClient
from bot.sources.overrides import load_overrides
from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError, UnknownName


def test_a_model_from_a_config_file_is_filed_under_its_folder(tmp_path: Path) -> None:
    """A path or its folder works; the count is exact and the row is found afterwards."""
    folder = tmp_path / "my-finetune"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    home = tmp_path / "home"
    spec = add_model(str(folder), home)
    assert spec == add_model(str(folder / "config.json"), home)
    assert spec.params_total == 1000 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64)
    found = load_overrides(home).over(Catalogue.load()).find_model("my-finetune")
    assert (found.spec.hf_id, found.spec.origin) == ("local/my-finetune", "override")


def test_a_model_from_the_hub_names_its_commit(tmp_path: Path) -> None:
    """The row says at which commit the config was read."""
    spec = add_model("acme/tiny", tmp_path, hub=HubClient(FakeHub("c4"), tmp_path / "hub"))
    assert (spec.hf_id, spec.layers, spec.origin) == ("acme/tiny", 4, "hub")
    assert "commit c4" in json.loads((tmp_path / "models.jsonl").read_text())["source"]


def test_the_hub_is_not_asked_where_it_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id without permission is an error, and no file appears."""
    monkeypatch.delenv("GPUFIT_ALLOW_HUB", raising=False)
    with pytest.raises(HubSwitchedOff):
        add_model("acme/tiny", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "text"), [("missing.json", None), ("bad.json", "{"), ("list.json", "[]")])
def test_an_unreadable_config_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    """A missing file, broken JSON and JSON that is no object give an error with the path."""
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=name):
        add_model(str(tmp_path / name), tmp_path / "home")


def test_a_device_like_a_known_one_takes_its_chip(tmp_path: Path) -> None:
    """A modified card keeps bandwidth, rates and architecture of its model, but not its price."""
    device = add_device({"name": "Modded 4090", "aliases": "modded", "memory_gib": "48"}, tmp_path, like="4090")
    known = Catalogue.load().find_accelerator("4090")
    assert (device.memory_gib, device.memory_gb_marketed) == (48, 48)
    assert (device.bandwidth_gb_s, device.bf16_dense, device.compute_capability) == (
        known.bandwidth_gb_s, known.bf16_dense, known.compute_capability,
    )  # fmt: skip
    assert device.list_price_usd is None
    assert load_overrides(tmp_path).over(Catalogue.load()).find_accelerator("modded").name == "Modded 4090"


def test_wrong_device_fields_are_refused(tmp_path: Path) -> None:
    """Unknown columns, missing figures and an unknown model to copy are errors."""
    with pytest.raises(CatalogError, match="colour"):
        add_device({"name": "X", "colour": "red"}, tmp_path)
    with pytest.raises(CatalogError):
        add_device({"name": "X", "memory_gib": "24"}, tmp_path)
    with pytest.raises(UnknownName):
        add_device({"name": "X", "memory_gib": "24"}, tmp_path, like="4080 ti")
