"""Short and telegraphic messages: names cut short, replies with a count, Spanish without function words."""

from __future__ import annotations

import pytest

from bot.questions.followup import follow
from bot.questions.parse import parse
from bot.questions.replies import picks
from rules.catalog.catalogue import Catalogue


@pytest.mark.parametrize(
    ("said", "row"),
    [("nllb 3.3b", "facebook/nllb-200-3.3B"), ("30b-a3b", "Qwen/Qwen3-30B-A3B")],
)
def test_a_shortened_name_finds_its_row(said: str, row: str) -> None:
    """A name without its middle token, and a bare total-and-active notation, give the catalogue's row."""
    assert Catalogue.load().find_model(said).spec.hf_id == row


@pytest.mark.parametrize("said", ["son 20 en total", "they are 20 in total", "total", "20 en total", "20 in total"])
def test_a_reply_may_repeat_the_count(said: str) -> None:
    """The count of people that a reply repeats does not hide the choice."""
    assert picks("people.in_total", said)
    assert not picks("people.at_once", said)


@pytest.mark.parametrize(
    ("said", "lang"),
    [
        ("clasificador bert a 20 rps en cpu", "es"),
        ("entrenamiento llama 8b lora", "es"),
        ("bert classifier at 20 rps on cpu", "en"),
        ("llama 3 8b on a 4090", "en"),
        ("vendor quantization for a 7b", "en"),
    ],
)
def test_short_messages_keep_their_language(said: str, lang: str) -> None:
    """Endings of Spanish nouns count as evidence; English nouns do not lose theirs."""
    assert parse(said, Catalogue.load()).lang == lang


@pytest.mark.parametrize("said", ["in the cloud", "en la nube"])
def test_a_bare_place_follows_up(said: str) -> None:
    """A message that only says the cloud changes the place of the question before, and nothing else."""
    catalogue = Catalogue.load()
    before = parse("serve llama 3 8b on a 4090", catalogue)
    merged = follow(before, said, catalogue)
    assert merged.follows
    assert merged.parsed.fields == {**before.fields, "location": "cloud"}
