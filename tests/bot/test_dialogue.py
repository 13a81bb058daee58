"""A conversation: one question that turns the verdict, replies to it, follow-ups that change what was said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.answered import Answered
from bot.answering import answer
from bot.questions.dialogue import Conversation
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
FULL_8B = "full finetune of llama 3 8B on one 80GB A100?"
FOR_20 = "llama 3 70b int4 on 2x4090 for 20 people"


def talk(*messages: str) -> Answered:
    """The answer to the last message of a conversation."""
    conversation = Conversation()
    for message in messages:
        last = answer(message, catalogue=CATALOGUE, conversation=conversation)
        conversation = last.conversation
    return last


def asked(answered: Answered) -> str | None:
    """The id of the point that an answer asks for."""
    return answered.conversation.asked.id if answered.conversation.asked else None


@pytest.mark.parametrize(
    ("question", "point", "choices"),
    [
        (FULL_8B, "master_weights", 2),
        (FOR_20, "people", 2),
        ("llama 3 8b", "run_or_train", 2),
        ("can I run R1 on 4x4090", "release", 4),
        ("lora qwen 2.5 32b on an a100", "memory_variant", 2),
        ("finetune llama 3 8b on a 4090", "method", 3),
    ],
)
def test_asks_the_one_point_that_turns_the_verdict(question: str, point: str, choices: int) -> None:
    """Where a missing field decides, that one question comes with its choices, and the answer is given all the same."""
    answered = talk(question)
    assert asked(answered) == point
    assert len(answered.questions) == 1
    assert len(answered.choices) == choices
    assert answered.advice is not None


@pytest.mark.parametrize(
    "question",
    ["lora llama 3 8b on an h100", "llama 3 8b int4 on a 4090", "qlora 7b on a 3090", "qwen 2.5 14b lora on an a100"],
)
def test_asks_nothing_where_nothing_turns(question: str) -> None:
    """A question whose open points all lead to the same verdict is answered without one back."""
    assert talk(question).questions == ()


@pytest.mark.parametrize(
    ("messages", "field", "value"),
    [
        ((FULL_8B, "yes"), "mixed_precision", True),
        ((FULL_8B, "no"), "mixed_precision", False),
        ((FULL_8B, "pure bf16"), "mixed_precision", False),
        ((FULL_8B, "master_weights.fp32_master"), "mixed_precision", True),
        ((FOR_20, "at once"), "concurrency", 20),
        ((FOR_20, "in total"), "concurrency", 4),
        ((FOR_20, "about 7"), "concurrency", 7),
        (("¿me cabe un 70B en 2x4090 para 20 personas?", "a la vez"), "concurrency", 20),
        (("¿me cabe un 70B en 2x4090 para 20 personas?", "son en total"), "concurrency", 4),
        (("llama 3 8b", "train it"), "task", "fine_tuning"),
        (("llama 3 8b", "entrenarlo"), "task", "fine_tuning"),
        (("finetune llama 3 8b on a 4090", "LoRA"), "method", "lora"),
        (("lora qwen 2.5 32b on an a100", "40"), "gpu_mem_gb", 40),
        (("can I run R1 on 4x4090", "32b"), "model", "DeepSeek-R1-Distill-Qwen-32B"),
    ],
)
def test_a_bare_reply_answers_the_question(messages: tuple[str, ...], field: str, value: Any) -> None:
    """A short reply sets the field that was asked for."""
    parsed = talk(*messages).parsed
    assert {**parsed.extra, **parsed.fields}[field] == value


@pytest.mark.parametrize(
    ("messages", "field", "value"),
    [
        (("llama 3 8b on a 4090", "and in 8-bit?"), "weights_format", "int8"),
        (("llama 3 8b on a 4090", "on two of them?"), "hardware", [{"name": "RTX 4090", "count": 2}]),
        (("llama 3 8b en una 4090", "¿y en dos?"), "hardware", [{"name": "RTX 4090", "count": 2}]),
        (("llama 3 8b en una 4090", "¿y con 32k de contexto?"), "context", 32768),
        (("llama 3 8b on a 4090", "8k"), "context", 8192),
        (("llama 3 8b on a 4090", "what about a 3090 instead"), "hardware", [{"name": "RTX 3090", "count": 1}]),
        (("llama 3 8b int4 on a 4090", "train it instead"), "method", "qlora"),
        (("qlora llama 3 8b on a 4090", "run it instead"), "task", "inference"),
        (("llama 3 8b on a 4090", "and the 70b?"), "model", "Llama-3-70B"),
        (("llama 3 70b q4 on a mac studio m2 ultra 64gb", "and with 192 gb?"), "hardware",
         [{"name": "Mac Studio M2 Ultra 192GB", "count": 1}]),
        (("llama 3 8b on a 4090 for 5 concurrent users", "what if 50 are active at once?"), "concurrency", 50),
    ],
)  # fmt: skip
def test_a_follow_up_changes_what_was_said(messages: tuple[str, ...], field: str, value: Any) -> None:
    """A follow-up replaces one field and leaves the rest."""
    parsed = talk(*messages).parsed
    assert parsed.fields[field] == value
    assert parsed.fields.keys() & {"model", "params_b"}


def test_what_a_task_no_longer_has_goes() -> None:
    """From serving to training, users and engine go; from training to running, method and optimizer go."""
    trained = talk("serve llama 3 8b with vllm on a 4090, 8 concurrent users", "train it instead").parsed
    assert not {"framework", "concurrency"} & trained.fields.keys()
    run = talk("lora llama 3 8b on a 4090 with adamw 8bit", "run it instead").parsed
    assert not {"method", "optimizer"} & run.fields.keys()


@pytest.mark.parametrize(
    ("messages", "remark"),
    [
        (("13B qlora", "on two of them?"), "remark_no_hardware_named"),
        (("qlora 7b on a 3090", "in 8 bit"), "remark_qlora_is_4_bit"),
        (("full finetune 7b on an h100", "in 4 bit"), "remark_quantised_not_full"),
        (("qlora 7b on a 3090", "on 0 of them"), "device_count_impossible"),
        (("llama 3 70b int4 on an h100", "cheaper"), "remark_cheaper_smallest"),
        (("lora 7b", "cheaper"), "remark_cheaper_method"),
        (("llama 3 8b on a 4090", "faster"), "remark_faster"),
        (("lora llama 3 8b en una 4090", "pero en CPU"), "remark_training_not_on_cpu"),
    ],
)
def test_says_how_a_message_was_taken(messages: tuple[str, ...], remark: str) -> None:
    """A contradiction and a reference to nothing are said in one sentence, beside the hardware answer."""
    answered = talk(*messages)
    assert remark in [note.message for note in answered.remarks]
    assert answered.advice is not None


@pytest.mark.parametrize(
    ("messages", "line"),
    [
        (("llama 3 8b on a 4090", "how fast is it?"), "time"),
        (("cost of serving llama 3 8b around the clock",), "cost"),
        (("how fast is llama 3 8b on a 4090",), "time"),
        (("bge-large on cpu, 5 rps",), "capacity"),
        (("50k samples of 1.5k tokens, 8B LoRA on a 4090, how long",), "time"),
        (("rent or buy for 40 h a week of 13B QLoRA",), "cost"),
    ],
)
def test_speed_load_and_money_are_answered(messages: tuple[str, ...], line: str) -> None:
    """A question of time, load or money has its own line with figures."""
    answered = talk(*messages)
    assert answered.advice is not None
    note = answered.advice.headlines[line]
    assert any(isinstance(value, float) and value > 0 for value in note.params.values())


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (("yes",), "nothing_asked_yet"),
        (("llama 3 8b int4 on a 4090", "yes"), "remark_nothing_asked"),
        (("llama 3 8b int4 on a 4090", "blargh"), "remark_nothing_changed"),
        (("llama 3 8b int4 on a 4090", "gracias"), "thanks_reply"),
        (("how much for 8xH100 for 3 days",), "hardware_cost_model"),
        (("what runs on a 3090",), "hardware_alone"),
        (("help",), "help_text"),
    ],
)
def test_kind_words_where_there_is_nothing_to_compute(messages: tuple[str, ...], problem: str) -> None:
    """Replies to nothing, thanks and hardware alone get a sentence, not an error."""
    assert talk(*messages).problem_id == problem


def test_the_state_survives_replies_that_change_nothing() -> None:
    """After thanks and gibberish a follow-up still changes the workload."""
    answered = talk("llama 3 8b int4 on a 4090", "thanks", "blargh", "what is the kv cache", "and with 32k context?")
    assert answered.parsed.fields["context"] == 32768
    assert answered.parsed.fields["model"] == "Llama-3-8B"
    assert answered.advice is not None
    assert answered.explanation is None


def test_a_new_question_starts_anew() -> None:
    """A message with its own model and hardware keeps nothing of the one before."""
    parsed = talk("llama 3 8b int4 on a 4090 with 32k context", "sdxl lora on 12 GB").parsed
    assert "context" not in parsed.fields
    assert "weights_format" not in parsed.fields


def test_no_more_than_two_questions_about_one_workload() -> None:
    """A conversation is no interrogation: a third point is assumed."""
    points, conversation = set(), Conversation()
    for message in ("a 70B on 2 a100 for 30 people", "on an h100", "on a 4090", "on a 3090", "on a t4"):
        answered = answer(message, catalogue=CATALOGUE, conversation=conversation)
        conversation = answered.conversation
        points.add(asked(answered))
    assert len(points - {None}) <= 2


def test_follow_up_keeps_the_language() -> None:
    """A reply without words of a language is answered in that of the conversation; English words switch it."""
    assert talk("¿me cabe un 70B en 2x4090?", "8k").words.lang == "es"
    assert talk("¿me cabe un 70B en 2x4090?", "and what about the h100?").words.lang == "en"


def test_the_echo_names_every_stated_field() -> None:
    """The line of what was understood holds model, method, hardware, length and batch."""
    line = talk("lora llama 3 8b on 2x4090, 4k tokens, batch 2").understood
    assert line == "Llama 3 8B · LoRA · 2 x RTX 4090 · 4,096 tokens · batch 2"


def test_the_echo_of_a_pasted_command_holds_its_settings() -> None:
    """Parallelism, shares and switches of a launch command or config are said back, also what it switches off."""
    served = talk("vllm serve Qwen/Qwen2.5-32B --tensor-parallel-size 2 --max-num-seqs 64 --enforce-eager on 2x4090")
    assert served.understood.endswith("vLLM · tensor parallel 2 · at most 64 sequences · no CUDA graphs")
    trained = talk("lora llama 3 8b on a 4090\ngradient_checkpointing: false\nsample_packing: true")
    assert trained.understood.endswith("no activation checkpointing · packed")


@pytest.mark.parametrize(("word", "goal"), [("cheaper", "cheapest"), ("faster", "fastest"), ("más barato", "cheapest")])
def test_cheaper_and_faster_change_what_comes_first(word: str, goal: str) -> None:
    """The hardware that was named is left open and the first option is the one that the word asks for."""
    answered = talk("llama 3 8b on a 3060", word)
    assert answered.parsed.extra["goal"] == goal
    assert "hardware" not in answered.parsed.fields
    assert answered.advice is not None
    assert goal in answered.advice.options[0].rule


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_never_fails_whatever_is_typed(messages: list[str]) -> None:
    """Any messages in any order give an answer that can be shown and serialised."""
    answered = talk("llama 3 8b on a 4090", *messages)
    assert answered.json()["understood"]
