"""The exact trace: what is counted, how it fails, and that the committed figures can be reproduced."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench_agent.exact_memory import (
    TraceError,
    TraceRefused,
    TraceRequest,
    TraceResult,
    built_in_shapes,
    shape,
    trace,
    trace_many,
)

ACCURACY = Path(__file__).parents[1] / "accuracy"
TIME_LIMIT_S = 120.0
GIB = 2**30


def tiny(**settings: Any) -> TraceRequest:
    """Two layers of the smallest Llama shape."""
    return TraceRequest(**{"name": "tiny", "config": shape("llama-tiny", 2), "seq_len": 128, **settings})


# --- what needs no torch


def test_a_request_names_one_model() -> None:
    """A configuration or an own module, not both and not neither."""
    with pytest.raises(TraceRefused, match="one of them"):
        TraceRequest()
    with pytest.raises(TraceRefused, match="one of them"):
        TraceRequest(config={}, own_module="a:b")


@pytest.mark.parametrize(
    ("field", "value"),
    [("method", "dora"), ("optimizer", "lion"), ("attention", "flash3"), ("compute_dtype", "fp8"), ("seq_len", 0)],
)
def test_an_unknown_word_is_refused_with_its_field(field: str, value: object) -> None:
    """The message starts with the field that is wrong."""
    with pytest.raises(TraceRefused, match=f"^{field}"):
        tiny(**{field: value})


def test_an_unknown_field_is_refused() -> None:
    """A request from JSON names only known fields."""
    with pytest.raises(TraceRefused, match="colour"):
        TraceRequest.from_json({"config": {}, "colour": "red"})


def test_an_unknown_shape_is_refused_with_the_known_ones() -> None:
    """The message lists what there is."""
    with pytest.raises(TraceRefused, match="llama-3-8b"):
        shape("llama-9")


def test_a_shape_can_be_cut_to_fewer_layers() -> None:
    """Each configuration uses its own word for the number of layers."""
    assert shape("llama-3-8b", 3)["num_hidden_layers"] == 3
    assert shape("gpt2-124m", 3)["n_layer"] == 3
    assert built_in_shapes()["llama-3-8b"]["num_hidden_layers"] == 32


def test_weights_are_fp32_only_for_full_fine_tuning_under_autocast() -> None:
    """Mixed precision keeps fp32 weights where they are trained; adapters sit beside 16-bit ones."""
    assert tiny().loaded_dtype == "bf16"
    assert tiny(mixed_precision=True).loaded_dtype == "fp32"
    assert tiny(method="lora", mixed_precision=True).loaded_dtype == "bf16"
    assert tiny(weights_dtype="fp16").loaded_dtype == "fp16"


def test_the_command_starts_without_torch_or_the_bot() -> None:
    """Importing the command line loads neither torch nor transformers nor any room of the bot."""
    heavy = ("torch", "transformers", "peft", "bot")
    code = f"import sys, bench_agent.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["llama-9"], "shape: 'llama-9'"),
        ([], "model: name a built-in shape"),
        (["llama-tiny", "--method", "dora"], "invalid choice: 'dora'"),
        (["own:make", "--layers", "2"], "layers:"),
    ],
)
def test_the_command_fails_in_one_line(arguments: list[str], words: str) -> None:
    """Bad usage: exit 2, one line on standard error, nothing on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "bench_agent.cli", "trace", *arguments], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gpufit-agent")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_shows_an_example() -> None:
    """`trace --help` has commands that can be copied."""
    done = subprocess.run(
        [sys.executable, "-m", "bench_agent.cli", "trace", "--help"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert "gpufit-agent trace llama-3-8b --method qlora" in done.stdout


@pytest.mark.torch
def test_the_command_traces_a_config_file(tmp_path: Path) -> None:
    """`--json` on a folder with a config.json gives the request, the phases and the model's row."""
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text(json.dumps(shape("qwen3-0.6b")), encoding="utf-8")
    command = [sys.executable, "-m", "bench_agent.cli", "trace", str(tmp_path), "--layers", "1", "--seq-len", "64"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    answer = json.loads(done.stdout)
    assert answer["model_row"]["layers"] == 1
    assert answer["model_row"]["hf_model_type"] == "qwen3"
    assert answer["peak_bytes"] == max(answer["phases"].values()) == answer["phases"][answer["peak_phase"]]


# --- traces


@pytest.fixture(scope="module")
def traced() -> dict[str, TraceResult]:
    """Small traces that the tests below compare, made by one child process."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    requests = {
        "full": tiny(),
        "accumulated": tiny(grad_accum=2),
        "output dropped": tiny(keep_output=False),
        "checkpointed": tiny(checkpointing=True, seq_len=2048),
        "long": tiny(seq_len=2048),
        "eager": tiny(seq_len=2048, attention="eager"),
        "sgd": tiny(optimizer="sgd"),
        "fused": tiny(optimizer="adamw_fused"),
        "8 bit": tiny(optimizer="adamw_8bit"),
        "mixed": tiny(mixed_precision=True),
        "lora": tiny(method="lora"),
        "qlora": tiny(method="qlora", kbit_prepared=False),
        "qlora prepared": tiny(method="qlora"),
        "tied": TraceRequest(name="tied", config=shape("gpt2-124m", 1), seq_len=64),
    }
    results: dict[str, TraceResult] = {}
    for name, outcome in zip(requests, trace_many(requests.values(), TIME_LIMIT_S), strict=True):
        assert isinstance(outcome, TraceResult), f"{name}: {outcome}"
        results[name] = outcome
    return results


@pytest.mark.torch
class TestPhases:
    """Arithmetic that every training step obeys."""

    def test_loading_takes_two_bytes_a_parameter_in_bf16(self, traced: dict[str, TraceResult]) -> None:
        """Weights and the batch, nothing else."""
        row = traced["full"].model_row
        assert row is not None
        assert traced["full"].phases["load"] == pytest.approx(2 * row["params_total"], rel=0.01)
        assert traced["mixed"].phases["load"] == pytest.approx(4 * row["params_total"], rel=0.01)

    def test_tied_tables_are_held_once(self, traced: dict[str, TraceResult]) -> None:
        """GPT-2's head is its embedding."""
        row = traced["tied"].model_row
        assert row is not None
        assert row["tie_embeddings"] is True
        assert traced["tied"].phases["load"] == pytest.approx(2 * row["params_total"], rel=0.01)

    def test_foreach_adamw_takes_ten_bytes_a_parameter(self, traced: dict[str, TraceResult]) -> None:
        """Weights 2, gradients 2, states 4 and one temporary of 2, in bf16; the fused step saves the temporary."""
        params = traced["full"].trainable_params
        assert traced["full"].phases["optimizer"] == pytest.approx(10 * params, rel=0.01)
        assert traced["fused"].phases["optimizer"] == pytest.approx(8 * params, rel=0.01)
        assert traced["sgd"].phases["optimizer"] == pytest.approx(6 * params, rel=0.01)

    def test_8_bit_states_take_two_bytes_a_parameter(self, traced: dict[str, TraceResult]) -> None:
        """Two int8 states with an fp32 scale for every 256 values: 2.03 bytes beside weights and gradients."""
        params = traced["8 bit"].trainable_params
        assert traced["8 bit"].phases["optimizer"] == pytest.approx(6.03 * params, rel=0.01)

    def test_accumulated_gradients_are_alive_in_the_forward_pass(self, traced: dict[str, TraceResult]) -> None:
        """The second micro-batch starts with 2 bytes of gradient a parameter."""
        more = traced["accumulated"].phases["forward"] - traced["full"].phases["forward"]
        assert more == pytest.approx(2 * traced["full"].trainable_params, rel=0.01)

    def test_a_held_output_is_a_16_bit_copy_of_the_logits(self, traced: dict[str, TraceResult]) -> None:
        """128 tokens x 32,000 words x 2 bytes."""
        more = traced["full"].phases["backward"] - traced["output dropped"].phases["backward"]
        assert more == pytest.approx(128 * 32000 * 2, rel=0.01)

    def test_checkpointing_lowers_and_eager_attention_raises(self, traced: dict[str, TraceResult]) -> None:
        """Both against the same step."""
        assert traced["checkpointed"].peak_bytes < traced["long"].peak_bytes < traced["eager"].peak_bytes
        scores = 2 * 8 * 2048 * 2048 * 4  # two layers, eight heads, fp32 probabilities
        assert traced["eager"].phases["forward"] - traced["long"].phases["forward"] > scores

    def test_adapters_train_few_parameters(self, traced: dict[str, TraceResult]) -> None:
        """LoRA's optimizer step is small beside its weights."""
        lora = traced["lora"]
        assert lora.trainable_params < 0.05 * traced["full"].trainable_params
        assert lora.phases["optimizer"] < 1.2 * lora.static_bytes

    def test_nf4_takes_four_and_a_half_bits_a_weight(self, traced: dict[str, TraceResult]) -> None:
        """Blocks of 64 with an fp32 constant; the fp32 adapters are the same in both."""
        row = traced["qlora"].model_row
        assert row is not None
        linear = row["params_total"] - 2 * row["params_embedding"] - 5 * row["hidden"]
        saved = traced["lora"].static_bytes - traced["qlora"].static_bytes
        assert saved == pytest.approx(linear * (2 - 4.5 / 8), rel=0.01)

    def test_preparation_for_kbit_training_upcasts_what_is_not_quantised(self, traced: dict[str, TraceResult]) -> None:
        """Embedding, head and norms go from two bytes to four."""
        row = traced["qlora"].model_row
        assert row is not None
        upcast = traced["qlora prepared"].static_bytes - traced["qlora"].static_bytes
        assert upcast == pytest.approx(2 * (2 * row["params_embedding"] + 5 * row["hidden"]), rel=0.01)


@pytest.mark.torch
def test_double_quantisation_goes_from_4_5_to_4_127_bits() -> None:
    """Real bitsandbytes tensors: fp32 constants of 64-blocks, then 8-bit ones with fp32 constants of 256-blocks."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("bitsandbytes").functional
    weight = torch.randn(1024, 1024, dtype=torch.bfloat16)
    bits = {}
    for double in (False, True):
        packed, state = functional.quantize_4bit(weight, quant_type="nf4", blocksize=64, compress_statistics=double)
        constants = [state.absmax] + ([state.state2.absmax] if double else [])
        size = sum(t.numel() * t.element_size() for t in (packed, *constants))
        bits[double] = 8 * size / weight.numel()
    assert bits[False] == 4.5
    assert bits[True] == pytest.approx(4 + 8 / 64 + 32 / (64 * 256))
    assert bits[True] == pytest.approx(4.127, abs=0.001)


OWN_MODULE = """
import os
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1000, 1000, bias=False)
    def forward(self, x):
        return self.layer(x).square().mean()

def make():
    return Net(), (torch.empty(10, 1000),)

def crash():
    os.abort()

def wrong():
    return Net()

def greedy():
    return bytearray(1 << 40)

class NoLoss(Net):
    def forward(self, x):
        return self.layer(x)

def no_loss():
    return NoLoss(), (torch.empty(10, 1000),)

class Stuck(Net):
    def forward(self, x):
        while True:
            pass

def stuck():
    return Stuck(), (torch.empty(10, 1000),)
"""


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's own, where the command is run."""
    (tmp_path / "own.py").write_text(OWN_MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return tmp_path


@pytest.mark.torch
def test_own_modules_are_traced_and_their_faults_are_errors(own_modules: Path) -> None:
    """A good module is traced after a crash, too large a one, a refusal and a missing loss; each fault is one line."""
    pytest.importorskip("torch")
    names = ("crash", "greedy", "wrong", "no_loss", "absent", "make")
    requests = [TraceRequest(own_module=f"own:{name}", compute_dtype="fp32") for name in names]
    crash, greedy, wrong, no_loss, absent, made = trace_many(requests, TIME_LIMIT_S)
    assert isinstance(crash, TraceError)
    assert "signal 6" in str(crash)
    assert str(greedy) == "the trace needs more memory than its bound"
    assert isinstance(wrong, TraceRefused)
    assert isinstance(no_loss, TraceRefused)
    assert "loss" in str(no_loss)
    assert isinstance(absent, TraceRefused)
    assert isinstance(made, TraceResult)
    assert made.model_row is None
    assert made.phases["load"] == pytest.approx(4e6 + 4e4, rel=0.001)
    assert made.phases["optimizer"] == pytest.approx(5 * 4e6, rel=0.02)


def test_a_host_without_torch_is_told_what_to_install(own_modules: Path) -> None:
    """The error names the extra; nothing but the trace needs torch."""
    (own_modules / "torch.py").write_text("raise ImportError('No module named torch')", encoding="utf-8")
    with pytest.raises(TraceError, match=r"pip install 'gpufit\[llm\]'"):
        trace(TraceRequest(own_module="own:make"), TIME_LIMIT_S)


@pytest.mark.torch
def test_a_trace_that_takes_too_long_is_stopped(own_modules: Path) -> None:
    """The bound on time holds whatever the module does."""
    pytest.importorskip("torch")
    with pytest.raises(TraceError, match=r"longer than 0\.5 s"):
        trace(TraceRequest(own_module="own:stuck"), timeout_s=0.5)


# --- published and committed figures

PUBLISHED = (
    "vramcalc-a6000-llama-3.2-1b-full-pure-sdpa-ckpt",
    "vramcalc-a6000-llama-3.2-1b-full-amp-sdpa-ckpt",
    "vramcalc-a6000-llama-3.2-1b-full-pure-eager",
    "vramcalc-a6000-llama-3.2-1b-lora16-amp-sdpa-ckpt",
)


@pytest.mark.torch
def test_traces_agree_with_peaks_measured_on_a_gpu() -> None:
    """Four published runs on an RTX A6000, in bytes, to one per cent.

    Their loop sets gradients to zero and keeps them, so they are alive in the next forward pass, as when accumulating.
    """
    pytest.importorskip("transformers")
    lines = (ACCURACY / "cases" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    cases = {case["id"]: case for case in map(json.loads, lines) if case["id"] in PUBLISHED}
    requests = [
        TraceRequest(
            config=shape("llama-3.2-1b"),
            method=case["method"],
            weights_dtype=case["weights_dtype"],
            compute_dtype=case["compute"],
            mixed_precision=case["mixed_precision"],
            micro_batch=case["micro_batch"],
            seq_len=case["seq_len"],
            checkpointing=case["gradient_checkpointing"],
            attention=case["attn_impl"],
            lora_rank=case["lora_rank"] or 16,
            lora_targets="q_proj,k_proj,v_proj,o_proj",
            grad_accum=2,
        )
        for case in cases.values()
    ]
    assert len(requests) == len(PUBLISHED)
    for case, outcome in zip(cases.values(), trace_many(requests, TIME_LIMIT_S), strict=True):
        assert isinstance(outcome, TraceResult), outcome
        assert outcome.peak_bytes / GIB == pytest.approx(case["measured"]["peak_gib_per_gpu"], rel=0.01), case["id"]


@pytest.mark.torch
def test_twenty_committed_traces_are_reproduced() -> None:
    """A seeded twenty of the shallow models, which are the quick ones, give the committed bytes to half a per cent."""
    pytest.importorskip("bitsandbytes")
    lines = [json.loads(line) for line in (ACCURACY / "traces.jsonl").read_text(encoding="utf-8").splitlines()]
    shallow = [line for line in lines if line["model"]["layers"] <= 14]
    chosen = random.Random(20).sample(shallow, 20)
    requests = []
    for line in chosen:
        settings = {k: v for k, v in line["request"].items() if k not in ("shape", "layers")}
        requests.append(TraceRequest(config=shape(line["request"]["shape"], line["request"]["layers"]), **settings))
    for line, outcome in zip(chosen, trace_many(requests, TIME_LIMIT_S), strict=True):
        assert isinstance(outcome, TraceResult), f"{line['id']}: {outcome}"
        assert outcome.peak_bytes == pytest.approx(line["peak_bytes"], rel=0.005), line["id"]
        assert dict(outcome.phases) == pytest.approx(line["phases"], rel=0.005), line["id"]
