"""Bytes of the weights: GGUF files as llama.cpp writes them, checkpoints, shards."""

from __future__ import annotations

import pytest

from rules.catalog.catalogue import Catalogue
from rules.formats import weight_format
from rules.memory.inference import inference_footprint
from rules.memory.inference.tensors import tensor_groups
from rules.memory.inference.weights import weight_bytes
from rules.units import GIB, MIB
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()
LLAMA_8B = CATALOGUE.find_model("meta-llama/Llama-3.1-8B", 8.03).spec
LLAMA_70B = CATALOGUE.find_model("meta-llama/Llama-3.1-70B", 70.55).spec

# GiB of files written by llama.cpp's quantiser: its own table (8B), GPU-Benchmarks-on-LLM-Inference (70B).
FILES_8B = {
    "IQ1_S": 1.87, "IQ1_M": 2.01, "IQ2_XXS": 2.23, "IQ2_XS": 2.42, "IQ2_S": 2.56, "IQ2_M": 2.74, "Q2_K_S": 2.78,
    "Q2_K": 2.95, "IQ3_XXS": 3.04, "IQ3_XS": 3.27, "Q3_K_S": 3.41, "IQ3_S": 3.42, "IQ3_M": 3.52, "Q3_K_L": 4.02,
    "IQ4_XS": 4.17, "IQ4_NL": 4.38, "Q4_K_S": 4.36, "Q4_K_M": 4.58, "Q5_K_S": 5.21, "Q5_K_M": 5.33, "Q6_K": 6.14,
    "Q8_0": 7.95, "F16": 14.96,
}  # fmt: skip
FILES_70B = {
    "IQ1_S": 14.29, "IQ1_M": 15.60, "IQ2_XXS": 17.79, "IQ2_XS": 19.69, "IQ2_S": 20.71, "IQ2_M": 22.46,
    "Q2_K_S": 22.79, "Q2_K": 24.56, "IQ3_XXS": 25.58, "IQ3_XS": 27.29, "Q3_K_S": 28.79, "IQ3_S": 28.79,
    "IQ3_M": 29.74, "Q3_K_M": 31.91, "Q3_K_L": 34.59, "IQ4_XS": 35.30, "IQ4_NL": 37.30, "Q4_K_S": 37.58,
    "Q4_K_M": 39.60, "Q5_K_S": 45.32, "Q5_K_M": 46.52, "Q6_K": 53.91, "Q8_0": 69.83, "F16": 131.43,
}  # fmt: skip


@pytest.mark.parametrize(("name", "file_gib"), FILES_8B.items())
def test_an_8b_file_has_the_size_that_the_quantiser_writes(name: str, file_gib: float) -> None:
    """Every quantisation of Llama-3.1-8B is within half a percent of the published file."""
    assert weight_bytes(LLAMA_8B, weight_format(f"gguf:{name}")).total / GIB == pytest.approx(file_gib, rel=0.005)


@pytest.mark.parametrize(("name", "file_gib"), FILES_70B.items())
def test_a_70b_file_has_the_size_that_the_quantiser_writes(name: str, file_gib: float) -> None:
    """Every quantisation of a 70B Llama is within one percent of the published file."""
    assert weight_bytes(LLAMA_70B, weight_format(f"gguf:{name}")).total / GIB == pytest.approx(file_gib, rel=0.01)


@pytest.mark.parametrize(
    ("model", "params_b", "name", "file_gib"),
    [
        ("Qwen/Qwen3-30B-A3B", 30.53, "gguf:Q5_K_M", 20.228),
        ("google/gemma-3-27b-it", 27.0, "gguf:Q4_K_M", 15.404),
        ("Qwen/Qwen3-32B", 32.76, "gguf:Q5_K_M", 21.603),
        ("deepseek-ai/DeepSeek-V3", 671.0, "gguf:Q4_K_M", 379.03),
        ("deepseek-ai/DeepSeek-V3", 671.0, "gguf:Q8_0", 664.8),
        ("moonshotai/Kimi-K2-Instruct", 1026.0, "gguf:Q8_0", 1016.6),
        ("Qwen/Qwen2.5-7B-Instruct", 7.616, "awq", 5.203),
        ("Qwen/Qwen3-8B", 8.19, "fp8", 8998 / 1024),
        ("Qwen/Qwen3-14B", 14.77, "fp8", 15.69e3 / 1024),
    ],
)
def test_files_of_other_families_have_their_published_size(
    model: str, params_b: float, name: str, file_gib: float
) -> None:
    """Experts, wide vocabularies, latent attention and 16-bit tables are all in the sum, within 1.5 %."""
    spec = CATALOGUE.find_model(model, params_b).spec
    assert weight_bytes(spec, weight_format(name)).total / GIB == pytest.approx(file_gib, rel=0.015)


def test_bits_a_weight_fall_with_model_size() -> None:
    """Tables kept at six bits weigh less in a larger model, so Q4_K_M takes fewer bits a weight at 70B than at 8B."""
    fmt = weight_format("gguf:Q4_K_M")
    small = weight_bytes(LLAMA_8B, fmt).total * 8 / LLAMA_8B.params_total
    large = weight_bytes(LLAMA_70B, fmt).total * 8 / LLAMA_70B.params_total
    assert small == pytest.approx(4.89, abs=0.02)
    assert large == pytest.approx(4.82, abs=0.02)


