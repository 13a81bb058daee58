"""Number formats: names people write become bits a weight, with the scales that come along."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.formats import UnknownFormat, gguf_bits, kv_format, published_format, weight_format


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("Q4_0", 4.5),
        ("Q4_1", 5),
        ("Q5_0", 5.5),
        ("Q5_1", 6),
        ("Q8_0", 8.5),
        ("Q2_K", 2.625),
        ("Q3_K", 3.4375),
        ("Q4_K", 4.5),
        ("Q5_K", 5.5),
        ("Q6_K", 6.5625),
        ("IQ4_XS", 4.25),
        ("IQ3_S", 3.4375),
        ("IQ2_XXS", 2.0625),
        ("MXFP4", 4.25),
        ("IQ4_K_R4", 4.5),
    ],
)
def test_a_ggml_block_type_has_the_bits_of_its_layout(name: str, bits: float) -> None:
    """Block types count their scales; a repacked type (`_R4`) is as large as the type it repacks."""
    assert gguf_bits(name) == bits


@pytest.mark.parametrize(
    ("name", "linear", "head"),
    [
        ("awq", 4.15625, 16),
        ("gptq-4bit", 4.15625, 16),
        ("gptq-4bit-g128-act", 4.15625, 16),
        ("gptq-4bit-g32-act", 4.625, 16),
        ("gptq-8bit", 8.1875, 16),
        ("nf4", 4.5, 16),
        ("nf4-dq", 4.127, 16),
        ("bnb-4bit", 4.5, 16),
        ("nvfp4", 4.5, 16),
        ("exl2:4.65", 4.65, 6),
        ("exl2:2.4", 2.4, 6),
        ("mlx-4bit", 4.5, 4.5),
        ("uint4-g64-hqq", 4.5, 16),
        ("q4f16_1", 4.5, 4.5),
        ("bf16", 16, 16),
        ("fp32", 32, 32),
    ],
)
def test_a_checkpoint_format_counts_scales_and_leaves_tables_alone(name: str, linear: float, head: float) -> None:
    """Scales and zeros are in the bits of the linear layers; embedding and head keep 16 bits unless the format says."""
    fmt = weight_format(name)
    assert fmt.linear_bits == pytest.approx(linear)
    assert fmt.head_bits == head


def test_double_quantisation_saves_about_a_third_of_a_bit() -> None:
    """NF4 with its absmax quantised again takes 0.37 bit a weight less."""
    assert weight_format("nf4").linear_bits - weight_format("nf4-dq").linear_bits == pytest.approx(0.373, abs=0.001)


def test_native_mxfp4_touches_experts_only() -> None:
    """An MXFP4 checkpoint has 4.25 bits on routed experts and 16 on the rest."""
    fmt = weight_format("mxfp4")
    assert (fmt.experts_bits, fmt.linear_bits) == (4.25, 16)


def test_a_row_that_256_does_not_divide_falls_back_to_a_narrow_block() -> None:
    """Rows of 1408 cannot hold 256-wide blocks, so Q4_K becomes Q5_0 and Q6_K becomes Q8_0."""
    assert gguf_bits("Q4_K", 1408) == gguf_bits("Q5_0")
    assert gguf_bits("Q6_K", 1408) == gguf_bits("Q8_0")
    assert gguf_bits("Q4_K", 4096) == 4.5


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("fp16", 16, 16),
        ("bf16", 16, 16),
        ("fp8_e4m3", 8, 8),
        ("q8_0", 8.5, 8.5),
        ("q4_0", 4.5, 4.5),
        ("q5_1", 6, 6),
        ("K iq4_nl, V fp16", 4.5, 16),
        ("q8_0/q4_0", 8.5, 4.5),
    ],
)
def test_a_cache_format_has_bits_for_keys_and_values(name: str, key: float, value: float) -> None:
    """One name serves both halves of the cache, a pair names each."""
    fmt = kv_format(name)
    assert (fmt.key_bits, fmt.value_bits) == (key, value)


@pytest.mark.parametrize("name", ["", "purple", "gguf:Q17_Z", "int99", "K nothing, V fp16"])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A name that no rule reads raises `UnknownFormat` and nothing else."""
    with pytest.raises(UnknownFormat):
        (kv_format if name.startswith("K") else weight_format)(name)


def test_a_published_checkpoint_may_differ_from_its_name() -> None:
    """The FP8 checkpoint of the 126-layer Llama keeps attention in 16 bits; other models' names mean what they say."""
    assert weight_format(published_format("fp8", "llama", 126)).attention_bits == 16
    assert published_format("fp8", "llama", 80) == "fp8"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=24))
def test_no_text_breaks_the_readers(text: str) -> None:
    """Any text is a format with positive bits or an `UnknownFormat`."""
    for read in (weight_format, kv_format):
        try:
            found = read(text)
        except UnknownFormat:
            continue
        bits = found.linear_bits if read is weight_format else found.key_bits  # type: ignore[union-attr]
        assert 0 < bits <= 64
