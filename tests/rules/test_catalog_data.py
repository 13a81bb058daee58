"""The packaged data agrees with itself: names, counts, sizes, prices."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from rules.catalog import names
from rules.catalog.capabilities import capability_of
from rules.catalog.catalogue import AS_OF, Catalogue
from rules.catalog.recount import recount

CATALOGUE = Catalogue.load()
ROWS = [json.loads(line) for line in (names.DATA / "models.jsonl").read_text(encoding="utf-8").splitlines()]
_LETTERS = {"S": {"sliding"}, "F": {"full"}, "*": {"full"}, "L": {"linear"}, "M": {"mamba", "mamba2"}, "V": {"conv"},
            "E": {"moe"}, "-": {"mlp"}}  # fmt: skip


def test_every_model_row_begins_with_its_id_and_aliases() -> None:
    """The lazy reader finds every row: as many ids as lines, in order."""
    assert list(CATALOGUE._model_index.ids()) == [row["hf_id"] for row in ROWS]


def test_no_model_id_occurs_twice() -> None:
    """Ids are unique, whatever their case."""
    ids = Counter(row["hf_id"].lower() for row in ROWS)
    assert [hf_id for hf_id, count in ids.items() if count > 1] == []


def test_no_spelling_names_two_models() -> None:
    """An alias, compared as names are compared, belongs to one row."""
    owners: dict[str, set[str]] = defaultdict(set)
    for row in ROWS:
        for name in (row["hf_id"], *row["aliases"]):
            owners[names.key(names.split_publisher(name)[1])].add(row["hf_id"])
    assert {key: ids for key, ids in owners.items() if len(ids) > 1} == {}


def test_parameters_recount_from_the_sizes() -> None:
    """Every row whose block is known counts to its `params_total`, to the last parameter."""
    counted = {row["hf_id"]: (recount(row), row["params_total"]) for row in ROWS}
    covered = {hf_id: pair for hf_id, pair in counted.items() if pair[0] is not None}
    assert {hf_id: pair for hf_id, pair in covered.items() if pair[0] != pair[1]} == {}
    assert len(covered) >= 320


def test_published_counts_agree_or_say_why() -> None:
    """A total more than 1 % from the published figure carries a reason, unless the row is a pipeline."""
    silent = [
        row["hf_id"]
        for row in ROWS
        if row.get("params_published")
        and not row.get("components")
        and abs(row["params_total"] / row["params_published"] - 1) > 0.01
        and not (row.get("diff_reason") or row.get("note"))
    ]
    assert silent == []


def test_layer_kinds_add_up_and_match_the_pattern() -> None:
    """Counts of layer kinds sum to the layers, and a pattern has one letter a layer with the same counts."""
    for spec in CATALOGUE.models:
        if spec.layer_kinds:
            assert sum(spec.layer_kinds.values()) == spec.layers, spec.hf_id
        if spec.layer_pattern:
            assert len(spec.layer_pattern) == spec.layers, spec.hf_id
            for letter, count in Counter(spec.layer_pattern).items():
                kinds = _LETTERS.get(letter)
                if kinds:
                    assert count == sum(spec.layer_kinds.get(kind, 0) for kind in kinds), (spec.hf_id, letter)


def test_model_sizes_are_plausible() -> None:
    """Active parameters never exceed the total, and heads share key-value heads evenly."""
    for spec in CATALOGUE.models:
        assert 0 < spec.params_active <= spec.params_total, spec.hf_id
        if spec.heads and spec.kv_heads:
            assert spec.heads % spec.kv_heads == 0, spec.hf_id


def test_every_accelerator_alias_finds_its_own_row() -> None:
    """The name and each alias of a device resolve to that device."""
    wrong = [
        (name, found.name)
        for device in CATALOGUE.accelerators
        for name in (device.name, *device.aliases)
        if (found := CATALOGUE.find_accelerator(name)).name != device.name
    ]
    assert wrong == []


def test_accelerator_figures_are_plausible() -> None:
    """Memory never exceeds what is marketed, bandwidth and power lie where such devices are built."""
    for device in CATALOGUE.accelerators:
        assert 0.6 * device.memory_gb_marketed <= device.memory_gib <= 1.001 * device.memory_gb_marketed or (
            device.unified_memory and device.memory_gib >= 0.45 * device.memory_gb_marketed
        ), device.name
        assert 30 <= device.bandwidth_gb_s <= 25_000, device.name
        assert device.tdp_w is None or 5 <= device.tdp_w <= 2_000, device.name
        if device.bf16_dense and device.fp8_dense:
            assert device.fp8_dense >= device.bf16_dense, device.name


def test_bf16_and_fp8_rates_agree_with_the_capability_table() -> None:
    """An fp8 rate above zero needs an architecture that computes fp8; one without bf16 has no bf16 rate."""
    for device in CATALOGUE.accelerators:
        if device.vendor != "nvidia":
            continue
        capability = capability_of(device)
        if device.fp8_dense:
            assert capability.fp8 == "native", device.name
        if capability.bf16 == "no":
            assert not device.bf16_dense, device.name


def test_offers_name_known_accelerators_and_are_dated() -> None:
    """Each offer refers to a device by its exact name, and no date lies after that of the catalogue."""
    known = {device.name for device in CATALOGUE.accelerators} | {""}
    for offer in CATALOGUE.offers:
        assert offer.gpu in known, offer.instance
        assert offer.price_date is not None, offer.instance
        assert offer.price_date <= AS_OF, offer.instance
        assert offer.spot_date is None or offer.spot_date <= AS_OF, offer.instance
        assert offer.n_gpus > 0 or not offer.gpu, offer.instance


def test_spot_is_not_dearer_than_on_demand() -> None:
    """Where both are known, the interruptible price is the lower one."""
    for offer in CATALOGUE.offers:
        if offer.spot_usd_per_hour and offer.on_demand_usd_per_hour:
            assert offer.spot_usd_per_hour <= offer.on_demand_usd_per_hour, offer.instance


def test_cpu_bandwidth_is_channels_times_rate() -> None:
    """Theoretical bandwidth follows from the memory, within rounding, for sockets with DIMMs."""
    for cpu in CATALOGUE.cpus:
        if cpu.vendor in ("intel", "amd") and cpu.bandwidth_gb_s and cpu.memory_type.startswith("DDR"):
            assert 30 <= cpu.bandwidth_gb_s <= 1000, cpu.name
        assert not cpu.amx or cpu.avx512, cpu.name


@pytest.mark.parametrize("table", ["alias", "size"])
def test_vocabulary_points_at_rows_that_exist(table: str) -> None:
    """Every alias and every reference size of the vocabulary names a row of the catalogue."""
    ids = {row["hf_id"] for row in ROWS}
    missing = {key: hf_id for key, hf_id in getattr(names.vocabulary(), table).items() if hf_id not in ids}
    assert missing == {}
