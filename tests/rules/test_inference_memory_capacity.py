"""Capacity and usable memory: the longest context, the most sequences, what a program sees of a card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.catalog.accelerators import Accelerator
from rules.catalog.catalogue import Catalogue
from rules.memory.inference import inference_footprint
from rules.memory.inference.capacity import max_context, max_sequences
from rules.memory.usable import context_bytes, usable_bytes, visible_bytes
from rules.units import GIB
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()
LLAMA = CATALOGUE.find_model("meta-llama/Llama-3.1-8B", 8.03).spec


def _card(name: str) -> Accelerator:
    return CATALOGUE.find_accelerator(name)


def _workload(engine: str, fmt: str, context: int = 8192) -> InferenceWorkload:
    return InferenceWorkload(
        model=ModelRef(name="Llama-3.1-8B"), engine=Given(engine), weights_format=Given(fmt), context=Given(context)
    )


@pytest.mark.parametrize(
    ("engine", "fmt", "card"),
    [
        ("vllm", "bf16", "RTX 4090"),
        ("transformers", "nf4", "RTX 3060 12GB"),
        ("llama.cpp", "gguf:Q8_0", "RTX 3060 12GB"),
    ],
)
def test_the_longest_context_fits_and_one_more_does_not(engine: str, fmt: str, card: str) -> None:
    """The answer is the boundary: at it the need is within the card, past it not."""
    device, workload = _card(card), _workload(engine, fmt)
    longest = max_context(workload, LLAMA, device)
    assert 1000 < longest < (LLAMA.max_position or 0)

    def spare(context: int) -> float:
        asked = replace(workload, context=Given(context), hardware=(Hardware(name=card),))
        found = inference_footprint(asked, LLAMA, device)
        if "kv_needed" in found.components:
            return found.components["kv"] - found.components["kv_needed"]
        live = found.allocated.expected + found.device.expected - found.reserved.expected
        return usable_bytes(device, name=card) - live

    assert spare(longest) >= 0
    assert spare(longest + 512) < 0


def test_nothing_fits_a_card_smaller_than_the_weights() -> None:
    """Sixteen-bit weights of 15 GiB leave no context on an 8 GB card."""
    assert max_context(_workload("vllm", "bf16"), LLAMA, _card("RTX 4060")) == 0
    assert max_sequences(_workload("vllm", "bf16"), LLAMA, _card("RTX 4060")) == 0


def test_the_context_is_bounded_by_the_model() -> None:
    """A large card does not give more tokens than the model has positions."""
    assert max_context(_workload("vllm", "fp8"), LLAMA, _card("H200")) == LLAMA.max_position


def test_more_cards_hold_more_sequences() -> None:
    """Two cards share the weights once, so they hold more than twice the sequences of one."""
    workload = _workload("vllm", "bf16")
    one, two = (max_sequences(workload, LLAMA, _card("RTX 4090"), n) for n in (1, 2))
    assert one >= 1
    assert two > 2 * one


def test_a_display_costs_context_on_a_consumer_card_only() -> None:
    """The reserve for a desktop session shortens the context on a consumer card and not on a data-centre card."""
    workload = _workload("llama.cpp", "gguf:Q8_0")
    desk, server = _card("RTX 3060 12GB"), _card("A10")
    assert max_context(workload, LLAMA, desk, desktop_reserve_gib=1.0) < max_context(workload, LLAMA, desk)
    assert usable_bytes(server, desktop_reserve_gib=1.0) == usable_bytes(server)


@pytest.mark.parametrize(
    ("name", "memory_gib", "seen"),
    [
        ("RTX 4090", 24, 23.55),
        ("RTX 3090", 24, 23.58),
        ("A100-80GB-SXM", 80, 79.17),
        ("H100-80GB-SXM", 80, 79.2),
        ("L40S", 48, 44.42),
        ("T4", 16, 14.56),
        ("RTX 4060", 8, 8.0),
    ],
)
def test_a_program_sees_less_than_the_box_says(name: str, memory_gib: float, seen: float) -> None:
    """Totals reported by CUDA programs, for the marketed size or none stated."""
    device = CATALOGUE.find_accelerator(name, memory_gib)
    assert visible_bytes(device, memory_gib, name) / GIB == pytest.approx(seen, abs=0.06)
    assert visible_bytes(device) == visible_bytes(device, memory_gib, name)


def test_an_odd_figure_is_taken_as_seen() -> None:
    """A stated 79.18 GiB is what a program reported, not a marketed size."""
    assert visible_bytes(_card("H100 SXM"), 79.18) == 79.18 * GIB


@pytest.mark.parametrize(
    ("name", "memory_gib", "share"),
    [
        ("Apple M4 Pro 64GB", 48, 48 / 64),
        ("Apple M2 Max 64GB", 64, 0.75),
        ("Apple M4 Pro 24GB", 24, 2 / 3),
    ],
)
def test_a_mac_lends_a_share_of_its_memory(name: str, memory_gib: float, share: float) -> None:
    """Three quarters from 36 GB on, two thirds below; a stated share is not cut again."""
    device = CATALOGUE.find_accelerator(name, memory_gib)
    machine = float(name.split()[-1].removesuffix("GB"))
    assert visible_bytes(device, memory_gib, name) / GIB == pytest.approx(machine * share, rel=0.001)


def test_a_torch_process_holds_more_than_a_small_program() -> None:
    """Context, libraries and communicators: torch holds more than a native program, several devices more than one."""
    card = _card("H100 SXM")
    native, torch = context_bytes(card, torch=False), context_bytes(card, torch=True)
    assert 0 < native < torch < context_bytes(card, torch=True, devices=2)
