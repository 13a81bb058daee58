"""What one device does in one pass of training: operations, bytes moved, bytes sent. No constant of the fit is here.

Operations follow the counts of the field (EleutherAI, Transformer Math 101; Korthikanti et al. 2022): a trained weight
costs 6 a token, a frozen one 4, recomputation 2 more; attention 12 L h s a token with recomputation left out, and half
of that where a fused kernel skips what the causal mask hides. MFU counts, as published figures do (PaLM; llm-foundry),
the whole square of attention and no recomputation.
"""

from __future__ import annotations

from rules.catalog.accelerators import Accelerator
from rules.memory.training.setup import Setup
from rules.records import dataclass
from rules.speed.machine import Machine
from rules.speed.training.constants import given

_FP8 = ("fp8", "float8", "mxfp8", "e4m3")
_FP4 = ("fp4", "nvfp4", "mxfp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One device's share of one pass (forward and backward of a micro-batch) and, where named, of one step.

    Operations and bytes are plain numbers; `passes` weighs a forward pass as 1 and a backward one as 2.
    """

    machine: Machine
    tokens: float  # of the micro-batch on this device's group, after context parallelism
    split: float  # devices that share the width and depth of the model
    batch: float
    accumulation: float
    bits: int
    peak: float
    dense_ops: float
    expert_ops: float
    attention_ops: float
    useful_ops: float
    weight_bytes: float
    stream_bytes: float
    score_bytes: float
    loss_bytes: float
    unpack_bytes: float
    step_bytes: float
    host_step_bytes: float
    layers: float
    passes: float
    adapted: bool
    fused: bool
    sharded_sent: float
    step_sent: float
    width_sent: float
    link: float
    width_link: float
    width_degree: int
    bubble: float
    packed: bool
    capped: bool  # the length is one that samples are cut at, so that most are shorter
    tuned: bool  # a stack of hand-written kernels for training (Megatron and its kin)
    benchmark: bool  # the maker's own performance recipes (NeMo, Megatron-Bridge): graphs captured, traffic overlapped
    vendor: str


def work_of(
    s: Setup,
    machine: Machine,
    device: Accelerator | None,
    compute: str,
    framework: str,
    accumulation: float,
    capped: bool,
) -> Work:
    """The work of a resolved setup. `compute` is the type that products run in, as the user or the recipe names it."""
    plan, shape, fixed = s.plan, s.shape, given()["work"]
    split = float(plan.tp * plan.pp)
    tokens = s.tokens
    again = {"full": 1.0, "selective": fixed["selective_recompute"], "selective_or_full": 1.0}.get(s.checkpointing, 0.0)
    backward = 2.0 + 2.0 * s.trained_share if s.trained else 2.0
    active_experts = shape.routed * shape.moe_active / max(1, shape.experts)
    head = shape.vocab * shape.hidden if s.predicts_tokens else 0
    adapter_ops = 6.0 * s.adapters.weights
    head_ops = head * (2.0 + backward) * tokens * plan.pp  # the last stage of a pipeline holds all of it
    dense = (shape.dense_blocks * (2.0 + backward + 2.0 * again) + adapter_ops) * tokens + head_ops
    experts = active_experts * (2.0 + backward + 2.0 * again) * tokens
    seen = _seen(s)
    flash = s.attention != "eager" and not _before_flash(device)
    width = shape.attention_layers * (shape.query + shape.value)
    forward_attention = 2.0 * width * tokens * seen * (0.5 if shape.causal and flash else 1.0)
    attention = forward_attention * (3.0 + again)
    useful = dense - head_ops * (1 - 1 / plan.pp) + experts + 6.0 * width * tokens * seen
    useful -= 2.0 * again * (shape.dense_blocks + active_experts) * tokens
    passes = 3.0 + again
    inner = shape.intermediate * (shape.layers - shape.moe_layers) + shape.moe_layers * (
        shape.moe_active * shape.moe_width + shape.shared_width
    )
    streams = 3.0 if shape.gated else 2.0
    values = shape.layers * (6.0 * shape.hidden + shape.query + 2.0 * shape.kv + shape.value) + streams * inner
    resting = shape.dense_blocks + shape.routed / plan.ep
    loss = fixed["stock_loss_bytes" if s.loss == "stock" else "fused_loss_bytes"] if s.predicts_tokens else 0.0
    whole = shape.total - shape.routed + shape.routed / plan.ep
    trained = ((whole * s.trained_share if s.trained else 0.0) + s.adapters.weights) / split
    trained_here = trained / (max(1, plan.state_degree // plan.ep) if plan.zero_stage else 1)
    bits, peak = _peak(machine, device, compute, s)
    sharded, step_sent, width_sent = _sent(s, trained, tokens)
    node = _node(machine)
    return Work(
        machine=machine,
        tokens=tokens,
        split=split,
        batch=s.batch,
        accumulation=accumulation,
        bits=bits,
        peak=peak,
        dense_ops=dense / split,
        expert_ops=experts / split,
        attention_ops=attention / split,
        useful_ops=useful / split,
        weight_bytes=resting * s.compute_bytes * passes / split,
        stream_bytes=values * s.stream_bytes * passes * tokens / split,
        score_bytes=0.0 if flash else shape.attention_layers * shape.heads * seen * tokens * 2.0 * passes / split,
        loss_bytes=loss * tokens * shape.vocab / split,
        unpack_bytes=(shape.linear * (2.0 + s.quant_bytes) * (passes - 1.0) / split if s.quant_bytes else 0.0),
        step_bytes=0.0 if s.offload_optimizer else trained_here * fixed["optimizer_bytes"],
        host_step_bytes=trained_here * fixed["host_optimizer_bytes"] if s.offload_optimizer else 0.0,
        layers=shape.layers / plan.pp,
        passes=passes,
        adapted=s.adapters.weights > 0,
        fused=s.compiled or s.loss == "fast" or s.recipe.family in ("megatron", "unsloth") or s.recipe.name == "llm.c",
        sharded_sent=sharded,
        step_sent=step_sent,
        width_sent=width_sent,
        link=_link(machine, device, plan.devices, node, True),
        width_link=_link(machine, device, plan.tp * max(plan.ep, plan.cp), node, False),
        width_degree=plan.tp,
        bubble=(plan.pp - 1) / (max(1.0, accumulation) * max(1, plan.vp)),
        packed=s.packed,
        capped=capped,
        tuned=s.recipe.family == "megatron" or s.recipe.name == "llm.c",
        benchmark="nemo" in framework or "bridge" in framework,
        vendor=machine.vendor,
    )


def _before_flash(device: Accelerator | None) -> bool:
    """True for NVIDIA devices that the fused attention kernels do not run on (compute capability below 8)."""
    capability = device.compute_capability.partition(".")[0] if device is not None else ""
    return capability.isdigit() and int(capability) < 8


def _seen(s: Setup) -> float:
    """Tokens that one token attends to at most, of which a causal mask hides half; windows cut them."""
    whole = s.length * s.plan.sequence_split
    window, share = s.shape.window, s.shape.window_share
    return whole * (1 - share) + min(whole, 2.0 * window) * share if window else whole


def _peak(machine: Machine, device: Accelerator | None, compute: str, s: Setup) -> tuple[int, float]:
    if any(word in compute for word in _FP4):
        return 4, machine.peak(4)
    if any(word in compute for word in _FP8):
        return 8, machine.peak(8)
    if s.compute_bytes < 4:
        return 16, machine.peak(16)
    if compute == "tf32" and device is not None and device.tf32_dense:
        return 32, device.tf32_dense * 1e12
    return 32, machine.fp32


def _sent(s: Setup, trained: float, tokens: float) -> tuple[float, float, float]:
    """Bytes that one device sends: a pass for sharded weights, a step for gradients, a pass for tensors of layers."""
    plan, shape = s.plan, s.shape
    split = plan.tp * plan.pp
    replicas = max(plan.dp * plan.cp, 1)
    held = (shape.dense_blocks + shape.head + shape.embedding) / split * s.gather_bytes
    held += shape.routed / plan.ep / plan.pp * s.gather_bytes
    frozen_small = s.quant_bytes / 2.0 if s.quant_bytes else 1.0
    sharded = 0.0
    if plan.zero_stage >= 3:
        sharded = held * frozen_small * 2.0 * _ring(plan.state_degree)
    gradients = trained * 2.0
    if plan.zero_stage >= 2:
        sharded += gradients * _ring(replicas)
        step_sent = 0.0
    else:
        step_sent = gradients * 2.0 * _ring(replicas)
    hidden = tokens * shape.hidden * 2.0
    passes = 3.0 if s.checkpointing == "full" else 2.0
    width = 4.0 * shape.layers / plan.pp * hidden * _ring(plan.tp) * passes / 2.0
    width += 2.0 * passes * shape.moe_layers / plan.pp * shape.moe_active * hidden * _ring(plan.ep) / plan.tp
    width += 2.0 * passes * shape.attention_layers / plan.pp * tokens * 2.0 * shape.kv * 2.0 * _ring(plan.cp) / plan.tp
    return sharded, step_sent, width


def _ring(degree: int) -> float:
    """Share of a tensor that one member of a ring of `degree` devices sends in one pass round."""
    return (degree - 1) / degree if degree > 1 else 0.0


def _node(machine: Machine) -> int:
    network = given()["network"]
    rack = any(machine.name.startswith(name) for name in network["rack_names"])
    return int(network["rack_devices" if rack else "node_devices"])


def _link(machine: Machine, device: Accelerator | None, devices: int, node: int, ring: bool) -> float:
    """Bytes a second between the devices of a group: the peers' link inside a node, the network beyond it.

    A ring leaves a node through all of its ports at once; an exchange of all with all has one port for each device.
    """
    if devices <= node or device is None:
        return machine.link
    network = given()["network"]
    if device.tier in ("consumer", "integrated"):
        return min(machine.link, float(network["workstation_gb_s"]) * 1e9)
    modern = (device.release_year or 0) >= 2022
    port = float(network["server_from_2022_gb_s" if modern else "server_gb_s"]) * 1e9
    return min(machine.link, port * (network["node_devices"] if ring else 1))
