"""The laws of a language model's speed: what they say of machines, lengths and load, and of published runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.memory.errors import UnsupportedWorkload
from rules.speed.law import speed
from rules.speed.llm.law import sequences_held
from rules.speed.llm.request import Request, resolve
from rules.speed.llm.serving import most_within, queueing_factor, under_load
from rules.speed.machine import machine_of
from rules.speed.types import InferenceSpeed
from rules.workload import Given, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()
LLAMA = CATALOGUE.find_model("meta-llama/Meta-Llama-3-8B").spec
BIG = CATALOGUE.find_model("meta-llama/Meta-Llama-3-70B").spec
MIXTRAL = CATALOGUE.find_model("mistralai/Mixtral-8x7B-v0.1").spec
CARDS = ("RTX 3090", "RTX 4090", "A100 80GB SXM4", "H100 80GB SXM5", "L40S", "RTX 5090", "Apple M2 Ultra")
FORMATS = ("bf16", "fp8", "awq", "gguf:Q4_K_M", "gguf:Q8_0")


def _workload(**fields: Any) -> InferenceWorkload:
    return InferenceWorkload(model=ModelRef(name=LLAMA.hf_id), **{k: Given(v) for k, v in fields.items()})


def _request(card: str = "RTX 4090", model: Any = LLAMA, count: int = 1, **fields: Any) -> Request:
    return resolve(_workload(**fields), model, CATALOGUE.find_accelerator(card), count)


def _speed(card: str, model: Any = LLAMA, count: int = 1, **fields: Any) -> InferenceSpeed:
    found = speed(_workload(**fields), model, CATALOGUE.find_accelerator(card), count)
    assert isinstance(found, InferenceSpeed)
    return found


@pytest.mark.parametrize(
    ("card", "fields", "published_tok_s"),
    [
        ("RTX 3090", {"engine": "llama.cpp", "weights_format": "gguf:Q4_K_M", "software_month": "2024-05"}, 111.7),
        ("A100 80GB SXM4", {"engine": "gpt-fast", "weights_format": "int8"}, 137.5),
        ("RTX 4090", {"engine": "tinychat", "weights_format": "awq"}, 156.4),
    ],
)
def test_single_stream_rates_agree_with_published_runs(card: str, fields: Any, published_tok_s: float) -> None:
    """An 8B model decodes within a fifth of what was published for it."""
    rate = _speed(card, input_len=128, output_len=128, **fields).decode_tok_s
    assert rate is not None
    assert rate.expected == pytest.approx(published_tok_s, rel=0.2)
    assert rate.low < rate.expected < rate.high


@given(
    card=st.sampled_from(CARDS),
    weights=st.sampled_from(FORMATS),
    engine=st.sampled_from(("vllm", "llama.cpp", "transformers", "exllamav2")),
    prompt=st.integers(1, 100_000),
    more=st.integers(1, 100_000),
)
@settings(max_examples=60, deadline=None)
def test_a_longer_context_is_never_faster(card: str, weights: str, engine: str, prompt: int, more: int) -> None:
    """Neither a token's time nor the time to the first token falls with the length."""
    short = _speed(card, engine=engine, weights_format=weights, input_len=prompt)
    long = _speed(card, engine=engine, weights_format=weights, input_len=prompt + more)
    assert short.tpot_s is not None
    assert long.tpot_s is not None
    assert short.ttft_s is not None
    assert long.ttft_s is not None
    assert long.tpot_s.expected >= short.tpot_s.expected
    assert long.ttft_s.expected >= short.ttft_s.expected


@given(
    model=st.sampled_from((LLAMA, BIG, MIXTRAL)),
    weights=st.sampled_from(FORMATS),
    few=st.integers(1, 200),
    more=st.integers(1, 200),
)
@settings(max_examples=60, deadline=None)
def test_throughput_rises_with_the_sequences_in_flight_and_each_stream_slows(
    model: Any, weights: str, few: int, more: int
) -> None:
    """More sequences never give fewer tokens in all, and never more to each."""
    request = _request("H100 80GB SXM5", model, 4, engine="vllm", weights_format=weights, input_len=512, output_len=256)
    less, load = under_load(request, few * 4), under_load(request, (few + more) * 4)
    assert load.total_tok_s >= less.total_tok_s * 0.999
    assert load.tpot_s >= less.tpot_s * 0.999


def test_what_the_cache_cannot_hold_waits() -> None:
    """Beyond the sequences that fit, throughput stays and the time to the first token grows."""
    request = _request(engine="vllm", weights_format="awq", input_len=1024, output_len=256)
    full, over = under_load(request, 40, holds=40), under_load(request, 400, holds=40)
    assert over.total_tok_s == pytest.approx(full.total_tok_s)
    assert over.ttft_s > 5 * full.ttft_s


@given(bandwidth=st.floats(1.01, 4.0), compute=st.floats(1.01, 4.0))
@settings(max_examples=40, deadline=None)
def test_a_better_machine_is_never_slower(bandwidth: float, compute: float) -> None:
    """More bandwidth or arithmetic never lowers a rate."""
    request = _request(engine="vllm", weights_format="bf16")
    machine = request.machine
    peaks = {bits: rate * compute for bits, rate in machine.peaks.items()}
    better = replace(machine, bandwidth=machine.bandwidth * bandwidth, fp32=machine.fp32 * compute, peaks=peaks)
    assert under_load(replace(request, machine=better), 8).total_tok_s > under_load(request, 8).total_tok_s


