"""Libraries of a month: what a report that names no version is taken to have run."""

from __future__ import annotations

from dataclasses import replace

from rules.catalog.catalogue import Catalogue
from rules.memory.law import footprint
from rules.memory.training.recipe import find_recipe
from rules.memory.training.releases import versions_of_month
from rules.workload import Given, ModelRef, TrainingWorkload


def test_month_names_the_newest_releases_up_to_it() -> None:
    """July 2023 has transformers 4.31 and torch 2.0; libraries that came later are left out."""
    assert versions_of_month("2023-07") == "transformers 4.31, torch 2.0, bitsandbytes 0.41"
    assert versions_of_month("2021-12") == "transformers 4.0, torch 1.8"
    assert versions_of_month("2000-01") == ""


def test_old_modules_score_attention_by_matrices() -> None:
    """Before transformers 4.36 attention is eager unless the framework brings its own kernel."""
    assert find_recipe("transformers", "transformers 4.31").attention == "eager"
    assert find_recipe("transformers", "transformers 4.40").attention == "sdpa"
    assert find_recipe("transformers", None).attention == "sdpa"
    assert find_recipe("axolotl", "transformers 4.31").attention == "flash"
    assert find_recipe("litgpt", "transformers 4.31").attention == "sdpa"


def test_stated_version_wins_over_the_month() -> None:
    """A run dated 2023 needs more memory than the same with a stated new version, which the month does not change."""
    model = Catalogue.load().find_model("meta-llama/Llama-2-7b-hf").spec
    undated = TrainingWorkload(
        model=ModelRef(name="meta-llama/Llama-2-7b-hf"),
        method=Given("lora"),
        micro_batch=Given(1),
        seq_len=Given(8192),
        framework=Given("transformers"),
    )
    dated = replace(undated, software_month=Given("2023-07"))
    stated = replace(dated, framework_version=Given("transformers 4.40"))
    need = {name: footprint(w, model).allocated.expected for name, w in (("u", undated), ("d", dated), ("s", stated))}
    assert need["d"] > 1.2 * need["u"]
    assert need["s"] == need["u"]
