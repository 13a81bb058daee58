"""What stays between steps on one device: weights, gradients, optimizer states, and buffers of the sharding.

Sources: ZeRO (arXiv 1910.02054) for the stages, the Megatron distributed optimizer (6 + 12/d bytes a parameter with
fp32 gradients), PyTorch FSDP and DDP for gathered units and buckets.
"""

from __future__ import annotations

import math

from rules.memory.training.setup import Setup
from rules.records import dataclass

_ZERO_LIVE = 1e9  # values; DeepSpeed's default of parameters that stay gathered
_ZERO_BUCKET = 5e8  # values; DeepSpeed's default reduce bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The layers of one pipeline stage: its share of the blocks and whether it holds the embedding and the head."""

    layers: float
    share: float
    first: bool
    last: bool
    in_flight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """Bytes on the device. `gathered` and `buckets` live while a pass runs."""

    weights: float
    base_values: float
    adapters: float
    gradients: float
    states: float
    master: float
    temporaries: float
    gathered: float
    buckets: float
    head_gradient: float
    embedding_gradient: float
    layer_gradient: float
    linear_values: float
    head_values: float
    trained_values: float
    cpu: float


def stages(s: Setup) -> tuple[Stage, ...]:
    """The pipeline stages that may be the fullest: the first (most in flight) and the last (the loss)."""
    shape, plan = s.shape, s.plan
    pp = min(plan.pp, shape.layers)
    if plan.device_map and plan.devices > 1:
        share = math.ceil(shape.layers / plan.devices) / shape.layers
        return (Stage(layers=shape.layers * share, share=share, first=False, last=True, in_flight=1.0),)
    if pp <= 1:
        return (Stage(layers=float(shape.layers), share=1.0, first=True, last=True, in_flight=1.0),)
    share = math.ceil(shape.layers / pp) / shape.layers
    flight = float(pp) if plan.vp <= 1 else pp * (1 + (pp - 1) / (pp * plan.vp))
    layers = shape.layers * share
    return (
        Stage(layers=layers, share=share, first=True, last=False, in_flight=flight),
        Stage(layers=layers, share=share, first=False, last=True, in_flight=1.0),
    )


