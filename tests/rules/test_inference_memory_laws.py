"""Laws that hold for every engine and model: more work never takes less memory, and nothing breaks."""

from __future__ import annotations

import time
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.formats import weight_format
from rules.memory.errors import UnsupportedWorkload
from rules.memory.inference import inference_footprint, inference_total_bytes
from rules.memory.inference.engines import engine_names
from rules.memory.inference.weights import weight_bytes
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()
MODELS = [spec for spec in CATALOGUE.models if spec.domain == "llm"]
FORMATS = ["bf16", "gguf:Q8_0", "gguf:Q4_K_M", "gguf:IQ2_XXS", "awq", "gptq-8bit", "nf4", "fp8", "nvfp4", "exl2:3.0"]
models = st.sampled_from(MODELS)
engines = st.sampled_from(engine_names())
examples = settings(max_examples=120, deadline=None, derandomize=True)


def _need(spec, engine: str, **fields_given: object) -> float:  # type: ignore[no-untyped-def]
    workload = InferenceWorkload(
        model=ModelRef(name=spec.hf_id),
        engine=Given(engine),
        weights_format=Given("gguf:Q4_K_M" if "llama" in engine else "bf16"),
        **{key: Given(value) for key, value in fields_given.items()},  # type: ignore[arg-type]
    )
    return inference_footprint(workload, spec).device.expected


@examples
@given(models, engines, st.integers(64, 60000), st.integers(1, 60000))
def test_a_longer_context_never_needs_less(spec, engine: str, context: int, more: int) -> None:  # type: ignore[no-untyped-def]
    """The need grows with the context, for every engine."""
    assert _need(spec, engine, context=context + more) >= _need(spec, engine, context=context) * (1 - 1e-9)


@examples
@given(models, engines, st.integers(1, 64), st.integers(1, 64))
def test_more_sequences_never_need_less(spec, engine: str, batch: int, more: int) -> None:  # type: ignore[no-untyped-def]
    """The need grows with the sequences at once, for every engine."""
    fewer = _need(spec, engine, context=2048, batch=batch)
    assert _need(spec, engine, context=2048, batch=batch + more) >= fewer * (1 - 1e-9)


@examples
@given(models, st.sampled_from(FORMATS), st.integers(2, 4))
def test_more_parameters_never_weigh_less(spec, name: str, factor: int) -> None:  # type: ignore[no-untyped-def]
    """A model with more parameters has more bytes in any format."""
    larger = replace(spec, params_total=spec.params_total * factor)
    assert weight_bytes(larger, weight_format(name)).total > weight_bytes(spec, weight_format(name)).total


@examples
@given(models, st.sampled_from(FORMATS))
def test_quantising_never_raises_the_weights(spec, name: str) -> None:  # type: ignore[no-untyped-def]
    """No format of fewer bits takes more than 16-bit weights."""
    plain = weight_bytes(spec, weight_format("bf16"), with_vision=not name.startswith("gguf")).total
    small = 1.001 if spec.params_total > 3e8 else 1.02  # norms are 32 bits in GGUF files
    assert weight_bytes(spec, weight_format(name)).total <= plain * small


@examples
@given(models, st.sampled_from(["vllm", "sglang", "tgi", "llama.cpp"]), st.sampled_from([1, 2, 4, 8, 16, 32]))
def test_tensor_parallelism_never_raises_the_weights_of_a_device(spec, engine: str, tp: int) -> None:  # type: ignore[no-untyped-def]
    """Doubling the ranks does not add weights to any of them."""

    def weights(degree: int) -> float:
        workload = InferenceWorkload(model=ModelRef(name=spec.hf_id), engine=Given(engine), tp=Given(degree))
        return inference_footprint(workload, spec).parts[0].bytes

    assert weights(2 * tp) <= weights(tp) * (1 + 1e-9)


_INTEGERS = st.none() | st.integers(-5, 10) | st.sampled_from([0, 1, 8192, 131072, 10**7, 2**70])
_FLOATS = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0, 90.0, 1e12, float("inf"), float("nan")])
_BOOLEANS = st.none() | st.booleans()
_WORDS = {
    "engine": st.sampled_from([None, "vllm", "llama.cpp", "transformers", "Ollama 0.5", "exllamav2", "abacus", ""]),
    "engine_version": st.sampled_from([None, "0.6.4", "V1", "b2824", "nonsense"]),
    "weights_format": st.sampled_from([None, "", "bf16", "gguf:Q4_K_M", "awq", "mxfp4", "x"]),
    "kv_dtype": st.sampled_from([None, "fp8", "q4_0", "K q8_0, V fp16", "x"]),
    "attention_impl": st.sampled_from([None, "eager", "sdpa", "x"]),
    "split_mode": st.sampled_from([None, "layer", "row", "tensor"]),
    "offload": st.sampled_from([None, "none", "model_cpu", "sequential_cpu", "x"]),
}


def _values(kind: str, name: str) -> st.SearchStrategy[object]:
    if name in _WORDS:
        return _WORDS[name]
    if "bool" in kind and "int" not in kind:
        return _BOOLEANS
    if "bool" in kind:
        return _BOOLEANS | _INTEGERS
    return _FLOATS if "float" in kind else _INTEGERS if "int" in kind else st.none()


_GIVEN = {
    field.name: _values(str(field.type), field.name)
    for field in fields(InferenceWorkload)
    if str(field.type).startswith("Given")
}


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    models,
    st.fixed_dictionaries(_GIVEN),
    st.sampled_from([None, "RTX 4090", "H100 SXM", "M2 Ultra", "cpu"]),
    st.integers(1, 9),
    st.sampled_from([None, 8.0, 23.56, 80.0]),
)
def test_any_combination_of_fields_gives_a_footprint_or_a_reason(  # type: ignore[no-untyped-def]
    spec, values: dict[str, object], gpu: str | None, count: int, memory: float | None
) -> None:
    """Whatever is stated, even nonsense, the law answers with finite bytes or raises `UnsupportedWorkload`."""
    workload = InferenceWorkload(
        model=ModelRef(name=spec.hf_id),
        hardware=(Hardware(name=gpu, count=count, memory_gib=memory),) if gpu else (),
        **{key: None if value is None else Given(value) for key, value in values.items()},  # type: ignore[arg-type]
    )
    device = CATALOGUE.find_accelerator(gpu, memory) if gpu and gpu != "cpu" else None
    try:
        found = inference_footprint(workload, spec, device)
    except UnsupportedWorkload:
        return
    assert 0 <= found.allocated.low <= found.allocated.expected <= found.allocated.high < float("inf")
    assert all(part.bytes >= 0 for part in found.parts)
    assert all(value == value for value in found.components.values())
    assert inference_total_bytes(found, None, None).expected >= 0


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "transformers"])
def test_a_footprint_takes_well_under_a_millisecond(engine: str) -> None:
    """Ranking thousands of candidates stays instant: the best of ten rounds is below one millisecond a footprint."""
    spec = CATALOGUE.find_model("Qwen/Qwen3-235B-A22B", 235.1).spec
    workload = InferenceWorkload(model=ModelRef(name=spec.hf_id), engine=Given(engine), context=Given(8192))
    rounds = []
    for _ in range(10):
        start = time.perf_counter()
        for _ in range(20):
            inference_footprint(workload, spec)
        rounds.append((time.perf_counter() - start) / 20)
    assert min(rounds) < 1e-3
