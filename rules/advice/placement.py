"""Placing a workload on devices: the parallel plan that a stated or candidate set of devices gets (T3).

A plan that the user stated is kept. Otherwise serving engines split every layer over the devices (tensor parallel) as
far as the heads divide, the rest in pipeline stages; file-based engines split by layers; training shards states where
one device cannot hold a copy. A plan's name is a message id with its degrees.
"""

from __future__ import annotations

from dataclasses import replace

from rules.catalog.accelerators import Accelerator
from rules.catalog.models import ModelSpec
from rules.memory.footprint import Note
from rules.records import dataclass
from rules.workload import Given, Hardware, InferenceWorkload, TrainingWorkload, Workload

_LAYER_SPLIT_ENGINES = ("llama.cpp", "ik_llama.cpp", "ollama", "exllama", "exllamav2", "mlx", "transformers")
_ADAPTER_METHODS = ("lora", "qlora", "dora")
SINGLE = Note("plan_single")


@dataclass(frozen=True, slots=True)
class Placed:
    """A workload with its plan written into its fields. `plan` is said to people ("TP 2", "FSDP over 8")."""

    workload: Workload
    plan: Note
    notes: tuple[Note, ...] = ()


def place(workload: Workload, model: ModelSpec, device: Accelerator | None, count: int, shard: bool = False) -> Placed:
    """Places `workload` on `count` equal devices; `shard` asks for sharded weights where replicas would be usual."""
    name = device.name if device else "device"
    hardware = (Hardware(name=name, count=count, memory_gib=device.memory_gib if device else None),)
    workload = replace(workload, hardware=hardware)
    if isinstance(workload, TrainingWorkload):
        return _place_training(workload, device, count, shard)
    return _place_inference(workload, model, device, count)


def _assumed(value: int) -> Given[int]:
    return Given(value, origin="assumed", reason="placement")


def _place_inference(workload: InferenceWorkload, model: ModelSpec, device: Accelerator | None, count: int) -> Placed:
    if count == 1:
        return Placed(workload, SINGLE)
    if workload.tp is not None or workload.pp is not None:
        tp = workload.tp.value if workload.tp else 1
        pp = workload.pp.value if workload.pp else max(1, count // max(1, tp))
        return Placed(workload, _plan_name(tp, pp), _link_notes(device, tp))
    engine = workload.engine.value.lower() if workload.engine else "vllm"
    if model.domain != "llm":
        return Placed(workload, Note("plan_replicas", {"count": count}))
    if engine in _LAYER_SPLIT_ENGINES:
        split = replace(workload, pp=_assumed(count), tp=_assumed(1))
        return Placed(split, Note("plan_layers", {"count": count}))
    tp = tensor_parallel_degree(model, count)
    pp = count // tp
    notes = list(_link_notes(device, tp))
    if tp < count:
        notes.append(Note("heads_do_not_divide", {"heads": model.heads or 0, "count": count, "tp": tp, "pp": pp}, "T3"))
    return Placed(replace(workload, tp=_assumed(tp), pp=_assumed(pp)), _plan_name(tp, pp), tuple(notes))


def tensor_parallel_degree(model: ModelSpec, count: int) -> int:
    """The largest divisor of `count` that the attention heads (and KV heads, by division or repetition) allow."""
    heads = model.heads or 1
    kv_heads = model.kv_heads or heads
    for tp in range(count, 0, -1):
        if count % tp or heads % tp:
            continue
        if kv_heads % tp == 0 or tp % kv_heads == 0 or model.mla:
            return tp
    return 1


def _plan_name(tp: int, pp: int) -> Note:
    if tp > 1 and pp > 1:
        return Note("plan_tp_pp", {"tp": tp, "pp": pp})
    if tp > 1:
        return Note("plan_tp", {"tp": tp})
    return Note("plan_pp", {"pp": pp}) if pp > 1 else SINGLE


def _sharded_name(kind: str, count: int) -> Note:
    return Note("plan_sharded", {"kind": kind.upper(), "count": count})


def _link_notes(device: Accelerator | None, tp: int) -> tuple[Note, ...]:
    if device is None or tp < 2:
        return ()
    if device.nvlink_gb_s:
        return (Note("link_nvlink", {"rate_gb_s": device.nvlink_gb_s, "device": device.name}, "T3"),)
    return (Note("link_pcie", {"pcie": device.pcie or "PCIe", "device": device.name}, "T3"),)


def _place_training(workload: TrainingWorkload, device: Accelerator | None, count: int, shard: bool) -> Placed:
    if count == 1:
        if workload.sharding is None:
            workload = replace(workload, sharding=Given("none", origin="assumed", reason="placement"))
        return Placed(workload, SINGLE)
    if workload.sharding is not None:
        return Placed(workload, _sharded_name(workload.sharding.value, count), _link_notes(device, count))
    method = workload.method.value if workload.method else "full"
    kind = "ddp" if method in _ADAPTER_METHODS and not shard else "fsdp"
    placed = replace(workload, sharding=Given(kind, origin="assumed", reason="placement"))
    return Placed(placed, _sharded_name(kind, count), _link_notes(device, count))
