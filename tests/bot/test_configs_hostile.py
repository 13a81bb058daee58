"""Configs that are cut, mixed up or meant to do harm: never an exception, never long, never a wrong kind of value."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.questions.configs import read_config
from bot.questions.parse import parse
from bot.questions.workload import to_workload
from rules.catalog.catalogue import Catalogue

CATALOGUE = Catalogue.load()
TEXTS = tuple(
    case["text"]
    for path in sorted((Path(__file__).with_name("data") / "configs").glob("*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
)
ODD_VALUES = ("1e999", "-1", "nan", "0x10", "1_000", "[1]", "{}", "!!python/object:os.system")
LONGEST_S = 10.0  # a bound against blow-up on a busy machine, not an aim


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TEXTS), st.data())
def test_a_cut_config_never_fails(text: str, data: st.DataObject) -> None:
    """Any part of a config is read as far as it goes."""
    start = data.draw(st.integers(0, len(text) // 2))
    end = data.draw(st.integers(start, len(text)))
    to_workload(parse(text[start:end], CATALOGUE), CATALOGUE)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(TEXTS), st.lists(st.tuples(st.integers(0, 2000), st.text(max_size=4)), max_size=6))
def test_a_changed_config_never_fails(text: str, changes: list[tuple[int, str]]) -> None:
    """Characters put anywhere into a config leave it readable or not, but never break the reader."""
    for at, put in changes:
        text = text[: at % len(text)] + put + text[at % len(text) + len(put) :]
    to_workload(parse(text, CATALOGUE), CATALOGUE)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=4), st.integers(0, 10**6))
def test_configs_stuck_together_never_fail(texts: list[str], cut: int) -> None:
    """Several configs in one message, one of them cut, are read together."""
    texts[0] = texts[0][: cut % len(texts[0])]
    to_workload(parse("\n".join(texts), CATALOGUE), CATALOGUE)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["micro_batch_size: {}\nbase_model: x/y-7b\n", "vllm serve a/b-7b --max-model-len {}",
                     "--per_device_train_batch_size {}", "SFTConfig(per_device_train_batch_size={})",
                     '{{"zero_optimization": {{"stage": {}}}, "train_batch_size": 4}}']),
    st.one_of(st.integers(), st.floats(), st.text(max_size=12), st.sampled_from(ODD_VALUES)),
)  # fmt: skip
def test_any_value_of_a_known_key(frame: str, value: object) -> None:
    """A value that a key cannot have is left out: counts and lengths are whole numbers of at least one."""
    read = read_config(frame.format(value), CATALOGUE)
    for name in ("batch", "context"):
        kept = None if read is None else read.fields.get(name)
        assert kept is None or (isinstance(kept, int) and 0 <= kept <= 10**9)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nbf16: &c [*b,*b,*b,*b]\n" * 200,
        "bf16: " + "[" * 90_000,
        "bf16: true\n" + "- " * 45_000,
        "".join(" " * i + "bf16:\n" for i in range(400)),
        '{"zero_optimization": ' * 4000,
        "vllm serve x " * 8000,
        "vllm serve a/b --tp 2 " * 4000,
        "train.py --foo 1 " * 6000,
        "--gradient_checkpointing x " * 3500,
        "SFTConfig(a=" + "(" * 80_000,
        "SFTConfig(bf16=True)\n" * 4500,
        "LoraConfig(r=" + "-" * 80_000 + "1)",
        "LoraConfig(r=" + "1+" * 40_000 + "1)",
        "FROM a:b\nPARAMETER num_ctx 5\n" * 3500,
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity " * 1200,
        "llama-" * 16_000,
        "a/" * 50_000 + "llama-server -c 5",
        "OLLAMA_NUM_PARALLEL=4 " * 4500,
        "\\\n" * 40_000 + "vllm serve a/b --tp 2",
    ],
    ids=lambda text: text[:24],
)
def test_no_text_takes_long(text: str) -> None:
    """100 kB of what looks like a config is read in bounded time."""
    begun = time.perf_counter()
    read_config(text, CATALOGUE)
    assert time.perf_counter() - begun < LONGEST_S


def test_aliases_are_refused_and_said() -> None:
    """Lines with YAML aliases are left out with a problem, the others are read."""
    read = read_config(
        "defaults: &d\n  lora_r: 8\nbase_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 2\nextra: *d\n", CATALOGUE
    )
    assert read is not None
    assert read.fields["batch"] == 2
    assert [p.id for p in read.problems] == ["config_aliases"]


def test_a_batch_of_none_is_a_problem() -> None:
    """A micro-batch of 0 is said to be impossible, as it is in words."""
    read = read_config("base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 0\n", CATALOGUE)
    assert read is not None
    assert [(p.id, p.field) for p in read.problems] == [("batch_not_positive", "batch")]


def test_python_tags_are_not_built() -> None:
    """A YAML tag for a Python object makes the document unreadable, not executed."""
    read = read_config('base_model: !!python/object/apply:os.system ["exit 1"]\nmicro_batch_size: 3\n', CATALOGUE)
    assert read is not None
    assert read.fields["batch"] == 3
    assert "model" not in read.fields


def test_a_message_over_the_limit_says_so() -> None:
    """Of more than 100 kB the first part is read and the rest is said to be left out."""
    read = read_config("micro_batch_size: 2\nbase_model: Qwen/Qwen2.5-7B\n" + "# filler\n" * 20_000, CATALOGUE)
    assert read is not None
    assert read.fields["batch"] == 2
    assert [(p.id, p.params) for p in read.problems] == [("config_truncated", {"max_kb": 100})]


@pytest.mark.parametrize(
    "text",
    [
        "can ollama run llama 3 70b on my mac?",
        "can vllm serve llama 70b to 20 users?",
        "does a 7b fit: yes or no?",
        "model: llama 3 8b, gpu: 4090, context: 8192",
        "how much is a p4d.24xlarge (on demand)?",
        "fine-tune mistral-7b with lr=1e-4",
        "I tune running shoes: which GPU?",
        '{"hidden_size": 4096, "num_hidden_layers": 32}',
        "",
    ],
)
def test_plain_questions_are_no_configs(text: str) -> None:
    """Words that only look a little like a config stay with the recognisers."""
    assert read_config(text, CATALOGUE) is None
