"""Model names: exact ids, aliases, variants by any publisher, sizes, neighbours and typing errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.catalog.errors import UnknownName

CATALOGUE = Catalogue.load()
CASES = Path(__file__).parents[1] / "accuracy" / "cases"


def _case_models() -> list[tuple[str | None, float | None, float | None]]:
    found = set()
    for file in sorted(CASES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            case = case.get("expected") or case
            if case.get("model") or case.get("params_b"):
                found.add((case.get("model"), case.get("params_b") or None, case.get("active_params_b")))
    return sorted(found, key=str)


@pytest.mark.parametrize(
    ("name", "hf_id"),
    [
        ("llama 3 8b", "meta-llama/Meta-Llama-3-8B"),
        ("Llama3-8B", "meta-llama/Meta-Llama-3-8B"),
        ("mixtral", "mistralai/Mixtral-8x7B-v0.1"),
        ("bge-large", "BAAI/bge-large-en-v1.5"),
        ("R1", "deepseek-ai/DeepSeek-R1"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B"),
        ("deepseek-r1:70b", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B"),
        ("qwen2.5 7b", "Qwen/Qwen2.5-7B"),
        ("sdxl", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("whisper large", "openai/whisper-large-v3"),
        ("gpt-oss 120b", "openai/gpt-oss-120b"),
        ("command r plus", "CohereLabs/c4ai-command-r-plus"),
        ("CLIP ViT-B/16", "openai/clip-vit-base-patch16"),
        ("7B (Llama-like)", "meta-llama/Llama-2-7b-hf"),
    ],
)
def test_what_people_type_finds_the_model(name: str, hf_id: str) -> None:
    """Common spellings resolve to the row that they mean."""
    assert CATALOGUE.find_model(name).spec.hf_id == hf_id


@pytest.mark.parametrize(
    ("name", "hf_id", "weights"),
    [
        ("TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ", "mistralai/Mixtral-8x7B-v0.1", "awq"),
        ("unsloth/llama-3-8b-bnb-4bit", "meta-llama/Meta-Llama-3-8B", "nf4"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "meta-llama/Llama-3.1-70B", "int8"),
        ("Qwen/Qwen1.5-32B-Chat-GPTQ-Int4", "Qwen/Qwen1.5-32B", "gptq-4bit"),
        ("Qwen/Qwen-72B-Chat-Int4", "Qwen/Qwen-72B", "gptq-4bit"),
        ("Meta-Llama-3.1-70B-Instruct-2.4bpw-h6-exl2", "meta-llama/Llama-3.1-70B", "exl2:2.4"),
        ("Llama-3.3-70B-Instruct-Q4_K_M.gguf", "meta-llama/Llama-3.3-70B-Instruct", "gguf:Q4_K_M"),
        ("bartowski/Llama-3.2-3B-Instruct-GGUF:IQ4_XS", "meta-llama/Llama-3.2-3B", "gguf:IQ4_XS"),
        ("mlx-community/Meta-Llama-3-8B-Instruct-4bit", "meta-llama/Meta-Llama-3-8B", "mlx-4bit"),
        ("someone/gemma-3-27b-it-GPTQ-4b-128g", "google/gemma-3-27b-it", "gptq-4bit"),
        ("nvidia/Llama-3.1-405B-Instruct-NVFP4", "meta-llama/Llama-3.1-405B", "nvfp4"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "Qwen/Qwen3-235B-A22B", "fp8"),
        ("lmsys/vicuna-13b-v1.5", "meta-llama/Llama-2-13b-hf", None),
        ("cognitivecomputations/dolphin-2.7-mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1", None),
        ("Stable Beluga 2 70B", "meta-llama/Llama-2-70b-hf", None),
    ],
)
def test_a_repackaging_by_any_publisher_is_its_model(name: str, hf_id: str, weights: str | None) -> None:
    """The publisher does not matter, and the suffix says how the weights are stored."""
    match = CATALOGUE.find_model(name)
    assert (match.spec.hf_id, match.weights_format) == (hf_id, weights)


@pytest.mark.parametrize("case", _case_models(), ids=str)
def test_every_model_of_the_published_cases_resolves(case: tuple[str | None, float | None, float | None]) -> None:
    """No case names a model that the catalogue cannot place, and the size stays within a quarter of the stated one."""
    name, params_b, active_b = case
    match = CATALOGUE.find_model(name, params_b, active_b)
    if params_b and match.spec.domain == "llm":
        assert 0.75 <= match.spec.params_b / params_b <= 1.3


@pytest.mark.parametrize(("size", "hf_id"), [(7, "meta-llama/Llama-2-7b-hf"), (70, "meta-llama/Llama-3.1-70B")])
def test_a_size_alone_means_the_usual_model_of_that_size(size: float, hf_id: str) -> None:
    """ "7B" is an answer, with the reference model named in the note."""
    for match in (CATALOGUE.find_model(None, size), CATALOGUE.find_model(f"{size}B")):
        assert (match.spec.hf_id, match.how, match.note) == (hf_id, "size", "model_by_size")


def test_the_size_picks_the_sibling_where_the_name_has_none() -> None:
    """ "llama 3" with 70 B is the 70B, not the 8B that the bare name means."""
    assert CATALOGUE.find_model("llama 3").spec.hf_id == "meta-llama/Meta-Llama-3-8B"
    assert CATALOGUE.find_model("llama 3", 70.0).spec.hf_id == "meta-llama/Meta-Llama-3-70B"


def test_a_known_id_with_far_fewer_parameters_is_the_model_cut_in_depth() -> None:
    """Benchmarks cut models to a few layers at full width: the layer count follows from the parameters."""
    llama = CATALOGUE.find_model("meta-llama/Meta-Llama-3-70B", 12.369)
    deepseek = CATALOGUE.find_model("deepseek-ai/DeepSeek-V3", 36.959, 4.193)
    assert (llama.spec.layers, llama.note) == (12, "model_layers_changed")
    assert deepseek.spec.layers == 4
    assert deepseek.spec.params_active == pytest.approx(4.193e9, rel=0.01)


def test_an_untied_head_is_recognised_by_its_parameters() -> None:
    """GPT-2 with 163 M parameters is GPT-2 whose head is a matrix of its own."""
    match = CATALOGUE.find_model("GPT-2 124M shape, untied head (163M params)", 0.1625)
    assert (match.spec.tie_embeddings, match.note) == (False, "model_head_untied")


def test_an_unknown_model_of_known_size_is_a_scaled_neighbour_and_says_so() -> None:
    """Only the size is trusted; the architecture is taken from the nearest row."""
    match = CATALOGUE.find_model("acme/secret-50b")
    assert match.how == "neighbour"
    assert match.spec.origin == "neighbour"
    assert match.note == "model_scaled_from_neighbour"
    assert match.spec.params_b == pytest.approx(50)


def test_the_neighbour_of_a_mixture_is_a_mixture() -> None:
    """Active parameters ask for experts, and stay below the total."""
    spec = CATALOGUE.find_model("acme/sparse-90b-a5b").spec
    assert spec.moe is not None
    assert spec.params_active == pytest.approx(5e9)


def test_a_misspelt_name_with_a_size_is_read_as_the_nearest_and_says_so() -> None:
    """A guess is never silent."""
    match = CATALOGUE.find_model("mistrall 7b")
    assert (match.spec.hf_id, match.note) == ("mistralai/Mistral-7B-v0.1", "model_name_guessed")


def test_a_misspelt_name_without_a_size_gives_suggestions() -> None:
    """Nothing is guessed where no size can be checked."""
    with pytest.raises(UnknownName) as caught:
        CATALOGUE.find_model("mixtrall")
    assert "mistralai/Mixtral-8x7B-v0.1" in caught.value.suggestions


@pytest.mark.parametrize("name", ["", "   ", "qzxv", "?!"])
def test_an_empty_or_meaningless_name_is_unknown(name: str) -> None:
    """A name that says nothing is an error, not a model."""
    with pytest.raises(UnknownName):
        CATALOGUE.find_model(name)


def test_another_architecture_is_not_taken_for_a_known_one() -> None:
    """A vision or newer model must not resolve to the text model whose name it contains."""
    assert CATALOGUE.find_model("llama 9 8b").how == "neighbour"
    assert CATALOGUE.find_model("Qwen2.5-VL-7B").spec.hf_id == "Qwen/Qwen2.5-VL-7B-Instruct"


@given(st.text(max_size=40), st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_text_resolves_or_is_unknown(name: str, size: float | None) -> None:
    """No input ends in another error, and what resolves has parameters."""
    try:
        match = CATALOGUE.find_model(name, size)
    except UnknownName:
        return
    assert match.spec.params_total > 0


def test_a_team_row_wins_over_ours() -> None:
    """An override of the same id replaces our row, and its origin shows."""
    row = json.loads((Path(__file__).parents[2] / "rules/catalog/data/models.jsonl").read_text().splitlines()[0])
    mine = Catalogue.load().with_overrides(models=[{**row, "layers": 13, "layer_kinds": {"full": 13}}])
    match = mine.find_model("gpt2")
    assert (match.spec.layers, match.spec.origin) == (13, "override")
    assert mine.version != Catalogue.load().version