def static(s: Setup, stage: Stage) -> Static:
    """Model state of one stage on one device."""
    shape, plan, a = s.shape, s.plan, s.adapters
    tp = float(plan.tp)
    embedding = (shape.embedding / tp if stage.first else 0.0) + (shape.vision if stage.first else 0.0)
    if stage.last and not stage.first and shape.tied:
        embedding = shape.embedding / tp  # the head needs its own copy of the tied table
    head = shape.head / tp if stage.last else 0.0
    dense = (shape.attention + shape.mlp + shape.shared) * stage.share / tp
    routed = shape.routed * stage.share / (plan.ep * (tp if plan.ep == 1 else 1))
    small = shape.small * stage.share

    weight_shards, expert_weight_shards = float(plan.weight_degree), float(plan.weight_degree)
    if plan.ep > 1 and plan.zero_stage >= 3:
        expert_weight_shards = float(plan.expert_state_degree)
    special = embedding + head + small
    if s.quant_bytes:
        expert_bytes = s.expert_bytes or s.quant_bytes
        rest = s.quant_bytes * dense / weight_shards + expert_bytes * routed / expert_weight_shards
        weights = rest + special * s.special_bytes / weight_shards
    else:
        at_rest = 4.0 if s.shard_upcast and plan.zero_stage >= 3 else s.weight_bytes
        weights = at_rest * ((dense + special) / weight_shards + routed / expert_weight_shards)
        if s.shard_upcast and plan.zero_stage < 3:
            weights = s.gather_bytes * (dense + special + routed)

    # What is trained on this device.
    base = dense + special + routed
    if s.trained:
        dense_trained, routed_trained = (dense + special) * s.trained_share, routed * s.trained_share
        adapters, trained_bytes = 0.0, s.weight_bytes
    else:
        expert_weights = 0.0
        adapters = (a.weights + a.magnitudes) * stage.share / tp + expert_weights
        dense_trained, routed_trained = adapters, 0.0
        trained_bytes = s.adapter_bytes
    whole = 0.0
    if a.embeddings_trained:
        whole = embedding + head
    grad_bytes = s.grad_bytes if s.trained else s.adapter_bytes
    shard, expert_shard = float(plan.state_degree), float(plan.expert_state_degree)
    grads_shard = shard if plan.zero_stage >= 2 else 1.0
    expert_grads_shard = expert_shard if plan.zero_stage >= 2 else 1.0
    gradients = grad_bytes * (dense_trained / grads_shard + routed_trained / expert_grads_shard) + whole * 4.0

    updated = s.master_bytes or trained_bytes
    state = s.optimizer.bytes_per_param(updated, s.stated_state_bytes if s.trained or s.stated_state_bytes else None)
    if not s.trained and s.stated_state_bytes is None:
        state = s.optimizer.bytes_per_param(trained_bytes, None)
    if s.optimizer.low_rank:
        state *= min(1.0, s.optimizer.low_rank / shape.hidden)
    values = dense_trained / shard + routed_trained / expert_shard
    states = state * values + whole * 8.0
    if s.optimizer.matrices_only and s.trained:
        states += state * (embedding + head + small) * s.trained_share / shard
    master = s.master_bytes * values if not (s.shard_upcast and plan.zero_stage >= 3) else 0.0
    step_values = values + whole
    temporaries = 0.0
    if s.step == "foreach":
        temporaries = s.optimizer.temporaries * step_values * (updated if s.trained else trained_bytes)
    largest = (
        max(shape.vocab * shape.hidden / tp, shape.hidden * max(shape.intermediate, shape.query) / tp)
        if s.trained
        else 0.0
    )
    temporaries += s.optimizer.largest * largest * 4.0 / shard
    cpu = 0.0
    if s.optimizer.cpu or s.offload_optimizer:
        cpu += states + (master if s.offload_optimizer else 0.0)
        states = 0.0
        if s.offload_optimizer:
            master, temporaries = 0.0, 0.0

    per_layer = (dense + small) / stage.layers
    per_layer_routed = routed / stage.layers
    gathered = buckets = 0.0
    if plan.zero_stage >= 3 and shard > 1:
        layer = (per_layer + per_layer_routed) * (s.quant_bytes or s.gather_bytes)
        root = (embedding + head) * (s.special_bytes if s.quant_bytes else s.gather_bytes)
        gathered = 2 * layer + root
        if s.trained:
            buckets = (per_layer + per_layer_routed) * s.gather_bytes * 2
        elif plan.fsdp:
            buckets = 0.0
        if plan.fsdp and s.recipe.gathers_ahead:
            gathered = layer * stage.layers + root
        if plan.fsdp and s.recipe.gathers_all and not s.trained:
            gathered = weights * shard
        if not plan.fsdp:
            gathered = 2 * layer + max(root, min(_ZERO_LIVE, base) * s.gather_bytes)
            buckets += min(_ZERO_BUCKET, base) * 2.0 if s.trained else 0.0
    elif plan.zero_stage in (1, 2) and s.recipe.family == "hf" and s.trained:
        buckets = min(_ZERO_BUCKET, dense_trained) * 2.0
    elif plan.replicas and s.recipe.family != "megatron":
        buckets = gradients
    if s.offload_params and plan.zero_stage >= 3:
        cpu += weights
        weights = 0.0
        if s.trained:
            cpu += gradients
            gradients = 0.0
    elif s.offload_optimizer and plan.zero_stage >= 2 and s.trained and not plan.fsdp:
        cpu += gradients
        gradients = 0.0
    head_values = (head or (embedding if stage.last else 0.0)) if s.predicts_tokens else 0.0
    scale = (gradients / (dense_trained + routed_trained)) if dense_trained + routed_trained > 0 else 0.0
    return Static(
        weights=weights,
        base_values=base,
        adapters=adapters * s.adapter_bytes / weight_shards,
        gradients=gradients,
        states=states,
        master=master,
        temporaries=temporaries,
        gathered=gathered,
        buckets=buckets,
        head_gradient=head_values * scale if s.trained else 0.0,
        embedding_gradient=embedding * scale if s.trained and stage.first else 0.0,
        layer_gradient=(per_layer + per_layer_routed) * scale if s.trained else 0.0,
        linear_values=dense + routed,
        head_values=head_values,
        trained_values=dense_trained + routed_trained,
        cpu=cpu,
    )
