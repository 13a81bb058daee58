"""The phases of one training step on one pipeline stage, each a sum of the parts that live together."""

from __future__ import annotations

from rules.memory.training.activations import block, mean_saved
from rules.memory.training.loss import fused_bytes, held_bytes, logits_bytes
from rules.memory.training.setup import Setup
from rules.memory.training.static import Stage, Static, stages, static
from rules.records import dataclass


@dataclass(slots=True)
class Peak:
    """One candidate for the peak: its phase, its parts in bytes, and how much of it rests between steps."""

    phase: str
    parts: dict[str, float]
    total: float
    resting: float
    cpu: float


def stage_peaks(s: Setup) -> list[list[Peak]]:
    """Candidates of every pipeline stage that may be the fullest."""
    return [_peaks(s, stage, static(s, stage)) for stage in stages(s)]


def _peaks(s: Setup, stage: Stage, st: Static) -> list[Peak]:
    shape, plan = s.shape, s.plan
    tokens = s.tokens
    layer = block(s)
    width = 1.0 / plan.tp
    loss_tokens = tokens
    kept, cpu_acts = _kept(s, stage, layer.input, mean_saved(s), width)
    checkpoints = s.checkpointing == "full"

    resting = {
        "weights": st.weights,
        "adapters": st.adapters,
        "states": st.states,
        "master": st.master,
    }
    rest = sum(resting.values())
    alive = st.gradients if s.grads_alive else 0.0
    passing = {"gathered": st.gathered, "buckets": st.buckets}
    cpu = st.cpu + cpu_acts

    def peak(phase: str, **parts: float) -> Peak:
        together = {**resting, **parts}
        return Peak(phase, together, sum(together.values()), rest, cpu)

    dequantised = _dequantised(s)
    casts_forward, casts_layer, casts_kept, casts_head = _casts(s, st, stage, checkpoints)
    saved_block = layer.saved * tokens * width
    working = layer.peak * tokens * width
    # In the backward pass the copy lives beside one of the three gradients of the MLP's inner width, not beside all.
    inner = 2 * s.linear_bytes * (shape.intermediate or shape.moe_width * shape.moe_active) * tokens * width
    beside_gradients = max(0.0, dequantised - inner)
    found = []
    # Forward: everything kept, and the block at work (its saved tensors come and go under checkpointing).
    forward_extra = (layer.forward_extra * tokens * width) + (saved_block if checkpoints else 0.0)
    found.append(
        peak(
            "forward",
            activations=kept,
            block=forward_extra + dequantised,
            gradients=alive,
            casts=casts_forward,
            **passing,
        )
    )
    head_bytes = s.special_bytes if s.quant_bytes else s.weight_bytes
    vocab = shape.vocab if s.predicts_tokens else 0
    if stage.last and vocab:
        # The last norm's fp32 input, and for trained weights its normalised form and the head's input.
        final = shape.hidden * (4.0 + (s.stream_bytes + s.compute_bytes if s.trained else 0.0)) * loss_tokens
        final *= width if plan.sequence_parallel else 1.0
        forward_logits, backward_logits = logits_bytes(s)
        unit = loss_tokens * vocab / plan.tp
        trained_head = s.trained
        fused = fused_bytes(s, loss_tokens, trained_head) if s.loss == "fused" else 0.0
        found.append(
            peak(
                "loss",
                activations=kept + final,
                logits=forward_logits * unit + fused,
                gradients=alive,
                casts=casts_forward,
                **passing,
            )
        )
        head_gradient = st.head_gradient if s.loss != "fused" else 0.0
        late = head_gradient + (2 * s.compute_bytes) * unit
        found.append(
            peak(
                "loss",
                activations=kept + final,
                logits=max(backward_logits * unit + fused, late if s.loss != "fused" else 0.0),
                gradients=alive,
                casts=casts_kept,
                **passing,
            )
        )
    held = held_bytes(s) * loss_tokens * vocab / plan.tp if stage.last else 0.0
    first_gradients = max(alive, st.head_gradient + st.layer_gradient)
    all_gradients = st.gradients
    if s.recipe.optimizer_in_backward or _in_backward(s):
        first_gradients = all_gradients = st.head_gradient + st.layer_gradient
    extra = max(0.0, working - (0.0 if checkpoints else saved_block))
    found.append(
        peak(
            "backward",
            activations=kept,
            block=extra + beside_gradients,
            logits=held,
            gradients=first_gradients,
            casts=max(casts_layer, casts_kept - casts_head),
            **passing,
        )
    )
    # The first block goes last, before the embedding's own gradient is made.
    tied = shape.tied and s.predicts_tokens
    late_gradients = all_gradients if s.grads_alive or tied else all_gradients - st.embedding_gradient
    found.append(
        peak(
            "backward",
            activations=working if stage.in_flight <= 1 else kept * (1 - 1 / max(1.0, stage.layers)) + working,
            block=beside_gradients,
            logits=held,
            gradients=max(0.0, late_gradients),
            casts=casts_layer,
            **passing,
        )
    )
    # A tied table gets two gradients, which are added into a third tensor.
    table = 2 * st.embedding_gradient if tied and stage.last else 0.0
    found.append(peak("backward", gradients=all_gradients + table, logits=held, **passing))
    found.append(
        peak("step", gradients=all_gradients, temporaries=st.temporaries, buckets=st.buckets if plan.replicas else 0.0)
    )
    found.append(peak("load", block=_largest_unit(s, st, head_bytes)))
    return found


