"""Engines: compute buffers, pools, peaks and versions, against what their logs print."""

from __future__ import annotations

import pytest

from rules.catalog.catalogue import Catalogue
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.inference import inference_footprint, inference_total_bytes
from rules.memory.inference.engines import engine, engine_names, version_tuple
from rules.units import GIB, MIB
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()


def _run(engine_name: str, model: str, gpu: str | None = None, count: int = 1, **given: object) -> Footprint:
    memory = given.pop("memory_gib", None)
    hardware = (Hardware(name=gpu, count=count, memory_gib=memory),) if gpu else ()  # type: ignore[arg-type]
    workload = InferenceWorkload(
        model=ModelRef(name=model),
        engine=Given(engine_name),
        hardware=hardware,
        **{key: Given(value) for key, value in given.items()},  # type: ignore[arg-type]
    )
    device = CATALOGUE.find_accelerator(gpu, memory) if gpu and not gpu.startswith("cpu") else None  # type: ignore[arg-type]
    return inference_footprint(workload, CATALOGUE.find_model(model).spec, device)


@pytest.mark.parametrize(
    ("engine_name", "model", "given", "mib"),
    [
        ("llama.cpp", "meta-llama/Meta-Llama-3-8B", {"context": 512, "flash_attention": False}, 258.5),
        ("ik_llama.cpp", "Qwen/Qwen3-8B", {"context": 4096, "flash_attention": True}, 304.75),
        ("ik_llama.cpp", "google/gemma-3-27b-it", {"context": 32768, "flash_attention": True}, 522.6),
        ("llama.cpp", "meta-llama/Meta-Llama-3-8B", {"context": 8192, "flash_attention": False}, 560),
        ("ik_llama.cpp", "Qwen/Qwen3-32B", {"context": 40960, "flash_attention": False}, 5252),
        ("ik_llama.cpp", "google/gemma-3-27b-it", {"context": 131072, "flash_attention": False}, 8743),
        ("ik_llama.cpp", "moonshotai/Kimi-K2-Instruct", {"context": 512, "flash_attention": False}, 334),
    ],
)
def test_compute_buffers_match_load_logs(engine_name: str, model: str, given: dict[str, object], mib: float) -> None:
    """Logits with flash attention, scores without: MiB as printed, within half a percent."""
    found = _run(engine_name, model, weights_format="gguf:Q4_K_M", **given)
    assert found.components["compute_buffer"] / MIB == pytest.approx(mib, rel=0.005)


@pytest.mark.parametrize("gpus", [2, 4])
def test_layers_over_several_devices_keep_copies_of_the_inputs(gpus: int) -> None:
    """Llama-3-8B at 8192 tokens needs 640 MiB of compute buffer on each of several cards."""
    found = _run(
        "llama.cpp", "meta-llama/Meta-Llama-3-8B", "RTX 3090", gpus,
        weights_format="gguf:Q4_K_M", context=8192, flash_attention=False, engine_version="b2824",
    )  # fmt: skip
    assert found.components["compute_buffer"] / MIB == pytest.approx(640 * gpus, rel=0.001)
    assert found.components["devices"] == gpus


def test_a_quantised_cache_is_unpacked_a_layer_at_a_time() -> None:
    """Twice the context of a q4_0 cache costs a CUDA card the cache, the mask and one layer unpacked."""
    common = {"weights_format": "gguf:Q4_K_M", "kv_dtype": "q4_0", "flash_attention": True}
    half = _run("llama.cpp", "Qwen/Qwen3.8-27B", "RTX 5090", context=131072, **common)
    whole = _run("llama.cpp", "Qwen/Qwen3.8-27B", "RTX 5090", context=262144, **common)
    assert (whole.device.expected - half.device.expected) / GIB == pytest.approx(2.88, abs=0.02)


@pytest.mark.parametrize(
    ("model", "gpus", "activation", "pool"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 1, 4.76, 51.38),
        ("Qwen/Qwen3-32B", 1, 5.64, 4.45),
        ("Qwen/Qwen3-32B", 2, 5.64, 34.49),
    ],
)
def test_the_vllm_profile_run_leaves_the_logged_pool(model: str, gpus: int, activation: float, pool: float) -> None:
    """On an H100 the sampler of 1024 sequences sets the peak, whatever the parallelism, and the pool is the rest."""
    found = _run(
        "vllm", model, "H100 SXM", gpus, engine_version="0.11.0", weights_format="bf16", context=16000,
        gpu_memory_utilization=0.9, memory_gib=79.18,
    )  # fmt: skip
    assert found.components["activation_peak"] / GIB == pytest.approx(activation, rel=0.01)
    assert found.components["kv"] / GIB == pytest.approx(pool, rel=0.02)


@pytest.mark.parametrize(("context", "activation"), [(20000, 2.0712), (29000, 2.9912)])
def test_without_chunked_prefill_the_peak_grows_with_the_longest_input(context: int, activation: float) -> None:
    """The older engine profiles the whole window of Llama-3.1-8B: the MLP of all its tokens."""
    found = _run(
        "vllm", "meta-llama/Llama-3.1-8B-Instruct", "RTX 3090",
        engine_version="0.6.x V0", weights_format="bf16", context=context,
    )  # fmt: skip
    assert found.components["activation_peak"] / GIB == pytest.approx(activation, rel=0.01)


