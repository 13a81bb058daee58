"""Configs, launch commands and memory messages of each framework: every case of `data/configs` reads as it says."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bot.questions.configs import read_config
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
DATA = Path(__file__).with_name("data") / "configs"


def _cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}: {case['name']}")
        for path in sorted(DATA.glob("*.toml"))
        for case in tomllib.loads(path.read_text("utf-8"))["case"]
    ]


@pytest.mark.parametrize("case", _cases())
def test_each_case_reads_as_it_says(case: dict[str, Any]) -> None:
    """Fields and extras of the case are read with these values, absent ones are not, and the words around stay."""
    read = read_config(case["text"], CATALOGUE)
    assert read is not None
    known = {**read.fields, **read.extra}
    for name, value in {**case["fields"], **case.get("extra", {})}.items():
        assert known.get(name) == value, name
    assert not [name for name in case.get("absent", ()) if name in known]
    if "rest" in case:
        assert read.rest == case["rest"]
    assert {p.id for p in read.problems} == ({case["problem"]} if "problem" in case else set())


@pytest.mark.parametrize("family", ["axolotl", "llama_factory", "torchtune", "huggingface", "deepspeed_fsdp", "vllm",
                                    "sglang_tgi", "llama_cpp_ollama"])  # fmt: skip
def test_each_family_has_twenty_cases(family: str) -> None:
    """Each family's file holds at least twenty configs or commands, each named once."""
    names = [case["name"] for case in tomllib.loads((DATA / f"{family}.toml").read_text("utf-8"))["case"]]
    assert len(names) >= 20
    assert len(set(names)) == len(names)
