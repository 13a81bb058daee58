"""How contradicting and overlapping readings are settled, what is compared, and that a language is a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.cli import main
from bot.questions.parse import parse
from bot.questions.parsed import Span
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()


def explained(text: str) -> dict[str, Span]:
    return {span.field: span for span in parse(text, CATALOGUE, explain=True).spans}


def test_the_surer_reading_wins() -> None:
    """Sequences at once are surer than a number of people; the span says what it beat and why."""
    span = explained("llama 3 8b for 20 users, 5 concurrent requests")["concurrency"]
    assert (span.value, span.text) == (5, "5 concurrent requests")
    assert [(b.value, b.why) for b in span.beat] == [(20, "surer")]


def test_of_equally_sure_readings_the_first_wins() -> None:
    """A second batch size does not replace the first."""
    span = explained("lora on a 7b, bs 2, later maybe bs 8")["batch"]
    assert span.value == 2
    assert [(b.value, b.why) for b in span.beat] == [(8, "first")]


@pytest.mark.parametrize(
    ("text", "value"),
    [("lora on a 7b, bs 2, sorry, I mean bs 8", 8), ("lora de un 7b, lote de 2, digo lote de 8", 8)],
)
def test_a_correction_wins(text: str, value: int) -> None:
    """A value after a word of correction replaces the one before it."""
    span = explained(text)["batch"]
    assert span.value == value
    assert [b.why for b in span.beat] == ["corrected"]


def test_overlaps_go_to_the_particular_reading() -> None:
    """Tokens a day are not a data set; the rate keeps the words and remembers what it overlapped."""
    parsed = parse("3M tokens per day through a 7b", CATALOGUE, explain=True)
    assert "dataset_tokens" not in parsed.fields
    rate = next(s for s in parsed.spans if s.field == "tokens_per_day")
    assert ("dataset_tokens", "overlap") in {(b.field, b.why) for b in rate.beat}


def test_every_stated_field_is_explained() -> None:
    """Each stated field has a span, or follows from fields that have one."""
    parsed = parse("qlora of llama 3 8b on two 3090s, seq 2k, bs 4, r=16, 10k samples", CATALOGUE, explain=True)
    assert set(parsed.fields) - {s.field for s in parsed.spans} <= {"task", "dataset_tokens"}
    assert all(0 < s.confidence <= 1 for s in parsed.spans)


def test_the_command_prints_the_reading(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpufit parse --explain` prints one row a span with words, field, value and confidence."""
    assert main(["parse", "--explain", "7b lora, bs 2, I mean bs 8"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("bs 8"))
    assert row.split()[:5] == ["bs", "8", "batch", "8", "0.90"]
    assert '"bs 2"' in row


def test_the_command_gives_the_reading_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the spans are data: field, value, confidence, place and what they beat."""
    assert main(["parse", "--explain", "--json", "7b lora, bs 2, I mean bs 8"]) == 0
    told = json.loads(capsys.readouterr().out)
    batch = next(s for s in told["spans"] if s["field"] == "batch")
    assert told["text"][batch["start"] : batch["end"]] == "bs 8"
    assert (batch["value"], batch["beat"][0]["value"], batch["beat"][0]["why"]) == (8, 2, "corrected")


def compare(text: str) -> Any:
    parsed = parse(text, CATALOGUE)
    assert parsed.intent == "compare"
    return parsed.extra["compare"]


def device(name: str, count: int = 1) -> dict[str, Any]:
    return {"hardware": [{"name": name, "count": count}]}


def test_compared_devices_are_kept() -> None:
    """Each device of a comparison is an alternative with its count, also twice the same device."""
    assert compare("4090 vs 2x3090 for a 13b lora") == [device("RTX 4090"), device("RTX 3090", 2)]
    assert compare("¿L40S o A100 de 40 para un 13b?") == [device("L40S"), device("A100-40GB")]
    assert compare("one 4090 vs two 4090s for a 30b q4") == [device("RTX 4090"), device("RTX 4090", 2)]


def test_a_count_apart_is_every_devices() -> None:
    """ "8x" that stands beside no device counts each of them."""
    assert compare("gaudi2 or a100 80 for 8x lora on llama3.1 8b") == [device("Gaudi2", 8), device("A100-80GB", 8)]


def test_compared_models_and_formats_are_kept() -> None:
    """Models and formats of a comparison are alternatives too."""
    assert compare("llama 3.1 8b vs mistral 7b on a 4090") == [
        {"model": "Llama-3.1-8B", "params_b": 8},
        {"model": "Mistral-7B", "params_b": 7},
    ]
    assert compare("which is better for a 14b on a 4090, awq or fp8?") == [
        {"weights_format": "awq"},
        {"weights_format": "fp8"},
    ]


FRENCH = """
decimal_comma = true
marks = "àâçèêëîïôûù"
stopwords = ["le", "les", "des", "est", "dans", "avec", "pour", "sur", "je", "il", "combien", "une", "deux"]
[numbers]
deux = 2
[magnitudes]
milliards = 1e9
[intents]
fit = ["tient", "suffit"]
[tasks]
inference = ["servir", "faire tourner"]
[words]
context = ["de contexte", "contexte de"]
people = ["utilisateurs"]
concurrent = ["en meme temps"]
per = ["par"]
month = ["mois"]
budget_noun = ["budget"]
"""
ASK_IN_FRENCH = """
import sys, json
from pathlib import Path
from bot.questions import lexicon
from bot.questions.parse import parse
from rules.catalog.catalogue import Catalogue
text, catalogue = sys.argv[2], Catalogue.load()
before = parse(text, catalogue)
lexicon.use(Path(sys.argv[1]))
after = parse(text, catalogue)
print(json.dumps([before.lang, dict(before.fields), after.lang, dict(after.fields)]))
"""


def test_a_third_language_is_a_file(tmp_path: Path) -> None:
    """A file of French words, and no line of code, makes French questions understood."""
    (tmp_path / "fr.toml").write_text(FRENCH, "utf-8")
    text = "servir llama 3 8b sur deux 4090, 8k de contexte, 20 utilisateurs en même temps, budget 1.500,50 € par mois"
    command = [sys.executable, "-c", ASK_IN_FRENCH, str(tmp_path / "fr.toml"), text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lang, fields, lang_after, fields_after = json.loads(done.stdout)
    assert lang != "fr"
    assert "concurrency" not in fields
    assert lang_after == "fr"
    assert fields_after == {
        "model": "Llama-3-8B",
        "params_b": 8,
        "hardware": [{"name": "RTX 4090", "count": 2}],
        "context": 8192,
        "concurrency": 20,
        "budget": {"amount": 1500.5, "currency": "EUR", "per": "month"},
        "task": "inference",
    }