def test_a_pool_too_small_for_one_sequence_is_said_and_exceeds_the_card() -> None:
    """Qwen3-32B with a 32,000-token window does not start on one H100: the need is above the card, with a note."""
    found = _run(
        "vllm", "Qwen/Qwen3-32B", "H100 SXM", engine_version="0.11.0", weights_format="bf16", context=32000,
        memory_gib=79.18,
    )  # fmt: skip
    assert "kv_pool_too_small" in {note.message for note in found.notes}
    assert found.components["kv"] < found.components["kv_needed"]
    assert found.device.expected / GIB > 79.18


def test_eager_mode_has_no_graphs() -> None:
    """Captured graphs take memory only where they are used."""
    common = {"weights_format": "bf16", "context": 4096}
    assert _run("vllm", "Qwen/Qwen3-8B", "L40S", cuda_graphs=False, **common).components["cuda_graphs"] == 0
    assert _run("vllm", "Qwen/Qwen3-8B", "L40S", **common).components["cuda_graphs"] > 0


@pytest.mark.parametrize(
    ("version", "prompt", "gib"),
    [
        ("4.46.0", 1, 14.38),
        ("4.46.0", 14336, 16.91),
        ("4.46.0", 30720, 19.97),
        ("4.38.2", 1, 14.92),
        ("4.38.2", 6144, 20.26),
        ("4.38.2", 30720, 42.62),
    ],
)
def test_transformers_peaks_follow_its_version(version: str, prompt: int, gib: float) -> None:
    """Old versions keep the logits of the whole prompt; newer ones peak in one layer's MLP (Qwen 7B)."""
    found = _run(
        "transformers", "Qwen/Qwen2.5-7B-Instruct", "A100 80GB", engine_version=version, weights_format="bf16",
        context=prompt + 2048, input_len=prompt, output_len=2048, flash_attention=True,
    )  # fmt: skip
    assert inference_total_bytes(found, "allocated", "transformers").expected / GIB == pytest.approx(gib, rel=0.02)


def test_gptq_kernels_unpack_the_largest_matrix() -> None:
    """A GPTQ model takes the 16-bit size of its widest matrix more than an AWQ one in transformers."""
    common = {"context": 2049, "input_len": 1, "output_len": 2048, "flash_attention": True}
    awq = _run("transformers", "Qwen/Qwen2.5-32B-Instruct", weights_format="awq", **common)
    gptq = _run("transformers", "Qwen/Qwen2.5-32B-Instruct", weights_format="gptq-4bit", **common)
    assert (gptq.components["weights"] - awq.components["weights"]) / GIB == pytest.approx(0.264, abs=0.01)


def test_the_parts_add_up() -> None:
    """The breakdown is the allocated figure, for each family of engines."""
    for name in ("llama.cpp", "vllm", "transformers"):
        found = _run(name, "Qwen/Qwen3-8B", "L40S", context=4096)
        assert sum(part.bytes for part in found.parts) == pytest.approx(found.allocated.expected), name


def test_a_cpu_run_lives_in_host_memory() -> None:
    """On a CPU nothing is on a device, and the resident set holds weights, cache and buffers."""
    found = _run("llama.cpp", "Qwen/Qwen3-8B", "cpu: EPYC 9654", weights_format="gguf:Q4_K_M", context=4096)
    assert found.device.expected == 0
    assert inference_total_bytes(found, "rss", "llama.cpp").expected >= found.allocated.expected


@pytest.mark.parametrize("statistic", ["engine_buffers", "allocated", "reserved", "device", "rss", "nvidia-smi", None])
def test_every_statistic_has_a_total_in_order(statistic: str | None) -> None:
    """Any statistic gives a positive range, and the device figure is the largest."""
    for name in engine_names():
        found = _run(name, "Qwen/Qwen3-8B", "L40S", context=4096)
        total = inference_total_bytes(found, statistic, name)
        assert 0 < total.low <= total.expected <= total.high
        assert total.expected <= inference_total_bytes(found, "device", name).expected


def test_versions_are_read_as_numbers() -> None:
    """Versions, build numbers and no version compare as they should."""
    assert version_tuple("0.6.4 (PR)") < version_tuple("0.6.5") < version_tuple("0.11.0") < version_tuple(None)
    assert version_tuple("b2824") < version_tuple("b10335-b10473")


def test_an_engine_has_the_defaults_of_its_version() -> None:
    """The most sequences of a profile run changed with versions; the old engine can be named by its word."""
    assert engine("vllm", "0.8.3").max_num_seqs == 1024
    assert engine("vllm", "0.8 V0").batched_tokens == "model_length"
    assert engine("vllm", "0.5.3").latent == "expanded"
    assert engine("HuggingFace", "4.38.2").all_logits
    assert not engine("transformers", None).all_logits


def test_an_unknown_engine_is_taken_as_a_plain_runtime_and_said_so() -> None:
    """A name that is no engine has no recipe; the footprint falls back and notes it."""
    with pytest.raises(UnsupportedWorkload, match="unknown_engine"):
        engine("abacus")
    found = _run("abacus", "Qwen/Qwen3-8B", context=2048)
    assert found.allocated.expected == _run("transformers", "Qwen/Qwen3-8B", context=2048).allocated.expected
    assert "engine_unknown" in {note.message for note in found.notes}


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("lmdeploy-turbomind", "lmdeploy"),
        ("vllm-cpu", "vllm"),
        ("Ollama 0.5", "ollama"),
        ("TGI", "tgi"),
        ("HF", "transformers"),
    ],
)
def test_engines_are_known_by_their_other_names(name: str, law: str) -> None:
    """Spellings, back ends and versions in the name lead to the engine."""
    assert engine(name).name == law
