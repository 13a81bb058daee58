"""A training workload with nothing left open: what was stated, else what the framework's recipe does, else a default.

Every value that was not stated is in `assumed`, with its message id, for the answer to show.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Note
from rules.memory.parallel import ParallelPlan, parallel_plan
from rules.memory.training.adapters import NO_ADAPTERS, Adapted, adapted
from rules.memory.training.formats import DOUBLE_QUANT_SAVING, WeightFormat, value_bytes, weight_format
from rules.memory.training.optimizers import Optimizer, find_optimizer
from rules.memory.training.recipe import Recipe, find_recipe
from rules.memory.training.releases import versions_of_month
from rules.memory.training.shape import Shape, shape_of
from rules.records import dataclass
from rules.workload import Given, TrainingWorkload

_LIMIT = 1e12  # no length, batch or count is beyond this
_FP32 = frozenset(("fp32", "float32", "tf32", "float", "fp64"))


@dataclass(slots=True, kw_only=True)
class Setup:
    """Concrete settings of one device's share of the run. Bytes are bytes a value unless the name says otherwise."""

    recipe: Recipe
    plan: ParallelPlan
    shape: Shape
    method: str
    trained: bool  # the base weights are trained
    trained_share: float  # of the base weights
    adapters: Adapted
    format: WeightFormat
    quant_bytes: float
    expert_bytes: float  # of routed experts, where they are stored in another type than the rest
    weight_bytes: float  # of base weights that are not quantised, as they rest
    special_bytes: float  # of embeddings, norms and head
    compute_bytes: float
    stream_bytes: float  # of the residual stream
    linear_bytes: float  # of what a linear layer returns
    gather_bytes: float  # of a weight as ZeRO-3 or FSDP gathers it
    autocast: bool
    autocast_weights: bool  # fp32 weights are cast to 16 bits for each product and the casts stay cached
    grad_bytes: float
    master_bytes: float  # of the optimizer's own copy of the weights
    shard_upcast: bool  # FSDP keeps fp32 shards
    optimizer: Optimizer
    stated_state_bytes: float | None
    step: str
    adapter_bytes: float
    batch: float
    length: float
    checkpointing: str
    checkpoint_offload: bool
    attention: str
    loss: str
    compiled: bool
    grads_alive: bool
    offload_optimizer: bool
    offload_params: bool
    offload_activations: bool
    packed: bool
    in_flight: float
    assumed: list[Note]

    @property
    def predicts_tokens(self) -> bool:
        """Whether the loss is over the vocabulary: language models, and encoders while they are pre-trained."""
        return self.shape.causal or self.shape.cross or self.method == "pretrain"

    @property
    def tokens(self) -> float:
        """Tokens that one device works on in one pass, before tensor parallelism splits widths."""
        return self.batch * self.length


def _value(given: Given[Any] | None) -> Any:
    return given.value if isinstance(given, Given) else None


def _number(given: Given[Any] | None) -> float | None:
    """A positive finite number, None for everything else that somebody may have put there."""
    value = _value(given)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(number, _LIMIT) if math.isfinite(number) and number > 0 else None


def _text(given: Given[Any] | None) -> str | None:
    value = _value(given)
    return str(value).strip().lower() if value is not None and str(value).strip() else None


def _versions(workload: TrainingWorkload) -> str | None:
    """The versions stated, else those that were current when the software is dated."""
    month = _text(workload.software_month)
    return _text(workload.framework_version) or (versions_of_month(month) if month else None)


