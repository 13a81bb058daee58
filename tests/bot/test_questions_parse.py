"""What the parser reads of a question, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from bot.questions.parse import parse
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()


def fields(text: str) -> dict[str, Any]:
    return dict(parse(text, CATALOGUE).fields)


def card(name: str, count: int = 1) -> list[dict[str, Any]]:
    return [{"name": name, "count": count}]


@pytest.mark.parametrize(
    ("text", "intent", "expected"),
    [
        ("13B fine-tune QLoRA", "fit", {"params_b": 13, "method": "qlora", "task": "fine_tuning"}),
        (
            "llama 3 70b int4 on 2x4090, 8k ctx, 20 users",
            "capacity",
            {
                "model": "Llama-3-70B",
                "params_b": 70,
                "weights_format": "int4",
                "hardware": card("RTX 4090", 2),
                "context": 8192,
                "concurrency": 20,
                "task": "inference",
            },
        ),
        (
            "full finetune of a 7B on 8 A100 80",
            "fit",
            {"params_b": 7, "method": "full", "task": "fine_tuning", "hardware": card("A100-80GB", 8)},
        ),
        (
            "bge-large on cpu, 5 rps",
            "capacity",
            {"model": "bge-large", "cpu_only": True, "requests_per_s": 5, "task": "inference"},
        ),
        (
            "sdxl lora on 12 GB",
            "fit",
            {"model": "stable-diffusion-xl", "method": "lora", "gpu_mem_gb": 12, "task": "fine_tuning"},
        ),
        (
            "deepseek v3 on 8xH200",
            "fit",
            {"model": "DeepSeek-V3", "hardware": card("H200", 8), "task": "inference"},
        ),
        (
            "¿me cabe un 70B en 2x4090?",
            "fit",
            {"params_b": 70, "hardware": card("RTX 4090", 2), "task": "inference"},
        ),
        ("rent or buy for 40 h a week?", "cost", {"hours_per_week": 40}),
        (
            "can i qlora a 13b on one 3090 24g? seq around 2k, bs 1",
            "fit",
            {
                "params_b": 13,
                "method": "qlora",
                "task": "fine_tuning",
                "hardware": card("RTX 3090"),
                "gpu_mem_gb": 24,
                "context": 2048,
                "batch": 1,
            },
        ),
    ],
)
def test_common_questions_are_read_whole(text: str, intent: str, expected: dict[str, Any]) -> None:
    """The questions that the product is shown with give exactly these fields and this intent."""
    parsed = parse(text, CATALOGUE)
    assert dict(parsed.fields) == expected
    assert parsed.intent == intent
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("text", "model", "params_b", "active"),
    [
        ("llama3.1-8b-instruct", "Llama-3.1-8B", 8, None),
        ("meta-llama/Llama-3.1-8B-Instruct please", "Llama-3.1-8B", 8, None),
        ("405b fp8 llama3.1", "Llama-3.1-405B", 405, None),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen-3-30B-A3B", 30, 3),
        ("mixtral 8x22b", "Mixtral-8x22B", None, None),
        ("an 8x7b", "Mixtral-8x7B", None, None),
        ("the 671b R1", "DeepSeek-R1", 671, None),
        ("r1 distill 32b", "DeepSeek-R1-Distill-Qwen-32B", 32, None),
        ("starcoder 15.5b", "StarCoder", 15.5, None),
        ("yolov8x", "YOLO-v8x", None, None),
        ("whisper large v3 turbo", "whisper-large-v3-turbo", None, None),
        ("gpt2 124M", "gpt2", 0.124, None),
        ("Mistral-7B-v0.3", "Mistral-7B-v0.3", 7, None),
        ("mixtral-8x7b-instruct-v0.1", "Mixtral-8x7B", None, None),
        ("34b yi", "Yi-34B", 34, None),
        ("30b-a3b", None, 30, 3),
        ("un setenta B", None, 70, None),
        ("un modelo de 7 mil millones de parámetros", None, 7, None),
        ("a GLM-130B style model", None, 130, None),
        ("somelab/frobnicator-9b", "frobnicator-9b", 9, None),
    ],
)
def test_models_and_sizes(text: str, model: str | None, params_b: float | None, active: float | None) -> None:
    """Names, versions, sizes and mixture notations become one normalised name and sizes in billions."""
    got = fields(text)
    assert (got.get("model"), got.get("params_b"), got.get("active_params_b")) == (model, params_b, active)


@pytest.mark.parametrize(
    ("text", "hardware", "memory"),
    [
        ("7b on two 3090s", card("RTX 3090", 2), None),
        ("7b on 8 x V100 32g", card("V100-32GB", 8), None),
        ("7b on 4x A100 40G", card("A100-40GB", 4), None),
        ("7b on 8x80GB A100", card("A100-80GB", 8), None),
        ("7b on a 4060 Ti 8GB", card("RTX 4060 Ti 8GB"), 8),
        ("7b on a RTX 3060 12GB", card("RTX 3060"), 12),
        ("7b on 4090 48g", card("RTX 4090 48GB"), 48),
        ("7b on 96 nodes of 8xA100 40g", card("A100-40GB", 768), None),
        ("7b on H100 SXM", card("H100-SXM"), None),
        ("7b on A6000 x4", card("RTX A6000", 4), None),
        ("un 7b en una V100 de 16", card("V100-16GB"), None),
        ("7b on a mac studio m2 ultra 192", card("Mac Studio M2 Ultra 192GB"), None),
        ("7b on 2x xeon 6138", card("Xeon Gold 6138", 2), None),
        ("7b on p4d", card("A100-40GB", 8), None),
        ("7b on g5.12xlarge", card("A10G", 4), None),
        ("7b on colab", card("T4"), None),
        ("7b on a 24gb card", None, 24),
        ("portátil con una 4060 de 8GB para un 7b", card("RTX 4060 Laptop"), 8),
        ("4张A100 80G 7b", card("A100-80GB", 4), None),
    ],
)
def test_hardware_counts_and_memory(text: str, hardware: list[dict[str, Any]] | None, memory: int | None) -> None:
    """Counts, memory variants, Macs, CPUs and instances give the device's name and number."""
    got = fields(text)
    assert (got.get("hardware"), got.get("gpu_mem_gb")) == (hardware, memory)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("q4", "int4"),
        ("in 4-bit", "int4"),
        ("Q4_K_M", "gguf:Q4_K_M"),
        ("q5 k m", "gguf:Q5_K_M"),
        ("iq2_xs", "gguf:IQ2_XS"),
        ("Q8_0", "gguf:Q8_0"),
        ("gptq-int4", "gptq-4bit"),
        ("8bit gptq", "gptq-8bit"),
        ("awq", "awq"),
        ("exl2 4.65bpw", "exl2:4.65"),
        ("4.0 bpw exl2", "exl2:4.0"),
        ("fp8", "fp8"),
        ("mxfp4", "mxfp4"),
        ("half precision", "fp16"),
        ("a 8 bits", "int8"),
    ],
)
def test_number_formats(words: str, expected: str) -> None:
    """Quantisation as people write it becomes the workload's word."""
    assert fields(f"serve llama 3 8b {words}")["weights_format"] == expected


