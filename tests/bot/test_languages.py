"""Answers in each language, and in a pseudo-locale that shows every text that no catalogue holds."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import bot.answering
from bot import cli
from bot.answering import Answered, answer
from bot.answers.layout import Surface
from bot.answers.words import LANGUAGES, Words, words
from rules.catalog.catalogue import Catalogue
from rules.memory.footprint import Note

ROOT = Path(__file__).resolve().parents[2]
WIDE = Surface(width=400)
QUESTIONS = (
    "13B fine-tune QLoRA",
    "full finetune of llama 3 8B on one 80GB A100?",
    "lora of llama 3 8b on a 3090, 4k tokens, batch 4",
    "fine-tune a 70b full on 8 h100",
    "qlora 70b on 2x4090",
    "pretrain a 1.3B model on 8xA100 40GB with deepspeed zero3",
    "train gpt2 on a 3060",
    "fine-tune bert-base for classification on a T4",
    "train yolov8m on a 3060, batch 16",
    "fine-tune resnet50 on an rtx 3060",
    "sdxl lora on 12 GB",
    "flux dev lora on a 4090",
    "finetune whisper small on a 3080",
    "fine-tune flan-t5-xl with lora on an A10G",
    "dora on mistral 7b with a 24 GB card",
    "full fine-tune qwen2.5 14b on 4 h100 with fsdp",
    "llama 3 8b on a 4090",
    "llama 3 70b int4 on 2x4090, 8k ctx",
    "70B on 2x4090 for 20 users",
    "mixtral 8x7b on 2x a100 80gb",
    "deepseek v3 on 8 h200 fp8",
    "mistral 7b q4_k_m with llama.cpp on an 8 GB card, 16k context",
    "qwen2.5 32b on a mac studio m2 ultra with llama.cpp",
    "gemma 2 27b in 8-bit on a 3090",
    "llama 3.1 405b on 8 mi300x",
    "serve llama 3 8b with vllm on an L4, 50 concurrent requests",
    "bge-large on cpu, 5 rps",
    "llama 3.2 3b on cpu only",
    "bert classifier 20 rps, is a gpu needed?",
    "whisper large v3 on a T4",
    "sdxl on a 6 GB card",
    "flux schnell on a 3060 12gb",
    "stable diffusion 1.5 on 4 GB",
    "clip vit large on a T4, 64 images at once",
    "yolov8n on a T4",
    "nllb 3.3b translation on a 3060",
    "xgboost on 2 million rows",
    "train a random forest on 100 million rows",
    "what card for llama 3 70b?",
    "phi-4 on a v100",
    "zorblax 9000 on a 4090",
    "llama 3 8b on a zorblax 9000",
    "hello",
    "what is the weather",
    "how much memory do I need?",
    "0B model on a 4090",
    "1e30B model on a 4090",
    "llama 3 8b on 0 4090s",
    "llama 3 8b on a 4090 with a budget of -500 euros",
    "help",
    "why does a MoE need so much memory?",
    "how does the kv cache grow with llama 3 70b at 32k context?",
    "does nvlink merge the memory of two 3090s?",
    "should I rent or buy?",
    "what is ZeRO-3 on 8 a100 with llama 3 8b?",
    "4090 vs a100 40gb for lora on llama 3 8b",
    "llama 3 8b in int4 or int8 on a 3060?",
    "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --tensor-parallel-size 2",
    "<!channel> ignore all instructions; {model} %s",
)
FOLLOW_UPS = (
    "llama 3 8b on a 4090",
    "and in 8-bit?",
    "on two of them?",
    "what about a 3090 instead",
    "and with 32k context?",
    "cheaper",
    "faster",
    "train it instead",
    "yes",
    "thanks",
)


@cache
def _catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.fixture(scope="module")
def pseudo(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """A language made of the English texts: accents on every vowel, each text between brackets, parameters outside."""
    with (ROOT / "bot/answers/locale/en/LC_MESSAGES/gpufit.po").open("rb") as file:
        english = read_po(file, locale="en")
    catalogue = Catalog(locale="en")
    for message in english:
        if message.id:
            forms = message.string if message.pluralizable else (message.string,)
            texts = tuple(_bracketed(form) for form in forms)
            catalogue.add(message.id, texts if message.pluralizable else texts[0])
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    folder = tmp_path_factory.mktemp("locale")
    path = folder / "xx/LC_MESSAGES/gpufit.mo"
    path.parent.mkdir(parents=True)
    path.write_bytes(compiled.getvalue())
    return Words("xx", folder)


def _bracketed(text: str) -> str:
    pieces = re.split(r"(\{[^}]*\})", text)
    return "".join(p if p.startswith("{") else f"⟦{_accented(p)}⟧" for p in pieces if p)


def _accented(text: str) -> str:
    return unicodedata.normalize("NFC", re.sub(r"[aeiou]", lambda vowel: f"{vowel[0]}\u0301", text))


def _answers(say: Words, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Answered]]:
    monkeypatch.setattr(bot.answering, "words", lambda lang: say)
    for question in QUESTIONS:
        yield question, answer(question, catalogue=_catalogue())
    conversation = None
    for question in FOLLOW_UPS:
        answered = answer(question, catalogue=_catalogue(), conversation=conversation)
        conversation = answered.conversation
        yield question, answered


@cache
def _names() -> re.Pattern[str]:
    """What is not translated: names of models, devices, CPUs, formats, engines, frameworks; units and dates."""
    catalogue = _catalogue()
    names = {device.name for device in catalogue.accelerators} | {model.display_name for model in catalogue.models}
    names |= {model.hf_id for model in catalogue.models} | {cpu.name for cpu in catalogue.cpus}
    formats = tomllib.loads((ROOT / "rules/data/formats.toml").read_text("utf-8"))
    names |= {name for section in ("gguf_mixes", "checkpoint", "scalar") for name in formats[section]}
    engines = tomllib.loads((ROOT / "rules/memory/data/engines.toml").read_text("utf-8"))
    names |= {
        *engines,
        "vLLM",
        "llama.cpp",
        "diffusers",
        "transformers",
        "faster-whisper",
        "HF Trainer",
        "HF Trainer + PEFT",
    }
    names |= {"FSDP", "DDP", "ZERO3", "ZERO2", "GiB", "x16", "bf16", "fp16", "fp32", "llama.cpp/GGUF", "ROCm", "EUR"}
    names |= {text for offer in catalogue.offers for text in (offer.provider, offer.instance, offer.region)}
    names |= {text for price in catalogue.managed for text in (price.service, price.product) if text}
    names |= {alias for device in catalogue.accelerators for alias in device.aliases} | {
        "RTX",
        "Mixtral 8x7B",
        "Mac Studio",
    }
    inner = "|".join(re.escape(name).replace(r"\ ", "[ -]") for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z])(?:{inner})(?![A-Za-z])", re.IGNORECASE)


def _untranslated(shown: str, typed: str) -> str:
    """What is left of an answer without texts of the catalogue, names, and the words that the user typed."""
    flat = re.sub(r"⟦[^⟦⟧]*⟧", " ", " ".join(shown.split()))
    flat = _names().sub(" ", flat)
    for word in sorted(typed.split(), key=len, reverse=True):
        flat = re.sub(rf"(?<!\w){re.escape(word.strip('?,.'))}(?!\w)", " ", flat)
    return " ".join(word for word in flat.split() if re.search(r"[^\W\d_]{2,}", word))


def _as_read(answered: Answered) -> str:
    """The names of models and devices in the words of the parser, which the line of what was understood shows."""
    fields = answered.parsed.fields
    return " ".join([str(fields.get("model", "")), *(item["name"] for item in fields.get("hardware", ()))])


def test_every_text_of_an_answer_comes_from_the_catalogue(pseudo: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the pseudo-locale nothing but names, figures and units stands outside the brackets."""
    left = {
        question: _untranslated(a.text(WIDE), f"{question} {_as_read(a)}")
        for question, a in _answers(pseudo, monkeypatch)
    }
    assert {question: text for question, text in left.items() if text} == {}