def resolve(workload: TrainingWorkload, model: ModelSpec) -> Setup:
    """Settles every setting of the workload. Raises `UnsupportedWorkload` where the model has no usable shape."""
    if not model.params_total or not (model.layers or model.hidden):
        raise UnsupportedWorkload("training_model_shape_unknown", model=model.hf_id)
    assumed: list[Note] = []

    def assume(field: str, value: object, why: str = "training_default") -> None:
        assumed.append(Note("training_assumed", {"field": field, "value": str(value), "why": why}))

    recipe = find_recipe(_text(workload.framework), _versions(workload))
    hardware = sum(max(1, h.count) for h in workload.hardware if isinstance(h.count, int)) or None
    plan = parallel_plan(
        _text(workload.sharding),
        hardware,
        dp=_whole(workload.dp),
        tp=_whole(workload.tp),
        pp=_whole(workload.pp),
        cp=_whole(workload.cp),
        ep=_whole(workload.ep),
        vp=_whole(workload.vp),
        sequence_parallel=_value(workload.sequence_parallel),
        default_stage=recipe.zero_stage,
    )
    method = _method(_text(workload.method), _text(workload.weights_dtype))
    if workload.method is None:
        assume("method", method)
    trained = method in ("full", "pretrain", "freeze")
    shape = shape_of(model, _whole(workload.layers), _cut(workload.dense_layers), recipe.untied_head)
    adapters = NO_ADAPTERS if trained else _adapters(workload, shape, method, recipe, assume)
    share = _trained_share(workload, shape, method)

    compute = _text(workload.compute_dtype)
    stored = _text(workload.weights_dtype)
    if stored is None:
        stored = "nf4" if method == "qlora" else ("fp32" if trained and recipe.precision == "autocast" else "bf16")
        assume("weights_dtype", stored)
    form = weight_format(stored) or WeightFormat("bf16", 2.0, False)
    quantised = form.quantised and not trained
    if form.quantised and trained:
        form = WeightFormat("bf16", 2.0, False)  # fp8 and fp4 pre-training keep 16-bit weights
    base_bytes = 2.0 if quantised else form.bytes
    sixteen = compute not in _FP32 if compute else base_bytes <= 2
    compute_bytes = 2.0 if sixteen else 4.0
    mixed = _value(workload.mixed_precision)

    precision = _precision(recipe, plan, base_bytes, sixteen, mixed, trained)
    if precision == "autocast":
        base_bytes = 4.0  # automatic mixed precision keeps fp32 weights, whatever the checkpoint's type
    shard_upcast = precision == "sharded"
    autocast_weights = precision == "autocast" and sixteen and base_bytes == 4
    autocast = autocast_weights or (
        sixteen and not trained and (recipe.autocast or (bool(mixed) and (recipe.mixed_is_autocast or base_bytes == 4)))
    )
    kbit = quantised and recipe.kbit_fp32 and form.prepared_fp32 and not (plan.fsdp and recipe.autocast)
    stream = 4.0 if kbit or (base_bytes == 4 and not shard_upcast and precision != "master") else 2.0
    if shape.post_norm and autocast and recipe.family == "hf":
        stream = 4.0  # blocks that end in a layer norm hand on what autocast computes in fp32
    linear = stream if kbit else base_bytes if precision == "pure" and not autocast else compute_bytes
    master = precision in ("master", "sharded")
    grad = value_bytes(_text(workload.grad_dtype), 0.0)
    if not grad:
        grad = (4.0 if shard_upcast else float(recipe.grad_bytes)) if master else base_bytes

    name = _text(workload.optimizer)
    if name is None:
        name = recipe.optimizer
        assume("optimizer", name)
    optimizer, known = find_optimizer(name)
    if not known:
        assumed.append(Note("training_optimizer_unknown", {"name": name}))
    batch, length, packed = _sizes(workload, recipe, plan, model, assume)
    checkpointing = _checkpointing(_text(workload.checkpointing), recipe, kbit, assume)
    attention = _text(workload.attention) or recipe.attention
    loss = recipe.loss
    fused = _value(workload.fused_loss)
    if fused is not None:
        plain = recipe.loss in ("stock", "native")
        if fused:
            loss = _fused_kind(recipe) if recipe.loss == "stock" else recipe.loss
        elif not plain:
            loss = "stock"
    elif workload.framework is None:
        assume("loss", loss)
    accumulation = _number(workload.grad_accum) or 1
    offload = _text(workload.offload) or ""
    double = _value(workload.double_quant)
    double = recipe.double_quant if double is None else bool(double)
    quant_bytes = form.bytes
    if quantised and form.name in ("nf4", "fp4", "4bit", "bnb") and double:
        quant_bytes -= DOUBLE_QUANT_SAVING
    return Setup(
        recipe=recipe,
        plan=plan,
        shape=shape,
        method=method,
        trained=trained,
        trained_share=share,
        adapters=adapters,
        format=form,
        quant_bytes=quant_bytes if quantised else 0.0,
        expert_bytes=value_bytes(_text(workload.experts_dtype), 0.0),
        weight_bytes=base_bytes,
        special_bytes=4.0 if kbit else base_bytes,
        compute_bytes=compute_bytes,
        stream_bytes=stream,
        linear_bytes=linear,
        gather_bytes=compute_bytes if shard_upcast else base_bytes,
        autocast=autocast,
        autocast_weights=autocast_weights,
        grad_bytes=grad,
        master_bytes=4.0 if master else 0.0,
        shard_upcast=shard_upcast,
        optimizer=optimizer,
        stated_state_bytes=value_bytes(_text(workload.optimizer_state_dtype), 0.0) or None,
        step="fused" if optimizer.fused_only else recipe.step,
        adapter_bytes=4.0 if base_bytes == 4 else float(recipe.adapter_bytes),
        batch=batch,
        length=length,
        checkpointing=checkpointing,
        checkpoint_offload=recipe.checkpoint_offload and checkpointing == "full",
        attention=attention,
        loss=loss,
        compiled=bool(_value(workload.compile)),
        grads_alive=accumulation > 1 or recipe.gradients_kept,
        offload_optimizer="optimizer" in offload or ("param" in offload and "cpu" in offload) or offload == "cpu",
        offload_params="param" in offload,
        offload_activations="activation" in offload,
        packed=packed,
        in_flight=float(plan.pp),
        assumed=assumed,
    )


