"""Six questions through the real command, each against a calculation made by hand in this file.

The hand calculations use only published architecture figures and bytes per value, none of the product's code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

GIB = 2**30


def ask(question: str) -> dict[str, Any]:
    """What `gpufit ask QUESTION --json` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "ask", question, "--json"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    advice: dict[str, Any] = json.loads(done.stdout)["advice"]
    return advice


def parts(advice: dict[str, Any]) -> dict[str, float]:
    """GiB of each part of the breakdown."""
    return {part["part"]: part["gib"] for part in advice["plan"]["parts"]}


def test_13b_qlora() -> None:
    """Llama-2-13B in 4 bits with fp32 norms, embedding and head, 2,048 tokens: 10.2 GiB allocated, a 16 GB card."""
    advice = ask("13B fine-tune QLoRA")
    hidden, layers, mlp, vocab, rank, tokens = 5120, 40, 13824, 32000, 16, 2048
    linear = layers * (4 * hidden**2 + 3 * hidden * mlp)
    four_bit = linear * 4.127 / 8
    upcast = (2 * vocab * hidden + (2 * layers + 1) * hidden) * 4
    adapters = layers * rank * (4 * 2 * hidden + 3 * (hidden + mlp)) * 4
    checkpoints = layers * tokens * hidden * 4  # the residual stream is fp32 behind an fp32 embedding
    logits = tokens * vocab * 4 * 3.5  # logits, their shifted copy, log-softmax and its gradient
    by_hand = (four_bit + upcast + adapters + checkpoints + logits) / GIB
    assert advice["plan"]["allocated"]["expected_gib"] == pytest.approx(by_hand, rel=0.05)
    assert parts(advice)["training_part_weights"] == pytest.approx((four_bit + upcast) / GIB, rel=0.01)
    assert advice["outcome"] == "fits"
    assert 15 <= advice["options"][0]["usable_gib"] + 1 <= 17


def test_70b_int4_on_two_4090_for_20_users() -> None:
    """39 GiB of weights in 47 usable, a twentieth kept free, leave about 700 tokens to each of 20 sequences."""
    advice = ask("llama 3 70b int4 on 2x4090, 8k ctx, 20 users")
    file_gib, embedding_on_cpu_gib = 39.60, 128256 * 8192 * 4.5 / 8 / GIB
    assert 2 * parts(advice)["weights"] == pytest.approx(file_gib - embedding_on_cpu_gib, rel=0.01)
    kv_per_token = 2 * 80 * 8 * 128 * 2
    assert 2 * parts(advice)["kv_cache"] == pytest.approx(20 * 8192 * kv_per_token / GIB, rel=0.01)
    within = 0.95 * 2 * 23.55  # what the verdict calls running, of what programs see
    room = within - (file_gib - embedding_on_cpu_gib) - 2 * (0.25 + 0.5)  # context and compute buffer of each card
    tokens_each = room * GIB / kv_per_token / 20
    assert advice["outcome"] == "tight"
    assert advice["verdict"]["params"]["tokens_each"] == pytest.approx(tokens_each, rel=0.15)


def test_full_7b_on_eight_a100() -> None:
    """fp32 shards of weights, gradients and two moments: 16 bytes a parameter over 8 cards, 12.5 GiB each, and room."""
    advice = ask("full finetune of a 7B on 8 A100 80")
    parameters = 6.738e9
    found = parts(advice)
    states = found["training_part_weights"] + found["training_part_gradients"] + found["training_part_states"]
    assert states == pytest.approx(16 * parameters / 8 / GIB, rel=0.01)
    assert advice["plan"]["allocated"]["expected_gib"] >= 16 * parameters / 8 / GIB
    assert advice["outcome"] == "fits"
    assert advice["quick_rule"]["real_gib"] > 3 * advice["quick_rule"]["gib"]


def test_bge_large_on_cpu() -> None:
    """335 million fp32 parameters are 1.25 GiB; with the runtime a host of 4 GiB does."""
    advice = ask("bge-large on cpu, 5 rps")
    assert advice["outcome"] == "cpu"
    assert parts(advice)["weights"] == pytest.approx(335.1e6 * 4 / GIB, rel=0.01)
    assert 1.25 < advice["options"][0]["need"]["expected_gib"] < 3


def test_sdxl_lora_on_12_gb() -> None:
    """A 2.57 B UNet and 0.82 B of text encoders in 16 bits are 6.3 GiB; with checkpointing 12 GB are enough."""
    advice = ask("sdxl lora on 12 GB")
    frozen = (2.567e9 + 0.8177e9 + 0.0837e9 * 2) * 2 / GIB  # the VAE runs in fp32
    found = parts(advice)
    weights = found["weights"] + found["frozen_text_encoders"] + found["frozen_vae"]
    assert weights == pytest.approx(frozen, rel=0.02)
    assert advice["outcome"] == "fits"
    assert frozen < advice["options"][0]["need"]["expected_gib"] < 11


def test_deepseek_v3_on_eight_h200() -> None:
    """671 B parameters in fp8 over 8 cards are 78 GiB each, and every card holds the whole latent cache."""
    advice = ask("deepseek v3 on 8xH200")
    tables = 2 * 129280 * 7168
    by_hand = (671.03e9 - tables + 2 * tables) / 8 / GIB
    assert parts(advice)["weights"] == pytest.approx(by_hand, rel=0.01)
    latent = (512 + 64) * 61 * 2
    pool_gib = parts(advice)["kv_cache"]
    assert advice["plan"]["kv_cache_tokens"] == pytest.approx(pool_gib * GIB / latent, rel=0.01)
    assert advice["outcome"] == "fits"
