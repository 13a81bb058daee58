"""The cache of keys and values: bytes a token and what engines make of them."""

from __future__ import annotations

import pytest

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.formats import kv_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.inference import inference_footprint
from rules.memory.inference.kv import cache_shape, kv_bytes_per_token
from rules.units import KIB, MIB
from rules.workload import Given, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()


def _model(name: str, params_b: float | None = None) -> ModelSpec:
    return CATALOGUE.find_model(name, params_b).spec


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("meta-llama/Llama-2-7b-hf", 512),
        ("meta-llama/Meta-Llama-3-8B", 128),
        ("meta-llama/Meta-Llama-3-70B", 320),
        ("Qwen/Qwen3-8B", 144),
        ("Qwen/Qwen3-32B", 256),
        ("Qwen/Qwen3-30B-A3B", 96),
        ("Qwen/Qwen3-235B-A22B", 188),
        ("Qwen/Qwen2.5-7B", 56),
        ("Qwen/Qwen2.5-1.5B", 28),
    ],
)
def test_bytes_a_token_follow_kv_heads(name: str, kib: float) -> None:
    """Two vectors of kv_heads x head_dim a layer in 16 bits give the figures that engines log."""
    assert kv_bytes_per_token(_model(name)) / KIB == kib


def test_latent_attention_caches_one_vector_a_layer() -> None:
    """DeepSeek's latent and rotary part take 70,272 bytes a token."""
    assert kv_bytes_per_token(_model("deepseek-ai/DeepSeek-V3")) == 70272


def test_hybrid_models_grow_in_their_attention_layers_only() -> None:
    """Qwen3.6-27B caches 32,768 values a token and keeps about 147 MiB of state a sequence."""
    shape = cache_shape(_model("Qwen/Qwen3.6-27B"), kv_format("fp8"))
    assert shape.per_token == 32768
    assert shape.state / MIB == pytest.approx(147, abs=1)


def test_global_heads_of_their_own_count() -> None:
    """Gemma 4's ten global layers have 4 heads of 512, its local layers 16 of 256."""
    shape = cache_shape(_model("google/gemma-4-31B-it"), kv_format("fp16"))
    assert shape.full == 10 * 4 * 512 * 2 * 2
    assert shape.windowed == 50 * 16 * 256 * 2 * 2


@pytest.mark.parametrize(("tp", "share"), [(2, 2), (4, 4), (8, 8), (16, 8)])
def test_tensor_parallelism_divides_the_cache_by_its_heads_at_most(tp: int, share: int) -> None:
    """Eight KV heads over sixteen ranks are copied, not halved."""
    model = _model("meta-llama/Llama-3.1-70B")
    assert kv_bytes_per_token(model, "fp16", "vllm", tp) == kv_bytes_per_token(model) / share


def test_the_latent_is_whole_on_every_rank() -> None:
    """Tensor parallelism does not divide a latent cache."""
    model = _model("deepseek-ai/DeepSeek-V3")
    assert kv_bytes_per_token(model, "fp16", "vllm", 8) == kv_bytes_per_token(model)


def test_an_unknown_cache_format_is_unsupported() -> None:
    """The capacity helper names the format that it cannot read."""
    with pytest.raises(UnsupportedWorkload, match="unknown_kv_format"):
        kv_bytes_per_token(_model("Qwen/Qwen3-8B"), "purple")


def _kv_mib(engine: str, model: str, params_b: float | None = None, **given: object) -> float:
    workload = InferenceWorkload(
        model=ModelRef(name=model),
        engine=Given(engine),
        weights_format=Given("gguf:Q4_0"),
        **{key: Given(value) for key, value in given.items()},  # type: ignore[arg-type]
    )
    return inference_footprint(workload, _model(model, params_b)).components["kv"] / MIB


@pytest.mark.parametrize(
    ("engine", "model", "given", "mib"),
    [
        ("ik_llama.cpp", "Qwen/Qwen3-235B-A22B", {"context": 32768}, 6016),
        ("ik_llama.cpp", "Qwen/Qwen3-235B-A22B", {"context": 32768, "kv_dtype": "q8_0"}, 3196),
        ("ik_llama.cpp", "deepseek-ai/DeepSeek-V3", {"context": 32768, "mla_mode": 3, "flash_attention": True}, 2196),
        (
            "ik_llama.cpp",
            "deepseek-ai/DeepSeek-V3",
            {"context": 32768, "mla_mode": 3, "flash_attention": True, "kv_dtype": "q8_0"},
            1166.6,
        ),
        ("ik_llama.cpp", "deepseek-ai/DeepSeek-V3", {"context": 16384, "mla_mode": 1, "flash_attention": False}, 2074),
        ("ik_llama.cpp", "deepseek-ai/DeepSeek-V3", {"context": 512}, 2440),
        ("ik_llama.cpp", "moonshotai/Kimi-K2-Instruct", {"context": 512}, 1220),
        ("ik_llama.cpp", "google/gemma-3-27b-it", {"context": 32768}, 15872),
        ("llama.cpp", "openai/gpt-oss-120b", {"context": 131072, "n_ubatch": 1024, "concurrency": 2}, 9216 + 90),
        ("llama.cpp", "meta-llama/Meta-Llama-3-8B", {"context": 8192}, 1024),
        (
            "ik_llama.cpp",
            "meta-llama/Llama-3.1-8B-Instruct",
            {"context": 1024, "kv_dtype": "K iq4_nl, V fp16", "flash_attention": False},
            82,
        ),
    ],
)
def test_llama_cpp_caches_match_their_logs(engine: str, model: str, given: dict[str, object], mib: float) -> None:
    """Full length or window, expanded or latent, mixed key and value types: MiB as the load logs print them."""
    assert _kv_mib(engine, model, **given) == pytest.approx(mib, rel=0.0005)


def test_engines_without_window_support_hold_the_full_length() -> None:
    """The same sliding-window model takes several times the cache where the engine ignores windows."""
    full = _kv_mib("ik_llama.cpp", "google/gemma-3-27b-it", context=32768)
    limited = _kv_mib("llama.cpp", "google/gemma-3-27b-it", context=32768)
    assert limited < full / 3


@pytest.mark.parametrize(("version", "limited"), [("4.51.3", False), ("4.57.6", True), (None, True)])
def test_transformers_cuts_sliding_layers_since_4_56(version: str | None, limited: bool) -> None:
    """Newer versions hold a window for sliding layers, older ones the whole length."""
    given = {"context": 32768} if version is None else {"context": 32768, "engine_version": version}
    held = _kv_mib("transformers", "google/gemma-3-27b-it", **given)
    assert (held < 15872 / 3) is limited


def test_transformers_expands_a_latent_cache() -> None:
    """Keys and values of all heads are cached where the runtime does not work on the latent."""
    assert _kv_mib("transformers", "deepseek-ai/DeepSeek-V3", context=512) == pytest.approx(2440)
