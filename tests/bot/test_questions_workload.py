"""A parsed question as a workload, and follow-ups."""

from __future__ import annotations

import pytest

from bot.questions.followup import follow
from bot.questions.parse import parse
from bot.questions.parsed import Parsed
from bot.questions.workload import to_workload
from rules.catalog.catalogue import Catalogue
from rules.workload import Given, Hardware, InferenceWorkload, Money, TrainingWorkload

CATALOGUE = Catalogue.load()


def workload(text: str) -> TrainingWorkload | InferenceWorkload:
    made = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert made is not None
    return made


def talk(*messages: str) -> Parsed:
    parsed = parse(messages[0], CATALOGUE)
    for message in messages[1:]:
        parsed = follow(parsed, message, CATALOGUE).parsed
    return parsed


def test_training_workload_says_only_what_was_said() -> None:
    """Stated settings of a training question are stated; what was not said stays None."""
    made = workload(
        "axolotl qlora llama-3-70b zero3 8x A6000 seq 8192 mbs 1 ga 8, no gradient checkpointing, paged adamw 8bit"
    )
    assert isinstance(made, TrainingWorkload)
    assert made.method == Given("qlora")
    assert made.framework == Given("axolotl")
    assert made.sharding == Given("zero3")
    assert made.hardware == (Hardware(name="RTX A6000", count=8),)
    assert (made.seq_len, made.micro_batch, made.grad_accum) == (Given(8192), Given(1), Given(8))
    assert made.optimizer == Given("paged_adamw_8bit")
    assert made.checkpointing == Given("none")
    assert made.lora_rank is None
    assert made.packed is None


def test_inference_workload_says_only_what_was_said() -> None:
    """Stated settings of a serving question are stated; people are traffic, not sequences in flight."""
    made = workload("llama 3 70b awq in vllm on 2x4090, 8k ctx, 20 users, kv cache fp8")
    assert isinstance(made, InferenceWorkload)
    assert made.engine == Given("vllm")
    assert made.weights_format == Given("awq")
    assert made.kv_dtype == Given("fp8")
    assert made.context == Given(8192)
    assert made.traffic.users == 20
    assert made.concurrency is None
    assert workload("llama 3 8b, 20 concurrent requests").traffic.concurrency == 20


def test_large_batches_on_several_cards_are_global() -> None:
    """A batch of hundreds on several cards is all cards' batch, unless the text calls it micro or per card."""
    whole = workload("train a 7B, batch 512, seq 4096, 32 H100")
    assert isinstance(whole, TrainingWorkload)
    assert (whole.global_batch, whole.micro_batch) == (Given(512), None)
    each = workload("train a 7B, batch 64 per gpu on 4 H100")
    assert isinstance(each, TrainingWorkload)
    assert (each.global_batch, each.micro_batch) == (None, Given(64))


def test_pretraining_is_a_method_of_training() -> None:
    """A question about pretraining becomes a training workload with that method and its tokens."""
    made = workload("pretrain a 1B on 20B tokens")
    assert isinstance(made, TrainingWorkload)
    assert made.method == Given("pretrain")
    assert made.dataset_tokens == Given(20_000_000_000)


def test_memory_alone_is_a_device() -> None:
    """Cards known only by their memory are devices of that memory."""
    made = workload("R1 671b bf16 across 16 cards of 90GB")
    assert made.hardware == (Hardware(name="90 GB GPU", count=16, memory_gib=90),)


def test_unknown_card_is_taken_by_its_memory_and_said_so() -> None:
    """A card that the catalogue does not hold counts by its memory, and a problem says that."""
    parsed = parse("llama 3 8b on a 48gb quadro rtx 9999", CATALOGUE)
    made = to_workload(parsed, CATALOGUE)
    assert made is not None
    assert made.hardware == (Hardware(name="48 GB GPU", count=1, memory_gib=48),)
    assert [p.id for p in parsed.problems] == ["unknown_device_memory_used"]