def test_four_bits_mean_qlora_when_fine_tuning() -> None:
    """LoRA on a 4-bit base is QLoRA; LoRA on an 8-bit base stays LoRA with that precision."""
    assert fields("lora on a 7b in 4bit")["method"] == "qlora"
    eight = fields("starcoder in 8bit + lora")
    assert (eight["method"], eight["precision"]) == ("lora", "int8")


def test_cache_format_is_not_the_weights() -> None:
    """A format beside "kv cache" describes the cache."""
    parsed = parse("qwen2.5 7b awq with fp8 kv cache", CATALOGUE)
    assert parsed.fields["weights_format"] == "awq"
    assert parsed.extra["kv_dtype"] == "fp8"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("7b at 28k ctx", "context", 28_000),
        ("7b, 128k", "context", 131_072),
        ("7b max_seq_length=18000", "context", 18_000),
        ("7b contexto de 32k", "context", 32_768),
        ("lora 7b bs4", "batch", 4),
        ("lora 7b lote de 12", "batch", 12),
        ("lora 7b r=256", "lora_rank", 256),
        ("lora sdxl dim16", "lora_rank", 16),
        ("7b under 200ms p95", "latency_ms", 200),
        ("7b for ~3M tokens/day", "tokens_per_day", 3_000_000),
        ("7b, 3 millones de tokens al día", "tokens_per_day", 3_000_000),
        ("7b at 120 requests per minute", "requests_per_s", 2),
        ("7b on 20 mil millones de tokens", "dataset_tokens", 20e9),
        ("yolov8 con 30.000 imágenes", "samples", 30_000),
        ("7b running 24/7", "hours_per_week", 168),
        ("7b 4h a day", "hours_per_week", 28),
        ("qlora 8b for a year", "months", 12),
        ("7b for 40 concurrent requests", "concurrency", 40),
        ("7b with adamw 8bit, lora", "optimizer", "adamw_8bit"),
    ],
)
def test_quantities(text: str, field: str, value: float | str) -> None:
    """Lengths, batches, rates, volumes and times are read with their units; 8k is 8192, 28k is 28000."""
    assert fields(text)[field] == value


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("7b under $2/h", {"amount": 2, "currency": "USD", "per": "hour"}),
        ("7b, budget 5k", {"amount": 5000, "currency": "USD", "per": "once"}),
        ("7b, presupuesto 3.000 €", {"amount": 3000, "currency": "EUR", "per": "once"}),
        ("7b máximo 20k €", {"amount": 20_000, "currency": "EUR", "per": "once"}),
        ("7b, 1500 euros al mes", {"amount": 1500, "currency": "EUR", "per": "month"}),
        ("7b for $1,250.50", {"amount": 1250.5, "currency": "USD", "per": "once"}),
    ],
)
def test_budgets(text: str, budget: dict[str, Any]) -> None:
    """Money carries amount, currency and period, with either decimal mark."""
    assert fields(text)["budget"] == budget