def test_tensor_parallel_gains_less_than_its_degree_and_layer_split_nothing() -> None:
    """Four cards behind NVLink speed one stream up, less than fourfold; llama.cpp's layer split does not (T3)."""
    one = _speed("A100 80GB SXM4", BIG, 1, engine="vllm", weights_format="awq").decode_tok_s
    four = _speed("A100 80GB SXM4", BIG, 4, engine="vllm", weights_format="awq", tp=4).decode_tok_s
    split = _speed("RTX 4090", BIG, 2, engine="llama.cpp", weights_format="gguf:Q4_K_M").decode_tok_s
    alone = _speed("RTX 4090", BIG, 1, engine="llama.cpp", weights_format="gguf:Q4_K_M").decode_tok_s
    assert one is not None
    assert four is not None
    assert split is not None
    assert alone is not None
    assert 1.5 < four.expected / one.expected < 4
    assert split.expected == pytest.approx(alone.expected)


def test_cards_without_nvlink_pay_more_for_their_links() -> None:
    """The same split costs more over PCIe than over NVLink."""
    request = _request("A100 80GB SXM4", BIG, 4, engine="vllm", weights_format="bf16", tp=4)
    slow = replace(request.machine, link=25e9, nvlink=False)
    assert under_load(replace(request, machine=slow), 32).tpot_s > under_load(request, 32).tpot_s


def test_a_batch_touches_more_experts_and_reads_more() -> None:
    """A mixture of experts reads two of eight experts for one token and nearly all for thirty-two."""
    work = _request(model=MIXTRAL, engine="vllm", weights_format="bf16").work
    assert work.experts_touched(1) == pytest.approx(0.25)
    assert work.experts_touched(32) > 0.99
    assert work.active_params == pytest.approx(12.7e9, rel=0.03)


def test_layers_left_to_the_host_slow_a_token_down_and_need_its_cpu_named() -> None:
    """Half the layers in host memory cost far more than half the speed; without a CPU there is no figure."""
    cpu = CATALOGUE.find_cpu("Ryzen 9 7950X")
    card = CATALOGUE.find_accelerator("RTX 4090")
    half = _workload(engine="llama.cpp", weights_format="gguf:Q4_K_M", gpu_layers=40)
    whole = replace(half, gpu_layers=None)
    slow, fast = speed(half, BIG, card, 1, (cpu, 1)), speed(whole, BIG, card, 1)
    assert isinstance(slow, InferenceSpeed)
    assert isinstance(fast, InferenceSpeed)
    assert slow.decode_tok_s is not None
    assert fast.decode_tok_s is not None
    assert slow.decode_tok_s.expected < 0.3 * fast.decode_tok_s.expected
    with pytest.raises(UnsupportedWorkload):
        speed(half, BIG, card, 1)


def test_the_most_sequences_within_a_target_is_the_edge() -> None:
    """At the found concurrency the target holds, with one more sequence it does not; an impossible one gives none."""
    request = _request("H100 80GB SXM5", engine="vllm", weights_format="fp8", input_len=1000, output_len=200)
    found = most_within(request, holds=500, tpot_s=0.02)
    assert under_load(request, found).tpot_s <= 0.02
    assert under_load(request, found + 1).tpot_s > 0.02
    assert most_within(request, holds=500, tpot_s=1e-6) == 0
    assert most_within(request, holds=7) == 7


def test_what_binds_is_said() -> None:
    """One stream on a large model is bound by bandwidth, its prefill by compute (T4)."""
    binds = {r.step: r.binds for r in _speed("A100 80GB SXM4", BIG, 2, engine="vllm", input_len=4096).roofline}
    assert binds == {"decode": "bandwidth", "prefill": "compute"}


def test_rates_that_the_catalogue_lacks_are_refused_by_name() -> None:
    """No bandwidth, no figure: the error names the device."""
    card = replace(CATALOGUE.find_accelerator("RTX 4090"), bandwidth_gb_s=0.0, name="unknown card")
    with pytest.raises(UnsupportedWorkload) as refused:
        machine_of(card)
    assert refused.value.params["device"] == "unknown card"


def test_every_recommended_card_has_a_speed() -> None:
    """No NVIDIA, AMD or Apple device of the catalogue raises for a small model, and every rate is positive."""
    for device in CATALOGUE.accelerators:
        if device.vendor not in ("nvidia", "amd", "apple"):
            continue
        request = resolve(_workload(engine="vllm", weights_format="bf16"), LLAMA, device, 1)
        assert sequences_held(request, device, _workload()) >= 1
        assert under_load(request, 1).total_tok_s > 0


def test_waiting_grows_without_bound_near_saturation() -> None:
    """Half use waits one service time on average, full use for ever."""
    assert queueing_factor(0.5) == pytest.approx(1.0)
    assert queueing_factor(1.0) == float("inf")
