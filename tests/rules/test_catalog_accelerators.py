"""Device, CPU and instance names."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError, UnknownName

CATALOGUE = Catalogue.load()
CASES = Path(__file__).parents[1] / "accuracy" / "cases"


def _case_devices() -> list[tuple[str, float | None]]:
    found = set()
    for file in sorted(CASES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            if case.get("gpu") and not case["gpu"].startswith("cpu"):
                found.add((case["gpu"], case.get("gpu_mem_gib")))
    return sorted(found, key=str)


@pytest.mark.parametrize(
    ("text", "name", "memory_gib"),
    [
        ("4090 24g", "RTX 4090", 23.99),
        ("rtx4090", "RTX 4090", 23.99),
        ("a100 40", "A100 40GB PCIe", 40),
        ("A100", "A100 80GB SXM4", 80),
        ("A100-80GB-PCIe", "A100 80GB PCIe", 80),
        ("h100 sxm", "H100 80GB SXM5", 79.65),
        ("H100 NVL", "H100 94GB NVL", 93.58),
        ("3090ti", "RTX 3090 Ti", 23.99),
        ("4060ti 16g", "RTX 4060 Ti 16GB", 15.99),
        ("4060ti 8g", "RTX 4060 Ti 8GB", 8),
        ("2080ti 22g", "RTX 2080 Ti (22 GB)", 22),
        ("RTX 4090 48GB + 2x Xeon Platinum 8488C", "RTX 4090 (48 GB)", 47.98),
        ("H20-141GB", "H20 141GB (H20-3e)", 140.4),
        ("v100 32", "V100 32GB PCIe", 31.75),
        ("colab", "T4", 15),
        ("4090 laptop", "RTX 4090 Laptop", 15.99),
        ("NVIDIA A10G Tensor Core GPU", "A10G", 22.49),
        ("macbook pro m3 max 36gb", "Apple M3 Max (40-core GPU) (36 GB)", 36),
        ("m3 max 30 core", "Apple M3 Max (30-core GPU)", 96),
        ("Mac Studio M2 Ultra 192GB", "Apple M2 Ultra", 192),
    ],
)
def test_what_people_type_finds_the_device(text: str, name: str, memory_gib: float) -> None:
    """Spellings with memory, form factor or brand resolve to the variant that they mean."""
    device = CATALOGUE.find_accelerator(text)
    assert (device.name, device.memory_gib) == (name, pytest.approx(memory_gib, abs=0.01))


@pytest.mark.parametrize("case", _case_devices(), ids=str)
def test_every_device_of_the_published_cases_resolves(case: tuple[str, float | None]) -> None:
    """No case names a device that the catalogue cannot place, and its memory is near the stated one."""
    name, memory_gib = case
    device = CATALOGUE.find_accelerator(name, memory_gib)
    if memory_gib and not device.unified_memory:
        assert 0.88 <= device.memory_gib / memory_gib <= 1.12


def test_a_given_memory_picks_the_variant() -> None:
    """The same name with another memory is another card."""
    assert CATALOGUE.find_accelerator("A100", 40).memory_gib == 40
    assert CATALOGUE.find_accelerator("V100", 32).memory_gib == pytest.approx(31.75)
    assert CATALOGUE.find_accelerator("RTX 4090", 48).origin == "modified"


def test_a_memory_alone_is_a_generic_device() -> None:
    """ "24 GB GPU" is enough for a memory plan, and its rates stay unknown."""
    for device in (CATALOGUE.find_accelerator("24 GB GPU"), CATALOGUE.find_accelerator("", 24)):
        assert (device.memory_gib, device.origin, device.bf16_dense) == (24, "generic", None)


def test_the_gpu_share_of_a_mac_does_not_shrink_the_chip() -> None:
    """A 64 GB Mac keeps 64 GB, though its GPU may wire only 48."""
    assert CATALOGUE.find_accelerator("Apple M4 Pro 64GB", 48).memory_gib == 64


@pytest.mark.parametrize("name", ["4080 ti", "a6000 ada", "rtx 9999"])
def test_a_card_that_does_not_exist_is_not_taken_for_its_sibling(name: str) -> None:
    """A suffix that makes another card is never dropped; near names are offered."""
    with pytest.raises(UnknownName) as caught:
        CATALOGUE.find_accelerator(name)
    assert caught.value.suggestions


@given(st.text(max_size=30), st.one_of(st.none(), st.floats(min_value=0.5, max_value=2000)))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_text_is_a_device_or_unknown(name: str, memory_gib: float | None) -> None:
    """No input ends in another error, and what resolves has memory."""
    try:
        device = CATALOGUE.find_accelerator(name, memory_gib)
    except UnknownName:
        return
    assert device.memory_gib > 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("2x Xeon 6980P", "Xeon 6980P"),
        ("cpu: Core i7-12700K (8 threads)", "Core i7-12700K"),
        ("i5-8400", "Core i5-8400"),
        ("epyc 9654", "EPYC 9654"),
        ("Xeon Gold 6138", "Xeon Gold 6138"),
        ("ryzen 9 5950x", "Ryzen 9 5950X"),
    ],
)
def test_cpu_names_resolve(text: str, name: str) -> None:
    """Counts, brands and thread notes do not hide the model number."""
    assert CATALOGUE.find_cpu(text).name == name


def test_an_unknown_cpu_gives_suggestions() -> None:
    """A near number is offered, never taken."""
    with pytest.raises(UnknownName) as caught:
        CATALOGUE.find_cpu("EPYC 9655X")
    assert "EPYC 9655" in caught.value.suggestions


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        ("p4d", "A100 40GB SXM4", 8),
        ("p5", "H100 80GB SXM5", 8),
        ("g5.xlarge", "A10G", 1),
        ("g4dn", "T4", 1),
        ("kaggle", "T4", 2),
        ("colab", "T4", 1),
        ("Standard_ND96asr_v4", "A100 40GB SXM4", 8),
    ],
)
def test_instances_give_device_and_count(text: str, gpu: str, count: float) -> None:
    """Full sizes, families and notebooks resolve."""
    device, number, _ = CATALOGUE.find_instance(text)
    assert device is not None
    assert (device.name, number) == (gpu, count)


def test_a_cpu_instance_has_an_offer_and_no_device() -> None:
    """CPU-only instances are offers too."""
    device, count, offer = CATALOGUE.find_instance("c7i.16xlarge")
    assert (device, count) == (None, 0)
    assert offer is not None
    assert isinstance(offer.on_demand_usd_per_hour, Decimal)


def test_a_wrong_row_names_itself() -> None:
    """A device row with a bad figure is an error with the row's name and the field."""
    mine = CATALOGUE.with_overrides(accelerators=[{"name": "Broken 9000", "aliases": ""}])
    with pytest.raises(CatalogError) as caught:
        mine.find_accelerator("Broken 9000")
    assert caught.value.params["row"] == "Broken 9000"