def _whole(given: Given[Any] | None) -> int | None:
    number = _number(given)
    return int(number) if number and number >= 1 else None


def _cut(given: Given[Any] | None) -> int | None:
    value = _value(given)
    return int(value) if isinstance(value, (int, float)) and math.isfinite(value) and 0 <= value < 1e6 else None


def _method(stated: str | None, weights: str | None) -> str:
    if stated is None:
        form = weight_format(weights) if weights else None
        return "qlora" if form and form.quantised and form.name not in ("fp8", "float8", "mxfp8") else "full"
    for word in ("qlora", "dora", "lora", "pretrain", "freeze", "frozen"):
        if word in stated:
            return "freeze" if word == "frozen" else word
    return "lora" if any(w in stated for w in ("adapter", "peft", "ia3", "prefix", "prompt", "oft", "vera")) else "full"


def _adapters(workload: TrainingWorkload, shape: Shape, method: str, recipe: Recipe, assume: Any) -> Adapted:
    rank = _whole(workload.lora_rank)
    targets = _value(workload.lora_targets)
    if rank is None:
        rank = 16
        assume("lora_rank", rank)
    if targets is None:
        targets = "all_linear"
        assume("lora_targets", targets)
    targets = tuple(str(t) for t in targets) if isinstance(targets, (list, tuple, set, frozenset)) else str(targets)
    experts = _value(workload.experts_trained)
    if experts is None and recipe.adapts_experts:
        experts = True
    found = adapted(shape, targets, min(rank, 1 << 20), None if experts is None else bool(experts), method == "dora")
    stated = _number(workload.trainable_params)
    return replace(found, weights=min(stated, 2.0 * shape.total)) if stated else found


def _trained_share(workload: TrainingWorkload, shape: Shape, method: str) -> float:
    if method != "freeze":
        return 1.0
    stated = _number(workload.trainable_params)
    return min(1.0, stated / shape.total) if stated else 0.25


def _precision(
    recipe: Recipe, plan: ParallelPlan, base_bytes: float, sixteen: bool, mixed: bool | None, trained: bool
) -> str:
    """pure | autocast | master | sharded: where the fp32 copy of trained weights lives, if anywhere."""
    if not trained or not sixteen:
        return "pure"
    if base_bytes >= 4:
        if plan.fsdp or (plan.zero_stage and recipe.name in ("torchtitan", "hf-trainer", "liger", "fms-acceleration")):
            return "sharded" if plan.fsdp or recipe.name == "torchtitan" else "master"
        return "master" if recipe.precision == "master" or plan.zero_stage else "autocast"
    if mixed is None and recipe.precision != "pure":
        mixed = True
    if mixed is None and plan.zero_stage and not plan.fsdp:
        mixed = True
    if mixed:
        if recipe.precision == "autocast" and not plan.sharded:
            return "autocast"
        return "sharded" if plan.fsdp else "master"
    if plan.sharded and recipe.master_when_sharded and mixed is None:
        return "sharded" if plan.fsdp else "master"
    return "master" if plan.zero_stage and not plan.fsdp and recipe.family == "hf" else "pure"


def _sizes(
    workload: TrainingWorkload, recipe: Recipe, plan: ParallelPlan, model: ModelSpec, assume: Any
) -> tuple[float, float, bool]:
    """Sequences and tokens a sequence on one device in one pass."""
    batch = _number(workload.micro_batch)
    if batch is None:
        whole, accumulation = _number(workload.global_batch), _number(workload.grad_accum)
        batch = max(1.0, whole / (plan.dp * (accumulation or 1))) if whole and accumulation else 1.0
        assume("micro_batch", f"{batch:g}")
    packed = _value(workload.packed)
    length, cap = _number(workload.seq_len), _number(workload.max_seq_len)
    if length is None:
        if cap is not None:
            length = cap if packed else min(cap, max(float(recipe.capped_tokens), cap * 0.25))
        else:
            length = float(recipe.capped_tokens) if not recipe.packed else 2048.0
        if model.max_position and not cap and model.domain != "llm":
            length = min(length, model.max_position)
        assume("seq_len", f"{length:g}")
    return max(1.0, batch), max(1.0, length / plan.sequence_split), bool(recipe.packed if packed is None else packed)


def _checkpointing(stated: str | None, recipe: Recipe, kbit: bool, assume: Any) -> str:
    if stated is None:
        default = "full" if kbit else recipe.checkpointing
        assume("checkpointing", default)
        return default
    if stated in ("full", "true", "yes", "on", "all", "1", "uniform", "block"):
        return "full" if recipe.checkpointing_on == "full" or stated in ("uniform", "block") else "selective_or_full"
    if stated.startswith("select"):
        return "selective"
    return "none"


def _fused_kind(recipe: Recipe) -> str:
    return {"native": "chunked", "megatron": "fast"}.get(recipe.family, "fused")