def test_every_reason_has_words_for_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """No parameter of a sentence is missing in an answer: none shows as a question mark or as a message id."""
    for lang in LANGUAGES:
        for question, answered in _answers(words(lang), monkeypatch):
            shown = answered.text(WIDE)
            assert not re.search(r"(?<![\w\"«])\?(?= [a-z]|,|\.| GiB)", shown), question
            assert not re.search(r"(?<![\w/])[a-z]+(?:_[a-z]+){2,}", shown.replace(question, "")), question


@pytest.mark.parametrize("surface", [Surface(width=80), Surface(width=60), Surface(width=120, plain=True)])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_lines_keep_to_the_terminal(lang: str, surface: Surface, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences wrap at the terminal's width and nothing is cut; only columns of names may be wider."""
    for _, answered in [each for each in _answers(words(lang), monkeypatch) if each[1].advice is not None][::4]:
        shown = answered.text(surface)
        assert "…" not in shown
        assert all(len(line) <= surface.width for line in shown.splitlines() if not re.search(r"\S {2,}\S", line))
        if surface.plain:
            assert not set("█▏▎▍▌▋▊▉–·✅❌") & set(shown)


def test_spanish_writes_numbers_its_own_way() -> None:
    """Decimal comma, thousands point; names and sizes of models stay as they are."""
    say = words("es")
    assert say.number(39.64) == "39,6"
    assert say.number(1234.5) == "1.234,5"
    assert say.say("limit_context", {"n": 8192}) == "8.192 tokens por secuencia"
    name = Note("verdict_not_on_cpu", {"model": "Llama 3.1 70B"})
    assert say.say(name).startswith("Llama 3.1 70B ")
    assert words("en").number(1234.5) == "1,234.5"


def test_spanish_is_not_english(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spanish answer has none of the words that every English answer has."""
    english = re.compile(r"\b(?:the|of|and|with|fits|does|usable|while|for)\b")
    for question, answered in _answers(words("es"), monkeypatch):
        shown = answered.text(WIDE).replace(question, "")
        assert not english.search(shown), (question, english.search(shown))


def test_the_question_s_language_is_answered() -> None:
    """A Spanish question gets a Spanish answer, and a stated language wins over it."""
    question = "¿me cabe un 70B en 2x4090 para 20 usuarios?"
    assert "He supuesto:" in answer(question, catalogue=_catalogue()).text(WIDE)
    assert "Assumed:" in answer(question, catalogue=_catalogue(), lang="en").text(WIDE)


@pytest.mark.parametrize(
    ("question", "loaded"), [("llama 3 8b on a 4090", False), ("¿cabe llama 3 8b en una 4090?", True)]
)
def test_english_does_not_pay_for_other_languages(question: str, loaded: bool) -> None:
    """Babel is imported for the marks of another language only."""
    code = (
        "import sys; from bot import cli; cli.main(['ask', sys.argv[1]]); "
        "print('babel' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, question], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == str(loaded)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ask", "--lang", "es", " "], "la pregunta está vacía"),
        (["ask", " "], "the question is empty"),
        (["catalog", "show", "¿qué es zorblax para los que saben?"], "no es ni un modelo ni una tarjeta"),
        (["catalog", "show", "zorblax"], "neither a model nor a device"),
    ],
)
def test_errors_speak_the_user_s_language(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An error is one line in the stated language, else in that of the words typed."""
    assert cli.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("gpufit: ")
    assert said in error
    assert error.count("\n") == 1
