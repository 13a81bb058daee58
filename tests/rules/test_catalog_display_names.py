"""Names of models as answers show them."""

from __future__ import annotations

from collections import Counter

import pytest

from rules.catalog.catalogue import Catalogue
from rules.catalog.display_names import display_name


@pytest.mark.parametrize(
    ("hf_id", "family", "shown"),
    [
        ("meta-llama/Llama-2-13b-hf", "Llama 2", "Llama 2 13B"),
        ("meta-llama/Meta-Llama-3-8B", "Llama 3", "Llama 3 8B"),
        ("huggyllama/llama-7b", "Llama 1", "Llama 1 7B"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen3", "Qwen3 30B A3B 2507"),
        ("mistralai/Mixtral-8x7B-v0.1", "Mixtral", "Mixtral 8x7B v0.1"),
        ("google/gemma-3-27b-it", "Gemma 3", "Gemma 3 27B"),
        ("microsoft/phi-1_5", "Phi-1.5", "Phi-1.5"),
        ("openai/whisper-large-v3", "Whisper", "Whisper large v3"),
        ("someone/-it", "", "it"),
    ],
)
def test_names_are_shown_as_people_write_them(hf_id: str, family: str, shown: str) -> None:
    """The publisher and the packaging go, the family keeps its spelling, sizes have a capital letter."""
    assert display_name(hf_id, family) == shown


def test_no_two_models_of_the_catalogue_share_a_name() -> None:
    """A shown name means one model."""
    shown = Counter(model.display_name for model in Catalogue.load().models)
    assert [name for name, count in shown.items() if count > 1] == []


def test_most_shown_names_lead_back_to_their_model() -> None:
    """A name copied out of an answer into a question finds the same model, but for a handful of bare family names."""
    catalogue = Catalogue.load()
    lost = [m.hf_id for m in catalogue.models if catalogue.find_model(m.display_name).spec.hf_id != m.hf_id]
    assert len(lost) <= 6, lost