def test_tensor_groups_add_up_to_every_catalogued_text_model() -> None:
    """No parameter is lost or counted twice, for any text model of the catalogue."""
    for spec in CATALOGUE.models:
        if spec.domain == "llm":
            assert sum(g.params for g in tensor_groups(spec)) == pytest.approx(spec.params_total, rel=1e-9), spec.hf_id


def _footprint(  # type: ignore[no-untyped-def]
    engine: str, fmt: str, model: str = "meta-llama/Llama-3.1-8B", params_b: float = 8.03, **given: object
):
    hardware = given.pop("hardware", ())
    workload = InferenceWorkload(
        model=ModelRef(name=model),
        engine=Given(engine),
        weights_format=Given(fmt),
        hardware=hardware,  # type: ignore[arg-type]
        **{key: Given(value) for key, value in given.items()},  # type: ignore[arg-type]
    )
    return inference_footprint(workload, CATALOGUE.find_model(model, params_b).spec)


def test_llama_cpp_leaves_the_token_embedding_in_host_memory() -> None:
    """Of Llama-3-8B in Q4_K_M 281.8 MiB stay on the host and 4403.5 MiB go to the device."""
    found = _footprint("llama.cpp", "gguf:Q4_K_M", context=512)
    assert found.cpu_bytes / MIB == pytest.approx(281.8, abs=0.2)
    assert found.components["weights"] / MIB == pytest.approx(4403.5, rel=0.002)


def test_a_stated_file_size_wins_over_the_format() -> None:
    """The file's size is taken as it is, less what stays on the host."""
    found = _footprint("llama.cpp", "gguf:Q4_K_M", context=512, file_gib=6.0)
    assert (found.components["weights"] + found.cpu_bytes) / GIB == pytest.approx(6.0)


def test_experts_on_the_host_leave_attention_and_shared_experts() -> None:
    """DeepSeek-V3 in Q4_K_M with experts on the CPU puts about 9997 MiB on the card, key projections twice."""
    found = _footprint(
        "ik_llama.cpp", "gguf:Q4_K_M", "deepseek-ai/DeepSeek-V3", 671.0, experts_on_cpu=True, mla_mode=3, context=4096
    )
    assert found.components["weights"] / MIB == pytest.approx(9997, rel=0.02)


def test_gpu_layers_move_a_share_of_the_blocks() -> None:
    """Half the layers on the device hold half of the block weights and of the cache, without the output layer."""
    whole = _footprint("llama.cpp", "gguf:Q4_0", context=4096)
    half = _footprint("llama.cpp", "gguf:Q4_0", context=4096, gpu_layers=16)
    assert half.components["kv"] == pytest.approx(whole.components["kv"] / 2)
    assert half.components["weights"] < whole.components["weights"] / 2


@pytest.mark.parametrize(
    ("engine", "model", "params_b", "fmt", "tp", "gib"),
    [
        ("vllm", "meta-llama/Llama-3.1-8B-Instruct", 8.03, "bf16", 1, 14.99),
        ("vllm", "Qwen/Qwen3-32B", 32.76, "bf16", 1, 61.03),
        ("vllm", "Qwen/Qwen3-32B", 32.76, "bf16", 2, 30.59),
        ("vllm", "openai/gpt-oss-120b", 116.8, "mxfp4", 1, 64.38),
        ("vllm", "meta-llama/Llama-3.1-70B-Instruct", 70.55, "int8", 1, 67.72),
        ("vllm", "meta-llama/Llama-3.1-405B-Instruct", 405.85, "fp8", 8, 57.75),
    ],
)
def test_shards_of_paged_engines_have_the_size_in_their_logs(
    engine: str, model: str, params_b: float, fmt: str, tp: int, gib: float
) -> None:
    """Weights of one rank are within 3 % of what the engine prints after loading."""
    found = _footprint(engine, fmt, model, params_b, tp=tp, hardware=(Hardware(name="H100", count=tp),))
    assert found.components["weights"] / GIB == pytest.approx(gib, rel=0.03)


@pytest.mark.parametrize(("stated", "meant"), [("int4", "gguf:Q4_K_M"), ("fp16", "gguf:F16"), ("8bit", "gguf:Q8_0")])
def test_llama_cpp_runs_files_of_its_own_whatever_the_format_is_called(stated: str, meant: str) -> None:
    """A bit width stated for llama.cpp means the usual GGUF mix of that width."""
    found, same = (_footprint("llama.cpp", name, context=512) for name in (stated, meant))
    assert found.components["weights"] == same.components["weights"]


def test_a_model_keeps_the_format_it_is_published_in() -> None:
    """With no format stated DeepSeek-V3 is FP8 and gpt-oss has 4.25-bit experts, and the answer says so."""
    for model, params_b, largest_gib in (("deepseek-ai/DeepSeek-V3", 671.0, 630), ("openai/gpt-oss-120b", 116.8, 66)):
        workload = InferenceWorkload(model=ModelRef(name=model), engine=Given("vllm"), tp=Given(1))
        found = inference_footprint(workload, CATALOGUE.find_model(model, params_b).spec)
        assert 0.9 * largest_gib < found.components["weights"] / GIB < largest_gib
        assert "weights_format_assumed" in {note.message for note in found.notes}