def test_unknown_cpu_is_any_cpu_and_said_so() -> None:
    """A CPU that the catalogue does not hold counts as "on a CPU", and a problem says that."""
    parsed = parse("i5-1234 + 16gb ram, llama 3 8b q4?", CATALOGUE)
    made = to_workload(parsed, CATALOGUE)
    assert made is not None
    assert made.hardware == ()
    assert made.constraints.cpu_only
    assert [p.id for p in parsed.problems] == ["unknown_cpu"]


def test_limits_become_constraints() -> None:
    """Budget, place and hours a week travel with the workload."""
    made = workload("70b awq under $4/hr in aws, 40 hours a week")
    assert made.constraints.budget == Money(amount="4", currency="USD", per="hour")
    assert made.constraints.where == "cloud"
    assert made.traffic.hours_per_week == 40


@pytest.mark.parametrize("text", ["hello", "help", "which specs do you advise"])
def test_nothing_to_size_gives_no_workload(text: str) -> None:
    """Where neither a model, a size nor a task was understood there is no workload."""
    assert to_workload(parse(text, CATALOGUE), CATALOGUE) is None


def test_followups_replace_what_they_name() -> None:
    """Format, count, length, card and users of a follow-up replace those before; the rest stays."""
    parsed = talk(
        "llama 3 70b int4 on 2x4090, 8k ctx, 20 users",
        "and in 8-bit?",
        "with 32k context",
        "what about a 3090",
        "on 4 of them",
    )
    assert parsed.fields["model"] == "Llama-3-70B"
    assert parsed.fields["weights_format"] == "int8"
    assert parsed.fields["context"] == 32_768
    assert parsed.fields["hardware"] == [{"name": "RTX 3090", "count": 4}]
    assert parsed.fields["concurrency"] == 20
    assert parsed.intent == "capacity"


def test_followups_of_training_stay_training() -> None:
    """A format said after a training question is the run's precision; another model keeps the method."""
    parsed = talk("13B fine-tune QLoRA", "on a 3090", "what about llama 3 8b", "in bf16 lora")
    assert parsed.fields["task"] == "fine_tuning"
    assert parsed.fields["model"] == "Llama-3-8B"
    assert (parsed.fields["method"], parsed.fields["precision"]) == ("lora", "bf16")


def test_spanish_followups() -> None:
    """Follow-ups work in Spanish."""
    parsed = talk("¿me cabe un 70B en 2x4090?", "¿y en 8 bits?", "¿y en dos 3090?", "con 4")
    assert parsed.fields["weights_format"] == "int8"
    assert parsed.fields["hardware"] == [{"name": "RTX 3090", "count": 4}]


def test_and_keeps_the_conversation() -> None:
    """A message that begins with "what about" stays a follow-up even with model and hardware in it."""
    parsed = talk("13B fine-tune QLoRA", "what about llama 3 8b on a 3090?")
    assert (parsed.fields["method"], parsed.fields["model"]) == ("qlora", "Llama-3-8B")


def test_a_whole_question_starts_afresh() -> None:
    """A message that names a model and hardware is a new question and inherits nothing."""
    parsed = talk("llama 3 70b int4 on 2x4090, 8k ctx", "sdxl lora on 12 GB")
    assert "context" not in parsed.fields
    assert parsed.fields["model"] == "stable-diffusion-xl"


def test_a_number_of_processes_without_a_card_is_the_number_of_cards() -> None:
    """A pasted launch command says how many cards there are, not of which kind."""
    told = "torchrun --nproc_per_node=8 train.py --model_name_or_path meta-llama/Llama-3.1-8B --bf16"
    workload = to_workload(parse(told, CATALOGUE), CATALOGUE)
    assert workload is not None
    assert (workload.hardware, workload.constraints.devices) == ((), 8)
    named = to_workload(parse(f"{told} on A100", CATALOGUE), CATALOGUE)
    assert named is not None
    assert named.constraints.devices is None