def test_price_of_electricity_is_no_budget() -> None:
    """A price per kWh is a price, not what one may spend."""
    parsed = parse("cost of a 4090 at 0,25 €/kWh", CATALOGUE)
    assert "budget" not in parsed.fields
    assert parsed.extra["kwh_price"] == 0.25


def test_registered_people_are_not_concurrent() -> None:
    """Employees of a company are asked about, not taken as sequences in flight."""
    parsed = parse("chatbot for 300 employees on llama 3 8b", CATALOGUE)
    assert "concurrency" not in parsed.fields
    assert parsed.extra["users"] == 300
    assert "concurrency" in parsed.ask


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("which gpu for a 13b?", "recommend"),
        ("how long to fine-tune llama 3 8b on 50k samples on an A100", "time"),
        ("4090 vs A100 40 for lora on an 8b", "compare"),
        ("qué es mejor, una 4090 o dos 3090 para un 34B", "compare"),
        ("how many users can an H100 serve with qwen3 32b", "capacity"),
        ("should I rent H100s or buy 4090s for a 7b", "cost"),
        ("why does a 7b take 16gb", "concept"),
        ("do I need nvlink for 2x3090", "concept"),
        ("benchmark llama 3 8b on lab-02", "benchmark"),
        ("hello", "unclear"),
        ("help", "help"),
        ("¿cuánto cuesta al mes servir un 8b en la nube?", "cost"),
        ("recomiéndame una gráfica para un 13B", "recommend"),
    ],
)
def test_intents(text: str, intent: str) -> None:
    """What is wanted decides the intent."""
    assert parse(text, CATALOGUE).intent == intent


@pytest.mark.parametrize(
    ("text", "domain"),
    [("sdxl on a T4", "diffusion"), ("bge-m3 on cpu", "encoder"), ("whisper small on a T4", "audio"),
     ("train yolo11m", "vision"), ("logistic regression on 1M rows", "classical"), ("llama 3 8b", "llm")],
)  # fmt: skip
def test_domains(text: str, domain: str) -> None:
    """The model's name says which family of laws applies."""
    assert parse(text, CATALOGUE).extra["domain"] == domain


def test_language_is_the_askers() -> None:
    """Spanish words give Spanish, English words English, whatever the names in between."""
    assert parse("¿cuánta memoria necesita llama 3 8b?", CATALOGUE).lang == "es"
    assert parse("how much memory does llama 3 8b need?", CATALOGUE).lang == "en"


def test_missing_fields_are_asked_or_assumed() -> None:
    """What decides the answer and was not said is asked, or assumed with the advice's own default."""
    parsed = parse("llama 3 70b on a V100", CATALOGUE)
    assert parsed.ask[0] == "weights_format"
    assert parsed.assumed["context"] == 8192
    assert parsed.assumed["task"] == "inference"


def test_a_question_for_hardware_is_not_answered_with_which_hardware() -> None:
    """Who asks which card to take is not asked which card they have."""
    assert "hardware" not in parse("what gpu for 50 rps of bge-large", CATALOGUE).ask


def test_spans_point_into_the_text() -> None:
    """Every span's words are the text between its ends, and name the field that they gave."""
    parsed = parse("¿Me cabe un 70B en 2x4090 con 8k de contexto?", CATALOGUE)
    assert {s.field for s in parsed.spans} >= {"params_b", "hardware", "context"}
    assert all(parsed.text[s.start : s.end].strip() == s.text for s in parsed.spans)


def test_json_has_the_promised_keys() -> None:
    """The machine-readable form carries intent, lang, fields, ask, assumed and problems."""
    assert set(parse("7b", CATALOGUE).to_json()) >= {"intent", "lang", "fields", "ask", "assumed", "problems"}
