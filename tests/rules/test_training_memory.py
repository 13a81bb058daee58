"""Training memory against hand calculations and against bytes that published logs state."""

from __future__ import annotations

import pytest

from tests.rules.training_workloads import GIB, LLAMA_2_7B, LLAMA_2_13B, LLAMA_3_8B, footprint, gib, model, part

PURE = {
    "method": "full",
    "weights_dtype": "bf16",
    "mixed_precision": False,
    "micro_batch": 1,
    "seq_len": 4096,
    "checkpointing": "full",
}
P_8B = 8030261248
P_7B = 6738415616


def test_pure_bf16_foreach_adamw_takes_ten_bytes_a_parameter_at_the_step() -> None:
    """Weights, gradients, two states and one temporary copy, 2 bytes each: 74.8 GiB for Llama-3-8B."""
    found = footprint(optimizer="adamw", **PURE)
    assert found.phase == "step"
    assert found.allocated.expected == pytest.approx(10 * P_8B)


def test_batch_four_has_the_same_peak_because_the_step_peaks() -> None:
    """The peak of full fine-tuning at the optimizer step does not depend on the batch."""
    assert gib(optimizer="adamw", **PURE) == pytest.approx(gib(optimizer="adamw", **{**PURE, "micro_batch": 2}))


@pytest.mark.parametrize(("optimizer", "expected"), [("adamw_fused", 60.5), ("adamw_8bit", 45.5)])
def test_other_optimizers_of_llama_3_8b(optimizer: str, expected: float) -> None:
    """A fused step needs no temporary copy; 8-bit states take two bytes for eight."""
    assert gib(optimizer=optimizer, **PURE) == pytest.approx(expected, rel=0.02)


def test_qlora_of_a_13b_model() -> None:
    """4-bit weights with double quantisation, fp32 embedding and head, checkpoints and one block: 10.4 GiB."""
    found = footprint(
        LLAMA_2_13B, method="qlora", optimizer="paged_adamw_8bit", micro_batch=1, seq_len=2048, checkpointing="full",
        lora_rank=16,
    )  # fmt: skip
    assert found.allocated.expected / GIB == pytest.approx(10.4, rel=0.02)
    linear = 40 * (4 * 5120**2 + 3 * 5120 * 13824)
    rest = (2 * 32000 * 5120 + (2 * 40 + 1) * 5120) * 4
    constants = 1 / 64 + 4 / (64 * 256)
    assert part(found, "weights") == pytest.approx(linear * (0.5 + constants) + rest, rel=1e-3)
    assert part(found, "states") == 0  # paged states are out of torch's sight


def test_the_rule_of_parameters_times_bytes_is_too_low_for_qlora() -> None:
    """Parameters x 0.5 byte + 40 % misses the fp32 head, the constants and the loss."""
    quick = 13.0e9 * 0.5 * 1.4 / GIB
    assert gib(LLAMA_2_13B, method="qlora") > 1.15 * quick


@pytest.mark.parametrize(
    ("stage", "replicated", "sharded"), [("ddp", 16, 0), ("zero1", 4, 12), ("zero2", 2, 14), ("zero3", 0, 16)]
)
def test_zero_stages_follow_the_paper(stage: str, replicated: float, sharded: float) -> None:
    """Mixed-precision Adam takes 16 bytes a parameter; each stage shards 0, 12, 14 or 16 of them over N devices."""
    found = footprint(
        LLAMA_2_7B, 8, method="full", weights_dtype="bf16", mixed_precision=True, optimizer="adamw", sharding=stage,
        framework="HF Trainer + DeepSpeed", grad_accum=4, micro_batch=1, seq_len=256,
    )  # fmt: skip
    state = sum(part(found, name) for name in ("weights", "gradients", "states", "master"))
    assert state == pytest.approx((replicated + sharded / 8) * P_7B, rel=0.001)


def test_megatrons_distributed_optimizer() -> None:
    """bf16 weights and fp32 gradients stay whole, 12 bytes of master and states shard over data-parallel ranks."""
    found = footprint(
        LLAMA_2_7B, 4, method="pretrain", mixed_precision=True, sharding="zero1", framework="Megatron-LM",
        grad_accum=4, micro_batch=1, seq_len=128,
    )  # fmt: skip
    state = sum(part(found, name) for name in ("weights", "gradients", "states", "master"))
    assert state == pytest.approx((6 + 12 / 4) * P_7B, rel=0.001)


def test_fsdp_with_fp32_shards_takes_twenty_bytes_a_parameter_over_the_devices() -> None:
    """FSDP in bf16 mixed precision keeps fp32 shards; the foreach step adds one copy: 20 P / N."""
    found = footprint(
        LLAMA_2_7B, 4, method="full", weights_dtype="fp32", compute_dtype="bf16", mixed_precision=True, sharding="fsdp",
        framework="HF Trainer", micro_batch=1, seq_len=512,
    )  # fmt: skip
    assert found.phases["step"] == pytest.approx(20 * P_7B / 4, rel=0.001)


def test_ddp_buckets_hold_a_second_copy_of_the_gradients() -> None:
    """DDP's buckets take as much as the gradients."""
    alone = footprint(LLAMA_2_7B, 1, **PURE)
    replicas = footprint(LLAMA_2_7B, 8, sharding="ddp", **PURE)
    assert replicas.phases["step"] - alone.phases["step"] == pytest.approx(2 * P_7B)


