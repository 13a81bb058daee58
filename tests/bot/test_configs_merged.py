"""A config with words around it: one question, one workload; the words go over the config."""

from __future__ import annotations

import pytest

from bot.questions.parse import parse
from bot.questions.workload import to_workload
from rules.catalog.catalogue import Catalogue
from rules.workload import Given, Hardware, InferenceWorkload, TrainingWorkload

CATALOGUE = Catalogue.load()
QLORA = """base_model: NousResearch/Meta-Llama-3-8B
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_target_linear: true
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
gradient_checkpointing: true
flash_attention: true
deepspeed: zero2.json
"""


def test_a_training_config_is_a_workload() -> None:
    """Every setting of the config that decides memory reaches the workload as stated."""
    workload = to_workload(parse(f"will this fit on 2x 4090?\n```yaml\n{QLORA}```", CATALOGUE), CATALOGUE)
    assert isinstance(workload, TrainingWorkload)
    assert workload.hardware == (Hardware(name="RTX 4090", count=2),)
    assert workload.model.name == "Llama-3-8B"
    assert workload.framework == Given("axolotl")
    assert workload.method == Given("qlora")
    assert workload.compute_dtype == Given("bf16")
    assert workload.weights_dtype is None
    assert workload.optimizer == Given("adamw_8bit")
    assert (workload.lora_rank, workload.lora_targets) == (Given(32), Given("all_linear"))
    assert (workload.micro_batch, workload.grad_accum) == (Given(2), Given(4))
    assert (workload.seq_len, workload.packed) == (Given(4096), Given(True))
    assert (workload.checkpointing, workload.attention) == (Given("full"), Given("flash"))
    assert workload.sharding == Given("zero2")


def test_a_command_is_a_workload() -> None:
    """An engine's options reach the workload as stated, and parallelism counts the cards."""
    text = (
        "vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --max-model-len 32768 "
        "--gpu-memory-utilization 0.95 --kv-cache-dtype fp8 --enforce-eager --max-num-seqs 64\non A100 80GB"
    )
    workload = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert isinstance(workload, InferenceWorkload)
    assert workload.hardware == (Hardware(name="A100-80GB", count=4),)
    assert (workload.engine, workload.tp, workload.context) == (Given("vllm"), Given(4), Given(32768))
    assert (workload.gpu_memory_utilization, workload.cuda_graphs) == (Given(0.95), Given(False))
    assert (workload.kv_dtype, workload.max_num_seqs) == (Given("fp8"), Given(64))


def test_llama_cpp_options_reach_the_workload() -> None:
    """Layers on the card, experts on the host and both kinds of batch are stated."""
    text = "llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -ngl 99 --n-cpu-moe 20 -c 32768 -np 4 -ub 1024 -b 4096 on a 3060"
    workload = to_workload(parse(text, CATALOGUE), CATALOGUE)
    assert isinstance(workload, InferenceWorkload)
    assert (workload.gpu_layers, workload.experts_on_cpu) == (Given(99), Given(20))
    assert (workload.n_ubatch, workload.n_batch) == (Given(1024), Given(4096))
    assert (workload.context, workload.batch) == (Given(8192), Given(4))
    assert workload.weights_format == Given("gguf:Q4_K_M")


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("what if I use batch size 8?", "batch", 8),
        ("does it still fit with 16k context on a 3090?", "context", 16384),
        ("is my LoRA config ok on a 3090?", "method", "qlora"),
        ("I run this axolotl file with deepspeed on 4 A100s, ok?", "framework", "axolotl"),
        ("¿cabe con contexto de 8k en una 3090?", "context", 8192),
    ],
)
def test_words_go_over_the_config(words: str, field: str, value: object) -> None:
    """A value said in words beats the config's; a vaguer word for the same does not."""
    assert parse(f"{words}\n{QLORA}", CATALOGUE).fields[field] == value


def test_a_beaten_setting_is_explained() -> None:
    """The span of the words remembers what the config had said."""
    parsed = parse(f"what if I use batch size 8?\n{QLORA}", CATALOGUE)
    span = next(s for s in parsed.spans if s.field == "batch")
    assert span.value == 8
    assert [(b.value, parsed.text[b.start : b.end]) for b in span.beat] == [(2, "micro_batch_size: 2")]


def test_spans_point_into_the_text() -> None:
    """Each span's words stand where it says, for the words and for the config."""
    parsed = parse(f"will this fit on a 4090?\n{QLORA}", CATALOGUE)
    assert {"hardware", "optimizer", "context"} <= {s.field for s in parsed.spans}
    assert all(parsed.text[s.start : s.end].strip() == s.text for s in parsed.spans)


def test_intent_and_language_come_from_the_words() -> None:
    """A config alone asks whether it fits; words around it ask what they say, in their language."""
    assert parse(QLORA, CATALOGUE).intent == "fit"
    assert parse(f"¿cuánto tarda este entrenamiento?\n{QLORA}", CATALOGUE).lang == "es"
    assert parse(f"which gpu should I buy for this? budget $2000\n{QLORA}", CATALOGUE).intent == "recommend"


def test_a_memory_message_gives_the_card() -> None:
    """The card that the message describes is the device of the workload; the words say what ran on it."""
    text = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; "
        "20.10 GiB already allocated; 1.31 GiB free; 21.50 GiB reserved in total by PyTorch)\n"
        "this was a lora of llama 3 8b with batch 4"
    )
    parsed = parse(text, CATALOGUE)
    assert parsed.fields["gpu_mem_gb"] == 24
    assert (parsed.fields["method"], parsed.fields["batch"], parsed.fields["params_b"]) == ("lora", 4, 8)
    workload = to_workload(parsed, CATALOGUE)
    assert workload is not None
    assert workload.hardware[0].memory_gib == 24