def _kept(s: Setup, stage: Stage, input_bytes: float, saved: float, width: float) -> tuple[float, float]:
    """Activations kept for the backward pass on this stage; and those parked in host memory."""
    tokens = s.tokens * stage.layers * stage.in_flight
    if s.checkpointing == "full":
        kept = tokens * input_bytes * (width if s.plan.sequence_parallel or s.plan.tp == 1 else 1.0)
        if s.checkpoint_offload or s.offload_activations:
            two = 2 * s.tokens * input_bytes * stage.in_flight
            return min(kept, two), max(0.0, kept - two)
        return kept, 0.0
    if s.checkpointing == "selective" and s.recipe.family != "megatron":
        shape, b = s.shape, s.compute_bytes
        products = shape.query + 2 * shape.kv + 2 * shape.hidden + (2 if shape.gated else 1) * shape.intermediate
        partial = shape.hidden * s.stream_bytes + b * (products / 2 + shape.value) + 4 * shape.heads
        saved = min(saved, partial)
    kept = tokens * saved * width
    if s.offload_activations:
        two = 2 * s.tokens * saved * width * stage.in_flight
        return min(kept, two), max(0.0, kept - two)
    return kept, 0.0


def _dequantised(s: Setup) -> float:
    """One 16-bit copy of the widest quantised matrix, made for each product."""
    if not s.quant_bytes:
        return 0.0
    shape = s.shape
    return shape.hidden * max(shape.intermediate, shape.query, shape.moe_width) * 2.0 / s.plan.tp


def _casts(s: Setup, st: Static, stage: Stage, checkpoints: bool) -> tuple[float, float, float, float]:
    """16-bit casts of fp32 weights: in the forward pass, in one block's backward, kept at the loss, of the head."""
    if s.compute_bytes == 4 or s.shard_upcast or s.plan.zero_stage >= 3:
        return 0.0, 0.0, 0.0, 0.0
    head = 2.0 * st.head_values
    if s.weight_bytes != 4:
        # The fp32 head of a k-bit base is cast for its product, and the cast is kept for the backward pass.
        head = head if s.special_bytes == 4 and s.autocast else 0.0
        return head, 0.0, head, head
    if not (s.autocast_weights or (not s.trained and s.autocast)):
        return 0.0, 0.0, 0.0, 0.0
    every = 2.0 * st.linear_values + head
    layer = 2.0 * st.linear_values / stage.layers
    if not checkpoints:
        return every, layer, every, head
    return (every, layer, head, head) if s.trained else (layer + head, layer, head, head)


def _in_backward(s: Setup) -> bool:
    return s.trained and s.optimizer.name in s.recipe.in_backward_optimizers


def _largest_unit(s: Setup, st: Static, head_bytes: float) -> float:
    """While loading: the largest tensor beside what already rests (a 16-bit layer before it is quantised)."""
    shape = s.shape
    if s.quant_bytes:
        return 2.0 * st.linear_values / max(1, shape.layers)
    return 0.0
