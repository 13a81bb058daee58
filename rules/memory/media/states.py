"""What training keeps a parameter, for image, audio and diffusion models: weights, gradients, optimizer states.

Precision is pure (one format for everything) or mixed (fp32 weights, 16-bit copies made by autocast while the step
runs). Adapters train fp32 values beside a frozen base. Sharding divides what it shards by the number of devices.
"""

from __future__ import annotations

from rules.memory.footprint import Note, Part
from rules.memory.media.asked import read_format, stated, whole, words
from rules.memory.training.optimizers import find_optimizer
from rules.records import dataclass
from rules.workload import TrainingWorkload

_ADAPTERS = ("lora", "qlora", "dora", "adapter", "freeze", "peft", "textual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How the numbers are kept: bytes of a frozen or trained weight, of an activation, and whether autocast runs."""

    weight_bits: float
    autocast: bool
    value_bytes: float
    adapter: bool
    checkpointing: bool
    eager: bool


def precision_of(workload: TrainingWorkload, notes: list[Note], checkpointing_default: bool) -> Precision:
    """Reads method, formats and recomputation; full training is mixed precision where nobody says otherwise."""
    method = words(workload.method) or "full"
    adapter = any(word in method for word in _ADAPTERS)
    named = words(workload.weights_dtype)
    compute = words(workload.compute_dtype)
    mixed = stated(workload.mixed_precision)
    if named is None:
        named = "nf4" if "qlora" in method else "bf16" if adapter else "fp32"
        notes.append(
            Note("media_assumed", {"field": "weights_dtype", "value": named, "reason": "media_default_training"})
        )
    bits = read_format(named).linear_bits
    sixteen = bits <= 16 or (compute or "bf16") in ("bf16", "fp16", "bfloat16", "float16", "fp8")
    autocast = bool(mixed) if isinstance(mixed, bool) else bits > 16 and sixteen
    stated_checkpointing = words(workload.checkpointing)
    if stated_checkpointing is None:
        checkpointing = checkpointing_default
        notes.append(
            Note(
                "media_assumed",
                {"field": "checkpointing", "value": str(checkpointing), "reason": "media_default_training"},
            )
        )
    else:
        checkpointing = stated_checkpointing not in ("none", "false", "0", "no")
    return Precision(
        weight_bits=bits,
        autocast=autocast,
        value_bytes=2.0 if bits <= 16 else 4.0,
        adapter=adapter,
        checkpointing=checkpointing,
        eager=words(workload.attention) == "eager",
    )


def state_parts(
    workload: TrainingWorkload, params: float, trained: float, precision: Precision, notes: list[Note]
) -> list[Part]:
    """Weights, gradients, optimizer states and autocast copies of a model of which `trained` parameters learn."""
    devices = max(1, workload.hardware[0].count) if workload.hardware else 1
    sharding = words(workload.sharding) or "none"
    everything = devices if any(w in sharding for w in ("zero3", "fsdp", "full_shard")) else 1
    gradients_by = devices if everything > 1 or "zero2" in sharding else 1
    states_by = devices if gradients_by > 1 or "zero1" in sharding else 1
    offload = words(workload.offload) or "none"
    trained_bytes = 4.0 if precision.adapter or precision.weight_bits > 16 else precision.weight_bits / 8
    base = 0.0 if "params_cpu" in offload and precision.adapter else params * precision.weight_bits / 8
    adapters = trained * trained_bytes if precision.adapter else 0.0
    # Full-size gradients have the weights' format; 16-bit copies live through forward and backward under autocast.
    copies = 2.0 * trained if precision.autocast and not precision.checkpointing and not precision.adapter else 0.0
    optimizer, known = find_optimizer(words(workload.optimizer) or "adamw")
    if not known:
        notes.append(Note("media_unknown_optimizer", {"optimizer": words(workload.optimizer) or ""}))
    states = 0.0
    if not optimizer.cpu and "optimizer_cpu" not in offload:
        states = trained * optimizer.bytes_per_param(trained_bytes, None)
    return [
        Part("weights", base / everything, "media_train_weights", {"bits": precision.weight_bits}),
        Part("adapters", adapters / everything, "media_train_adapters", {"params_m": round(trained / 1e6, 2)}),
        Part("weights_16bit_copies", copies / everything, "media_train_autocast_copies"),
        Part("gradients", trained * trained_bytes / gradients_by, "media_train_gradients"),
        Part("optimizer", states / states_by, "media_train_optimizer", {"optimizer": optimizer.name}),
    ]


def adapters_of(workload: TrainingWorkload, params: float, per_rank: float | None, default_rank: int = 16) -> float:
    """Trained parameters of an adapter: stated, by rank and layers, or as a usual share of the model."""
    given = stated(workload.trainable_params)
    if isinstance(given, (int, float)) and not isinstance(given, bool) and 0 < given <= 1e13:
        return min(float(given), params)
    rank = whole(workload.lora_rank, "lora_rank") or default_rank
    slope = per_rank or params * 0.0005
    targets = stated(workload.lora_targets)
    wide = targets == "all_linear" or (isinstance(targets, tuple) and len(targets) > 4)
    return min(params, rank * slope * (2.4 if wide else 1.0))
