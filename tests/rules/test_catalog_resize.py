"""Cut and scaled architectures keep their sums."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.catalog.resize import layers_for, scaled_to, with_layers, with_other_head

CATALOGUE = Catalogue.load()
DECODERS = [m for m in CATALOGUE.models if m.arch_type == "decoder" and m.modality == "text"]


@given(st.sampled_from(DECODERS), st.integers(1, 200))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_more_layers_are_more_parameters(model: ModelSpec, layers: int) -> None:
    """Parameters grow with depth, active ones never exceed them, and layer kinds add up."""
    some, more = with_layers(model, layers), with_layers(model, layers + 1)
    assert some.params_total < more.params_total
    assert some.params_active <= some.params_total
    if some.layer_kinds:
        assert sum(some.layer_kinds.values()) == layers
    if some.layer_pattern:
        assert len(some.layer_pattern) == layers


@given(st.sampled_from(DECODERS))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_its_own_depth_is_the_model_itself(model: ModelSpec) -> None:
    """Rebuilding a model with its own number of layers gives its own parameters."""
    assert model.layers is not None
    assert with_layers(model, model.layers).params_total == pytest.approx(model.params_total, rel=1e-3)
    assert layers_for(model, model.params_total)[0] == model.layers


@given(st.sampled_from(DECODERS), st.floats(0.05, 20))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_scaled_neighbour_has_the_asked_size_and_whole_heads(model: ModelSpec, factor: float) -> None:
    """The total is what was asked; key-value heads still divide the heads."""
    spec = scaled_to(model, model.params_total * factor)
    assert spec.params_total == pytest.approx(model.params_total * factor, rel=1e-6)
    assert spec.params_active <= spec.params_total
    if spec.heads and spec.kv_heads:
        assert spec.heads % spec.kv_heads == 0


def test_the_other_head_adds_or_takes_one_table() -> None:
    """Untying the head of GPT-2 adds its embedding table; tying that of Llama takes one away."""
    gpt2, llama = CATALOGUE.find_model("gpt2").spec, CATALOGUE.find_model("llama 3 8b").spec
    untied, tied = with_other_head(gpt2), with_other_head(llama)
    assert untied is not None
    assert tied is not None
    assert untied.params_total == 124_439_808 + 50_257 * 768
    assert tied.params_total == llama.params_total - 128_256 * 4096


def test_no_layers_is_an_error() -> None:
    """A model needs a layer."""
    with pytest.raises(ValueError, match="layers=0"):
        with_layers(DECODERS[0], 0)
