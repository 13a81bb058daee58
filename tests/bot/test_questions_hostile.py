"""Questions that are garbage, attacks or absurd: always an answer with a problem, never an exception, never slow."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from bot.questions.followup import follow
from bot.questions.parse import parse
from bot.questions.text import MAX_CHARS
from bot.questions.workload import to_workload
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()

WORDS = (
    "llama 3 70b|8x7b|30b-a3b|0B|1e30B|-7b|q4_k_m|int4|fp8|2x4090|0x A100|99999999 H100|24gb card|"
    "A100 80|¿cabe|qlora|full ft|8k ctx|0 ctx|bs 0|r=64|20 users|5 rps|$-5/month|3.000 €|24/7|on cpu|"
    "no gpu|mac studio|m2 ultra 192|xeon 6138|p4d|<!channel>|<@U1|x>|'; DROP TABLE models; --|"
    "{{7*7}}|${HOME}|`id`|\u202e|\u200b|🚀|千|<script>|%s%n|\\x00|../../etc|benchmark on lab-01|vs|or|"
    "why|sdxl|1024px|whisper large|9999999999999k|1.2.3,4|50 mil millones de tokens|kv cache fp8"
).split("|")

MESSAGES = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
    st.text(max_size=80),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), max_size=9).map("".join),
)


FUZZED = 100_000 if os.environ.get("GPUFIT_SOAK") else 2000
SLOWEST_S = 0.75  # a guard against runaway patterns on a shared machine; the bench states the time itself
ASKED = [
    json.loads(line)["text"]
    for name in ("../accuracy/cases/questions.jsonl", "paraphrases.jsonl")
    for line in (Path(__file__).parent / name).read_text("utf-8").splitlines()
]


def fuzzed(rng: random.Random) -> str:
    """One message of one of six kinds: random characters, words of questions and attacks, a damaged question, two
    questions grafted, one piece repeated, absurd figures."""
    kind = rng.randrange(6)
    if kind == 0:
        return "".join(chr(rng.choice((rng.randrange(1, 128), rng.randrange(1, 0x3000), rng.randrange(0x110000))))
                       for _ in range(rng.randrange(80)))  # fmt: skip
    if kind == 1:
        return rng.choice(("", " ", ", ")).join(rng.choice(WORDS) for _ in range(rng.randrange(12)))
    if kind == 2:
        return damaged(rng, rng.choice(ASKED))
    if kind == 3:
        a, b = rng.choice(ASKED), rng.choice(ASKED)
        return a[: rng.randrange(len(a) + 1)] + b[rng.randrange(len(b) + 1) :]
    if kind == 4:
        piece = rng.choice((*WORDS, rng.choice(ASKED)[: rng.randrange(1, 9)]))
        return (piece + rng.choice(("", " "))) * rng.randrange(1, 60)
    figure = rng.choice(("0", "-1", "1e30", "9" * 30, "0.0000001", "1,2.3", "١٢٣", "½", "NaN", "1e999", "-0", "00007"))
    unit = rng.choice(
        ("B", "b model", " GB", "x A100", "k ctx", " users", " rps", "$", " €/h", " tok/s", " hours a week", "%",
         " ms", " epochs", " mil millones de tokens", " bs", " samples", "bpw")
    )  # fmt: skip
    return f"{rng.choice(('serve', 'train', 'lora', '¿cabe', 'bench', ''))} {figure}{unit} {rng.choice(WORDS)}"


def damaged(rng: random.Random, text: str) -> str:
    """A question with some characters dropped, doubled, swapped for others or moved."""
    chars = list(text)
    for _ in range(rng.randrange(1, 8)):
        i = rng.randrange(len(chars)) if chars else 0
        change = rng.randrange(4)
        if change == 0 and chars:
            del chars[i]
        elif change == 1 and chars:
            chars.insert(i, chars[i])
        elif change == 2:
            chars.insert(i, rng.choice("0123456789.,-/$€%xkbB<>&|`{}\u200b\u202e\n\x00ñ千🚀"))
        elif chars:
            chars.insert(rng.randrange(len(chars)), chars.pop(i))
    return "".join(chars)


def test_any_text_is_parsed() -> None:
    """Whatever is typed, parsing and making a workload return in bounded time, and the result is plain JSON."""
    rng = random.Random(20261201)
    slowest = 0.0
    for _ in range(FUZZED):
        text = fuzzed(rng)
        started = time.perf_counter()
        parsed = parse(text, CATALOGUE)
        slowest = max(slowest, time.perf_counter() - started)
        to_workload(parsed, CATALOGUE)
        json.dumps(parsed.to_json(), allow_nan=False)
        assert all(0 <= s.start <= s.end <= len(parsed.text) for s in parsed.spans), text
    assert slowest < SLOWEST_S


@seed(20261130)
@settings(max_examples=300, deadline=None, database=None)
@given(MESSAGES)
def test_any_text_is_explained(text: str) -> None:
    """Whatever is typed, explaining changes no field, and every beaten reading lies inside the text."""
    plain, explained = parse(text, CATALOGUE), parse(text, CATALOGUE, explain=True)
    assert (plain.fields, plain.extra, plain.intent) == (explained.fields, explained.extra, explained.intent)
    assert all(0 <= b.start <= b.end <= len(plain.text) for s in explained.spans for b in s.beat)
    json.dumps(explained.spans_json())


@seed(20261130)
@settings(max_examples=200, deadline=None, database=None)
@given(MESSAGES, MESSAGES)
def test_any_followup_is_merged(first: str, second: str) -> None:
    """Whatever follows whatever, merging returns a question that makes a workload or none."""
    merged = follow(parse(first, CATALOGUE), second, CATALOGUE).parsed
    to_workload(merged, CATALOGUE)
    json.dumps(merged.to_json())


@pytest.mark.parametrize(
    ("text", "problem", "field"),
    [
        ("a model of 0B on a 3090", "model_size_impossible", "params_b"),
        ("run a 1e30B model", "model_size_impossible", "params_b"),
        ("run a 1e999B model", "model_size_impossible", "params_b"),
        ("serve llama 70b, budget -$50/month", "budget_not_positive", "budget"),
        ("presupuesto -500€, quiero un 70b", "budget_not_positive", "budget"),
        ("llama-13b on 0x A100", "device_count_impossible", "hardware"),
        ("llama 3 8b with 999999999999k context", "context_impossible", "context"),
        ("lora on 7b with batch size 0", "batch_not_positive", "batch"),
    ],
)
def test_impossible_values_are_problems(text: str, problem: str, field: str) -> None:
    """A value that cannot be is named, asked again first, and makes the question unclear."""
    parsed = parse(text, CATALOGUE)
    assert [(p.id, p.field) for p in parsed.problems] == [(problem, field)]
    assert parsed.ask[0] == field
    assert parsed.intent == "unclear"


def test_impossible_values_do_not_reach_the_workload() -> None:
    """The workload leaves out what the parser called impossible."""
    workload = to_workload(parse("llama-13b on 0x A100", CATALOGUE), CATALOGUE)
    assert workload is not None
    assert workload.hardware == ()


def test_long_messages_are_cut_and_said_to_be() -> None:
    """Only the first part of a very long message is read, and the problem says so."""
    started = time.perf_counter()
    parsed = parse("llama 3 8b on a T4 " + "blah " * 20_000, CATALOGUE)
    assert time.perf_counter() - started < SLOWEST_S
    assert parsed.fields["model"] == "Llama-3-8B"
    assert len(parsed.text) <= MAX_CHARS
    assert [p.id for p in parsed.problems] == ["text_truncated"]


@pytest.mark.parametrize(
    "attack",
    [
        "<!channel> <@U0TEAM> <https://example.com|click>",
        "'; DROP TABLE models; --",
        "{{7*7}}",
        "\u202e\u200b",
        "$(reboot) &&",
    ],
)
def test_attacks_around_a_question_change_nothing(attack: str) -> None:
    """Markup, templates, SQL and shell text are only text: the question beside them is read as without them."""
    asked = "qlora 7b on 3060 12g"
    assert dict(parse(f"{attack} {asked}", CATALOGUE).fields) == dict(parse(asked, CATALOGUE).fields)


@pytest.mark.parametrize(
    "piece",
    [
        "4090 ",
        "llama 3 ",
        "1",
        "a-",
        "1,",
        "8 users ",
        "q4_",
        "2 gpus of ",
        "<@U",
        "foo-13b ",
        "24gb ",
        "$1",
        "x8 ",
        "千1",
    ],
)
def test_time_is_bounded(piece: str) -> None:
    """The worst repetitive text of full length takes well under a second."""
    text = (piece * MAX_CHARS)[:MAX_CHARS]
    started = time.perf_counter()
    parse(text, CATALOGUE)
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize(
    ("encoded", "plain"),
    [
        ("bge-large, 50 rps, p95 &lt; 200ms", "bge-large, 50 rps, p95 < 200ms"),
        ("llama 3 8b &amp; 8k ctx &gt; on a T4", "llama 3 8b & 8k ctx on a T4"),
        ("<@U0TEAM> <!here> <#C024|gpus> qlora 7b on a 3090", "qlora 7b on a 3090"),
        ("<https://example.com/x|llama 3 8b> on a T4", "llama 3 8b on a T4"),
        ("<https://example.com/70b> 7b on a T4", "7b on a T4"),
        ("<https://huggingface.co/Qwen/Qwen2.5-7B-Instruct> on a T4", "Qwen/Qwen2.5-7B-Instruct on a T4"),
        ("“llama 3 8b” on a ‘T4’ – 8k ctx", "'llama 3 8b' on a 'T4' - 8k ctx"),
        ("```\nllama 3 8b on a T4\n```", "llama 3 8b on a T4"),
        ("`llama 3 8b` :rocket: on a *T4* :flag-es:", "llama 3 8b on a T4"),
        ("lla\u200bma 3 8\u2060b on \u202ea T4\u202c", "llama 3 8b on a T4"),
        ("ｌｌａｍａ 3 ８ｂ on a T4", "llama 3 8b on a T4"),
        ("llama 3 ٨b on a T4", "llama 3 8b on a T4"),
        ("lora on a 7b, 30\u202f000 samples", "lora on a 7b, 30000 samples"),
    ],
)
def test_encodings_are_unwrapped(encoded: str, plain: str) -> None:
    """Slack's own encodings, code marks, typographic and invisible characters read as the plain text would."""
    assert dict(parse(encoded, CATALOGUE).fields) == dict(parse(plain, CATALOGUE).fields)
    assert parse(encoded, CATALOGUE).fields