def test_stock_loss_takes_fourteen_bytes_a_logit_where_the_loop_holds_the_output() -> None:
    """16-bit logits, an fp32 log-softmax and two fp32 gradients: 2 + 4 + 4 + 4 bytes a token and vocabulary entry."""
    found = footprint(**{**PURE, "method": "lora"}, framework="transformers (plain loop)", fused_loss=False)
    assert part(found, "logits") == pytest.approx(14 * 4096 * 128256)


def test_fused_loss_takes_the_logits_away() -> None:
    """With fused linear cross entropy the loss phase no longer peaks."""
    stock = footprint(**{**PURE, "method": "lora"}, framework="HF Trainer", fused_loss=False)
    fused = footprint(**{**PURE, "method": "lora"}, framework="HF Trainer", fused_loss=True)
    assert stock.phase == "loss"
    assert fused.allocated.expected < stock.allocated.expected - 4 * GIB


def test_full_checkpointing_keeps_one_input_a_layer() -> None:
    """32 layers x 4,096 wide x 2 bytes, and the last norm's fp32 input: 279 kB a token."""
    one, two = (footprint(**{**PURE, "method": "lora", "seq_len": n}) for n in (4096, 8192))
    slope = (part(two, "activations") - part(one, "activations")) / 4096
    last_norm = 4096 * 4
    assert slope == pytest.approx(32 * 4096 * 2 + last_norm)


def test_a_block_of_llama_keeps_what_autograd_saves() -> None:
    """Two norms (fp32 input, normalised, output), q, k, v, output with its log-sum-exp, and four widths of the MLP."""
    one, two = (
        footprint(
            **{**PURE, "checkpointing": "none", "seq_len": n}, optimizer="adamw_fused", attention="flash"
        )
        for n in (4096, 8192)
    )  # fmt: skip
    norms = 2 * (4096 * 8 + 4)
    attention = (4096 + 1024 + 1024 + 4096) * 2 + 4 * 32
    mlp = 4 * 14336 * 2
    final = 4096 * (4 + 2 + 2)
    slope = (part(two, "activations") - part(one, "activations")) / 4096
    assert slope == pytest.approx(32 * (norms + attention + mlp) + final, rel=0.001)


def test_eager_attention_keeps_scores_that_grow_with_the_square_of_the_length() -> None:
    """An fp32 softmax and its 16-bit copy a head: 6 bytes x heads x length a token and layer."""
    fields = {**PURE, "checkpointing": "none", "method": "lora", "lora_targets": ("q_proj",)}
    extra = [
        part(footprint(**{**fields, "seq_len": n}, attention="eager"), "activations")
        - part(footprint(**{**fields, "seq_len": n}, attention="flash"), "activations")
        for n in (2048, 4096)
    ]
    scores = 32 * 6 * 32 * 4096 * 4096
    assert extra[1] == pytest.approx(scores, rel=0.05)
    assert extra[1] / extra[0] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("fields", "logged_bytes"),
    [
        ({"method": "full", "micro_batch": 4, "optimizer_state_dtype": "bf16"}, 35134836736),
        ({"method": "full", "micro_batch": 8, "optimizer_state_dtype": "bf16"}, 47059390976),
        ({"method": "lora", "micro_batch": 4, "optimizer_state_dtype": "fp32", "lora_rank": 16}, 20169870848),
    ],
)
def test_bytes_that_fms_acceleration_logged_on_an_a100(fields: dict[str, object], logged_bytes: int) -> None:
    """PowerLM-3B, stock trainer, packed 4,096 tokens: within 1 % of the allocator's own figure."""
    found = footprint(
        "ibm/PowerLM-3b", weights_dtype="bf16", compute_dtype="bf16", mixed_precision=False, optimizer="adamw",
        seq_len=4096, packed=True, checkpointing="full", attention="flash", fused_loss=False,
        lora_targets=("q_proj", "k_proj", "v_proj", "o_proj"), framework="HF Trainer/SFTTrainer + fms-acceleration",
        **fields,
    )  # fmt: skip
    assert found.allocated.expected == pytest.approx(logged_bytes, rel=0.01)


def test_automatic_mixed_precision_keeps_fp32_weights_and_their_16_bit_casts() -> None:
    """fp32 weights, gradients and states take 16 bytes a parameter; the casts of a pass take two more."""
    name = "meta-llama/Llama-3.2-1B"
    found = footprint(
        name, method="full", weights_dtype="fp32", compute_dtype="bf16", mixed_precision=True, micro_batch=1,
        seq_len=2048, checkpointing="none", framework="transformers (plain loop)", optimizer="adamw_fused",
    )  # fmt: skip
    total = model(name).params_total
    assert part(found, "weights") + part(found, "states") == pytest.approx(12 * total, rel=0.001)
    assert part(found, "casts") == pytest.approx(2 * total, rel=0.01)


def test_parts_add_up_to_the_allocated_peak_and_phases_hold_it() -> None:
    """The breakdown is complete, and the peak is the highest phase."""
    found = footprint(LLAMA_3_8B, method="qlora")
    assert sum(p.bytes for p in found.parts) == pytest.approx(found.allocated.expected)
    assert max(found.phases.values()) == found.phases[found.phase] == found.allocated.expected
    assert set(found.phases) == {"load", "forward", "loss", "backward", "step"}


def test_reserved_and_device_come_on_top_of_allocated() -> None:
    """Fragments, then context and communication buffers."""
    alone, several = footprint(method="lora"), footprint(devices=8, method="lora", sharding="ddp")
    for found in (alone, several):
        assert found.allocated.expected < found.reserved.expected < found.device.expected
    outside = [f.device.expected - f.reserved.expected for f in (alone, several)]
    assert outside[1] > outside[0] + 0.5 * GIB
