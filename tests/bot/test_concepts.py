"""Explanations: the right topic for a question, the user's own figures, corrections inside other questions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from bot.answering import answer
from bot.answers import concepts
from bot.answers.concepts import topic_of, topics
from bot.answers.concepts.figures import FIGURES
from bot.answers.words import LANGUAGES, words
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
TRIGGERS = sorted((Path(concepts.__file__).parent / "triggers").glob("*.toml"))
REQUIREMENTS = {*(f"T{n}" for n in range(1, 17)), *(f"I{n}" for n in range(1, 14))}


def test_every_requirement_has_a_topic() -> None:
    """T1 to T16 and I1 to I13 can each be explained."""
    assert {r for topic in topics() for r in topic.requirements} == REQUIREMENTS


def test_topics_triggers_and_figures_belong_together() -> None:
    """Every topic has words in every language, every word has a topic, every figure exists, and corrections match."""
    ids = {topic.id for topic in topics()}
    for path in TRIGGERS:
        table = tomllib.loads(path.read_text("utf-8"))
        assert set(table["topics"]) == ids
        assert set(table["corrections"]) == {topic.id for topic in topics() if topic.correction}
    assert {name for topic in topics() for name in topic.figures} == set(FIGURES)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_topic_has_short_text(lang: str) -> None:
    """Each topic is explained in at most 75 words, each correction in at most 35, in each language."""
    say = words(lang)
    for topic in topics():
        assert say.knows(f"concept_{topic.id}")
        assert len(say(f"concept_{topic.id}").split()) <= 75, topic.id
        if topic.correction:
            assert say.knows(f"correction_{topic.id}")
            assert len(say(f"correction_{topic.id}").split()) <= 35, topic.id


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("what is the kv cache", "kv_cache"),
        ("do MoEs only need vram for the active params? e.g. 30b-a3b", "moe_memory"),
        ("the 671b R1 is quicker than the 70b, how come", "moe_speed"),
        ("vllm takes 16gb for qwen 3b awq on my 3090, why", "engine_share"),
        ("tp on a pair of 3090s: is the nvlink bridge worth it", "nvlink"),
        ("3x V100 and a 33b with 52 heads, tp=3 refuses. any way?", "tp_heads"),
        ("tp4 works and tp8 OOMs. more gpus = less memory each right?", "tp_more"),
        ("can A100 run fp8 checkpoints", "fp8_support"),
        ("why would bnb 4bit want more vram than plain bf16 while finetuning", "four_bit_slower"),
        ("zero3 memory doesnt go down from 2 to 4 gpus", "zero_stages"),
        ("what is the difference between lora and qlora", "qlora"),
        ("why does full fine-tuning need so much memory", "full_training"),
        ("does batch size depend on vram", "batch_memory"),
        ("what does the cpu do in training", "cpu_role"),
        ("is avx512 useful for inference", "avx512"),
        ("is a model memory bound or compute bound", "memory_bound"),
        ("rent or buy?", "rent_or_buy"),
        ("do I need a gpu for xgboost", "classical"),
        ("when should I move to gpu, after a load test?", "load_test"),
        ("why is my gpu idle, low utilisation", "utilisation"),
        ("is the 40% rule of thumb good", "quick_rule"),
        ("does a mac give all its memory as vram", "mac_memory"),
        ("it ran for some steps and then oom, why", "ran_some_steps"),
        ("¿el tamaño de batch depende de la VRAM?", "batch_memory"),
        ("hace falta NVLink para partir un 70b en dos tarjetas?", "nvlink"),
        ("si el MoE solo activa 3B, por qué ocupa tanta VRAM", "moe_memory"),
        ("¿qué es la caché KV?", "kv_cache"),
        ("¿para qué sirve AVX-512?", "avx512"),
        ("¿qué diferencia hay entre lora y qlora?", "qlora"),
        ("¿qué papel tiene la cpu al entrenar?", "cpu_role"),
        ("¿alquilar o comprar?", "rent_or_buy"),
        ("¿qué limita, el ancho de banda o el cálculo?", "memory_bound"),
        ("why is the sky blue", None),
    ],
)
def test_topic_of_a_question(question: str, topic: str | None) -> None:
    """A question is met by the topic that it asks about, in either language."""
    found = topic_of(question)
    assert (found.id if found else None) == topic


def figures(question: str) -> dict[str, dict[str, object]]:
    """The figures in the answer to a concept question."""
    explanation = answer(question, catalogue=CATALOGUE).explanation
    assert explanation is not None
    return {note.message: dict(note.params) for note in explanation.notes}


def test_figures_of_the_users_own_model() -> None:
    """The cache of Llama 3 8B is 128 KiB a token; Llama 3 70B is 42.5 GB in 4 bits; 7 B in full are 16 bytes each."""
    assert figures("what is the kv cache of llama 3 8b")["figure_cache"]["kib"] == 128
    size = figures("why is llama 3 70b in 4 bit more than half a byte, in gb")["figure_file_size"]
    assert size["file_gb"] == pytest.approx(42.5, rel=0.01)
    states = figures("why does full fine-tuning llama 2 7b need so much memory")["figure_training_states"]
    assert states["states_gib"] == pytest.approx(6.738e9 * 16 / 2**30, rel=0.001)


def test_figures_of_several_cards() -> None:
    """Stages of ZeRO on 8 cards by hand: 16, 8 + 8/8, 4 + 12/8 and 16/8 bytes a parameter."""
    found = figures("what does zero do with llama 2 7b on 8 a100 80gb")["figure_zero_stages"]
    per_param = [float(str(found[f"{k}_gib"])) * 2**30 / 6.738e9 for k in ("ddp", "zero1", "zero2", "zero3")]
    assert per_param == pytest.approx([16, 9, 5.5, 2], rel=0.001)


@pytest.mark.parametrize(
    ("question", "correction"),
    [
        ("70b in 4 bit is 35gb so it fits 2x3090?", "correction_four_bit_size"),
        ("llama 2 7b is 14 gb so I can train it full on an 80gb a100?", "correction_full_training"),
        ("qwen3 30b-a3b on a 12 GB card, only 3b active so it fits", "correction_moe_memory"),
        ("llama 3 70b q4 on a 64gb mac", "correction_mac_memory"),
        ("llama 3 8b fp8 on an a100", "correction_fp8_support"),
        ("un 70b en 4 bits son 35 gb, ¿me cabe en 2x3090?", "correction_four_bit_size"),
        ("llama 3 70b con vllm tp 3 en 3 a6000", "correction_tp_heads"),
    ],
)
def test_a_misreading_is_corrected_beside_the_answer(question: str, correction: str) -> None:
    """A fit question that rests on a misreading is answered, with one kind sentence."""
    answered = answer(question, catalogue=CATALOGUE)
    assert answered.advice is not None
    assert correction in [note.message for note in answered.remarks]


@pytest.mark.parametrize("question", ["llama 3 8b on a 4090", "qlora 13b on a 3090", "sdxl en una 3060"])
def test_a_plain_question_is_not_corrected(question: str) -> None:
    """Nothing is corrected where nothing was misread."""
    notes = answer(question, catalogue=CATALOGUE).remarks
    assert not [note for note in notes if re.match("correction_", note.message)]


def test_a_concept_without_a_model_is_answered() -> None:
    """A question with no workload at all gets its explanation; one about nothing known gets the list of topics."""
    assert answer("what is the kv cache", catalogue=CATALOGUE).exit_code == 0
    assert answer("why is the sky blue", catalogue=CATALOGUE).problem_id == "concept_unknown"
