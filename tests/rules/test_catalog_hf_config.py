"""A config.json becomes a row with the right sizes and count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import CatalogError
from rules.catalog.hf_config import row_from_config, spec_from_config

CATALOGUE = Catalogue.load()

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096,
    "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("meta-llama/Llama-3.1-8B", LLAMA),
    ("Qwen/Qwen2.5-7B", {
        "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "tie_word_embeddings": False, "use_sliding_window": False,
        "sliding_window": 131072}),
    ("google/gemma-2-9b", {
        "model_type": "gemma2", "vocab_size": 256000, "hidden_size": 3584, "intermediate_size": 14336,
        "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
        "sliding_window": 4096}),
    ("openai-community/gpt2", {
        "model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "n_inner": None}),
    ("mistralai/Mixtral-8x7B-v0.1", {
        "model_type": "mixtral", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8,
        "num_experts_per_tok": 2, "tie_word_embeddings": False}),
    ("microsoft/phi-2", {
        "model_type": "phi", "vocab_size": 51200, "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 32,
        "num_attention_heads": 32, "tie_word_embeddings": False}),
    ("google-bert/bert-base-uncased", {
        "model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12, "max_position_embeddings": 512}),
    ("deepseek-ai/DeepSeek-V3", {
        "model_type": "deepseek_v3", "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
        "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "tie_word_embeddings": False}),
    ("state-spaces/mamba-130m-hf", {
        "model_type": "mamba", "vocab_size": 50280, "hidden_size": 768, "intermediate_size": 1536,
        "num_hidden_layers": 24,
        "state_size": 16, "conv_kernel": 4}),
    ("google-t5/t5-base", {
        "model_type": "t5", "vocab_size": 32128, "d_model": 768, "d_ff": 3072, "d_kv": 64, "num_layers": 12,
        "num_decoder_layers": 12, "num_heads": 12, "feed_forward_proj": "relu", "is_encoder_decoder": True}),
]  # fmt: skip


@pytest.mark.parametrize(("hf_id", "config"), CONFIGS, ids=[hf_id for hf_id, _ in CONFIGS])
def test_known_configs_give_the_catalogue_row(hf_id: str, config: dict[str, Any]) -> None:
    """Total, active parameters, cache heads and layer kinds equal those of the packaged row."""
    ours, row = spec_from_config(config, hf_id), CATALOGUE.find_model(hf_id).spec
    assert (ours.params_total, ours.params_active) == (row.params_total, row.params_active)
    assert (ours.kv_heads, ours.moe, ours.mla) == (row.kv_heads, row.moe, row.mla)
    assert dict(ours.layer_kinds) == dict(row.layer_kinds)


def test_the_weight_files_decide_on_a_silent_head() -> None:
    """Where the config does not say, the total of the files tells a tied from an untied head."""
    silent = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}
    assert spec_from_config(silent, "a/b", 8_030_261_248).tie_embeddings is False
    assert spec_from_config(silent, "a/b", 8_030_261_248 - 128256 * 4096).tie_embeddings is True


def test_an_unknown_type_is_counted_from_its_files_or_as_llama_like_and_says_so() -> None:
    """No count of an unknown block is passed off as exact."""
    other = {**LLAMA, "model_type": "brandnew"}
    assert row_from_config(other, "a/b", 9_000_000_000)["note"] == "counted_from_files"
    guess = row_from_config(other, "a/b")
    assert guess["note"] == "counted_as_llama_like"
    assert guess["params_total"] == 8_030_261_248


def test_a_vision_tower_takes_what_the_text_model_leaves() -> None:
    """With the total of the files, the tower is the rest."""
    config = {
        "model_type": "llava",
        "text_config": LLAMA,
        "vision_config": {"hidden_size": 1024, "num_hidden_layers": 24},
    }
    row = row_from_config(config, "a/b", 8_400_000_000)
    assert row["vision_params"] == 8_400_000_000 - 8_030_261_248
    assert row["modality"] == "text+image"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": None}, "config_field_missing"),
        ({"num_hidden_layers": "many"}, "config_field_invalid"),
        ({"num_attention_heads": 0}, "config_field_invalid"),
        ({"hidden_size": 4097}, "config_heads_do_not_divide"),
    ],
)
def test_a_config_that_says_too_little_is_an_error(change: dict[str, Any], message: str) -> None:
    """The error names the field."""
    with pytest.raises(CatalogError) as caught:
        row_from_config({**LLAMA, **change}, "a/b")
    assert caught.value.message_id == message


@given(
    st.dictionaries(
        st.sampled_from([*LLAMA, "num_experts", "kv_lora_rank", "sliding_window", "layer_types", "vision_config"]),
        st.one_of(
            st.none(), st.integers(-5, 10**6), st.text(max_size=5), st.booleans(), st.lists(st.integers(), max_size=3)
        ),
        max_size=8,
    )
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_config_gives_a_spec_or_a_catalogue_error(change: dict[str, Any]) -> None:
    """Nothing that a JSON file may hold ends in another error."""
    try:
        spec = spec_from_config({**LLAMA, **change}, "a/b")
    except CatalogError:
        return
    assert spec.params_total > 0
