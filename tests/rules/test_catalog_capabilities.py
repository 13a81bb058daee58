"""What devices can do: number formats, attention kernels, toolkits, office limits."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest

from rules.catalog.capabilities import Wants, assess, assess_cpu, capability_of
from rules.catalog.catalogue import Catalogue
from rules.catalog.names import DATA

CATALOGUE = Catalogue.load()


def _table() -> dict[str, Any]:
    return tomllib.loads((DATA / "capabilities.toml").read_text(encoding="utf-8"))


def _verdicts(device: str, wants: Wants) -> dict[str, str]:
    return {f.message: f.verdict for f in assess(CATALOGUE.find_accelerator(device), wants)}


@pytest.mark.parametrize("device", ["v100", "t4", "p100", "2080 ti", "titan rtx", "mi50", "6900 xt"])
def test_cards_without_bf16_are_rewritten(device: str) -> None:
    """Training in bf16 becomes fp16 with loss scaling where the card has no bf16."""
    assert _verdicts(device, Wants(compute_dtype="bf16", training=True))["capability_bf16_training"] == "rewrite"


@pytest.mark.parametrize("device", ["3090", "a100", "4090", "h100", "b200", "mi300x", "7900 xtx", "tpu v5e", "gaudi 2"])
def test_cards_with_bf16_have_no_finding_about_it(device: str) -> None:
    """Ampere and newer, current AMD, TPU and Gaudi compute bf16."""
    assert not {m for m in _verdicts(device, Wants(compute_dtype="bf16", training=True)) if "bf16" in m}


@pytest.mark.parametrize(
    ("device", "support"),
    [("4090", "native"), ("l4", "native"), ("h100", "native"), ("5090", "native"), ("mi300x", "native"),
     ("a100", "weights"), ("3090", "weights"), ("t4", "no"), ("v100", "no")],
)  # fmt: skip
def test_fp8_needs_ada_hopper_or_later(device: str, support: str) -> None:
    """Ada, Hopper, Blackwell and MI300 compute fp8; Ampere stores it only; older cards do neither."""
    found = _verdicts(device, Wants(weights_format="fp8"))
    assert capability_of(CATALOGUE.find_accelerator(device)).fp8 == support
    assert found.get("capability_format_weights_only") == ("rewrite" if support == "weights" else None)
    assert found.get("capability_format_too_old") == ("exclude" if support == "no" else None)


def test_fp4_is_native_on_blackwell_only() -> None:
    """NVFP4 runs on Blackwell, is stored on Ada, and has no kernels on AMD."""
    wants = Wants(weights_format="nvfp4")
    assert not {m for m in _verdicts("5090", wants) if "format" in m}
    assert _verdicts("4090", wants)["capability_format_weights_only"] == "rewrite"
    assert _verdicts("mi300x", wants)["capability_format_no_kernel"] == "exclude"


@pytest.mark.parametrize(("device", "generation"), [("v100", 0), ("p40", 0), ("t4", 1), ("a100", 2), ("h100", 3)])
def test_flash_attention_generation(device: str, generation: int) -> None:
    """None before Turing, the first on Turing, the second from Ampere, the third on Hopper."""
    assert capability_of(CATALOGUE.find_accelerator(device)).flash == generation
    found = _verdicts(device, Wants(flash_attention=True))
    assert any(m.startswith(("capability_no_flash", "capability_flash_1")) for m in found) == (generation < 2)


def test_old_and_new_chips_name_their_toolkit() -> None:
    """A dropped chip is excluded, an ageing one warned about, a new one says which CUDA it needs."""
    assert _verdicts("k80", Wants())["capability_dropped"] == "exclude"
    assert "capability_dropped" not in _verdicts("k80", Wants(weights_format="gguf:Q4_K_M"))
    assert _verdicts("v100", Wants())["capability_old_toolkit"] == "warn"
    assert _verdicts("5090", Wants())["capability_new_toolkit"] == "warn"


@pytest.mark.parametrize(
    ("device", "weights"),
    [("m4 pro", "awq"), ("m4 pro", "nf4"), ("tpu v5e", "gguf:Q4_0"), ("4090", "mlx-4bit"), ("v100", "awq")],
)
def test_formats_without_kernels_are_excluded(device: str, weights: str) -> None:
    """CUDA formats on a Mac, GGUF on a TPU, MLX on NVIDIA and AWQ before Turing cannot run."""
    assert "exclude" in _verdicts(device, Wants(weights_format=weights)).values()


@pytest.mark.parametrize("device", ["4090", "m4 pro", "7900 xtx", "a770", "p40"])
def test_gguf_runs_nearly_everywhere(device: str) -> None:
    """llama.cpp has a backend for each of these."""
    assert "exclude" not in _verdicts(device, Wants(weights_format="gguf:Q4_K_M")).values()


def test_an_office_takes_no_passive_cards_and_no_more_than_its_circuit() -> None:
    """A100s need a rack; four 4090s exceed one circuit of 1440 W and one does not; a TPU can only be rented."""
    office = {"office": True, "circuit_watts": 1440.0, "host_watts": 250.0}
    assert _verdicts("a100", Wants(**office))["capability_needs_rack"] == "exclude"
    assert _verdicts("4090", Wants(count=4, **office))["capability_circuit_power"] == "exclude"
    assert "exclude" not in _verdicts("4090", Wants(count=1, **office)).values()
    assert _verdicts("tpu v5e", Wants(**office))["capability_cloud_only"] == "exclude"


def test_fast_links_are_missed_only_where_there_are_several_cards_without_them() -> None:
    """NVLink is asked for from two cards on, and the 3090 has it where the 4090 does not."""
    wants = Wants(fast_links=True, count=2)
    assert _verdicts("4090", wants)["capability_no_nvlink"] == "warn"
    assert "capability_no_nvlink" not in _verdicts("3090", wants)
    assert "capability_no_nvlink" not in _verdicts("4090", Wants(fast_links=True))


def test_training_off_cuda_is_warned_about() -> None:
    """A Mac trains through Metal, with other code."""
    assert _verdicts("m2 ultra", Wants(training=True))["capability_training_stack"] == "warn"


def test_cpu_features() -> None:
    """AVX-512 and bf16 are checked before CPU inference is offered."""
    wants = Wants(compute_dtype="bf16")
    assert [f.message for f in assess_cpu(CATALOGUE.find_cpu("12700k"), wants)] == ["cpu_no_avx512", "cpu_no_bf16"]
    assert assess_cpu(CATALOGUE.find_cpu("8480+"), wants) == ()


def test_every_catalogue_device_has_a_capability_row() -> None:
    """No device of the catalogue falls back to a guess about its architecture."""
    named = {name for row in _table()["architecture"] for name in [row["name"]]}
    assert {d.name for d in CATALOGUE.accelerators if capability_of(d).name not in named} == set()
    direct = {(row["vendor"], c) for row in _table()["architecture"] for c in row.get("compute", [""])}
    nvidia = {d.name for d in CATALOGUE.accelerators if d.vendor == "nvidia"
              and (d.vendor, d.compute_capability) not in direct}  # fmt: skip
    assert nvidia == set()


def test_newer_nvidia_chips_take_the_newest_known_row() -> None:
    """A chip newer than the table is assessed as the newest one below it, not as an old one."""
    device = CATALOGUE.find_accelerator("5090")
    assert capability_of(replace(device, compute_capability="13.0")).fp4 == "native"


def test_features_are_native_weights_or_no() -> None:
    """The table knows three degrees of support."""
    words = {row[f] for row in _table()["architecture"] for f in ("fp16", "bf16", "fp8", "fp4", "int8")}
    assert words == {"native", "weights", "no"}
