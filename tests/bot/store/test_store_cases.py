"""Reported figures become cases that the evaluator reads, with the workload that the person had asked about."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from bot.answering import answer
from bot.estimate import Estimator
from bot.questions.dialogue import Conversation
from bot.questions.parsed import Parsed
from bot.questions.workload import to_workload
from bot.store.cases import MEMORY_KEYS, cases_of
from bot.store.records import Asked, Feedback, Person, Reported
from rules.catalog.catalogue import Catalogue
from rules.evidence import workload_of
from rules.workload import Given
from scripts.transcripts import FOLDER, messages

CATALOGUE = Catalogue.load()
NOW = datetime(2026, 5, 4, tzinfo=UTC)
ANN = Person("T0WORKSPACE", "U0PERSON")


def asked(parsed: Parsed | None, text: str = "my words") -> Asked:
    """An answer of the trail."""
    return Asked(
        id="a1",
        who=ANN,
        channel="C0CHANNEL",
        at=NOW,
        text=text,
        answer="said",
        lang="en",
        rules="0.1.0",
        catalogue="2026-04-01",
        parsed=parsed,
    )


def reported(key: str, value: float = 21.3) -> Feedback:
    """A measured figure, in a person's own words."""
    return Feedback(answer_id="a1", who=ANN, at=NOW, reported=Reported(key=key, value=value, said="ask Bob, 21.3!"))


def parsed_of(text: str) -> Parsed:
    """What is understood of one question."""
    return answer(text, catalogue=CATALOGUE).parsed


def real_questions() -> list[Parsed]:
    """Everything understood in the stored conversations."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        conversation = Conversation()
        for message in messages(path.read_text("utf-8"))[1]:
            answered = answer(message, catalogue=CATALOGUE, conversation=conversation)
            conversation = answered.conversation
            found.append(answered.parsed)
    return found


def test_the_workload_of_a_case_is_the_one_asked_about() -> None:
    """For every question of the stored conversations that names one machine, the case is read back as the same
    model, machine and set-up."""
    checked = 0
    for parsed in real_questions():
        workload = to_workload(parsed, CATALOGUE)
        if workload is None:
            continue
        for case in cases_of(reported(MEMORY_KEYS[workload.kind]), asked(parsed), CATALOGUE):
            again = workload_of(json.loads(json.dumps(case)))
            assert (again.model, again.domain, again.kind) == (workload.model, workload.domain, workload.kind)
            machine, before = again.hardware[0], workload.hardware[0]
            assert (machine.name, machine.count) == (before.name, before.count)
            for name in workload.__slots__:
                given = getattr(workload, name)
                if isinstance(given, Given) and name != "software_month":
                    assert getattr(again, name).value == given.value, (name, parsed.text)
            checked += 1
    assert checked >= 15


def test_a_case_can_be_estimated() -> None:
    """The memory of a reported case is predicted from what the case says alone."""
    parsed = parsed_of("llama 3 8b lora, batch 2, 4096 tokens, gradient checkpointing, on one A100 80GB")
    (case,) = cases_of(reported("peak_gib_per_gpu"), asked(parsed), CATALOGUE)
    assert case["kind"] == "train_memory"
    assert case["measured"] == {"peak_gib_per_gpu": 21.3, "as_reported": "21.3"}
    assert (case["micro_batch"], case["seq_len"], case["gradient_checkpointing"]) == (2, 4096, True)
    assert Estimator().answer(case)["predicted"]["peak_gib_per_gpu"] > 10


@pytest.mark.parametrize(
    ("question", "key", "kind"),
    [
        ("llama 3 8b q4_k_m on a 4090 with llama.cpp", "total_gib", "infer_memory"),
        ("llama 3 8b q4_k_m on a 4090 with llama.cpp", "decode_tok_s", "infer_speed"),
        ("13B qlora on a 4090", "samples_per_s", "train_speed"),
    ],
)
def test_the_kind_follows_the_figure(question: str, key: str, kind: str) -> None:
    """What was measured and what was asked about decide the kind of the case."""
    (case,) = cases_of(reported(key), asked(parsed_of(question)), CATALOGUE)
    assert case["kind"] == kind


def test_an_outcome_is_a_verdict() -> None:
    """ "It ran out of memory" is a verdict with the memory of the card; beside a figure it is a second case."""
    parsed = parsed_of("13B qlora on two 3090")
    told = Feedback(answer_id="a1", who=ANN, at=NOW, outcome="oom")
    (case,) = cases_of(told, asked(parsed), CATALOGUE)
    assert (case["kind"], case["task"], case["outcome"]) == ("verdict", "training", "oom")
    assert (case["n_gpus"], case["gpu_mem_gib"]) == (2, 24)
    both = Feedback(answer_id="a1", who=ANN, at=NOW, outcome="fits", reported=reported("peak_gib_per_gpu").reported)
    first, second = cases_of(both, asked(parsed), CATALOGUE)
    assert first["id"] != second["id"]


@pytest.mark.parametrize(
    ("parsed", "key"),
    [
        (None, "peak_gib_per_gpu"),
        ("hello", "peak_gib_per_gpu"),
        ("13B qlora", "peak_gib_per_gpu"),
        ("13B qlora on a 4090", "total_gib"),
        ("13B qlora on a 4090", "mood"),
    ],
)
def test_what_makes_no_case_is_left_out(parsed: str | None, key: str) -> None:
    """Without a workload, without a machine, or with a figure of another kind there is no case."""
    assert list(cases_of(reported(key), asked(parsed_of(parsed) if parsed else None), CATALOGUE)) == []


def test_a_case_says_nothing_of_the_person() -> None:
    """Neither ids nor anybody's words are in a case."""
    (case,) = cases_of(reported("peak_gib_per_gpu"), asked(parsed_of("13B qlora on a 4090")), CATALOGUE)
    text = json.dumps(case)
    assert not any(private in text for private in ("U0PERSON", "T0WORKSPACE", "C0CHANNEL", "Bob", "my words", "said"))
