"""Evidence: published cases as the product reads them (format in tests/accuracy/cases/SCHEMA.md).

`workload_of` turns a case into the same `Workload` that a parsed question becomes. What was measured, the outcome and
the notes of a case are never read here, so a case with them and one without give the same prediction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rules.wire import WireError, read
from rules.workload import InferenceWorkload, TrainingWorkload, Workload


class CaseError(ValueError):
    """A case that cannot be read; the text says which field."""


_SAME_TRAINING = (
    "method weights_dtype mixed_precision optimizer optimizer_state_dtype grad_dtype double_quant lora_rank "
    "experts_trained experts_dtype micro_batch grad_accum global_batch seq_len max_seq_len packed fused_loss compile "
    "sharding tp pp cp ep dp vp sequence_parallel moe_capacity_factor moe_token_dispatcher offload framework "
    "framework_version fp8_recipe image_size layers dense_layers"
).split()
_RENAMED_TRAINING = {"compute": "compute_dtype", "resolution": "image_size"}

_SAME_INFERENCE = (
    "engine weights_format kv_dtype context input_len output_len batch concurrency max_num_seqs tp pp ep dp_attention "
    "experts_on_cpu experts_on_gpu gpu_memory_utilization mem_fraction_static cuda_graphs flash_attention n_ubatch "
    "n_batch mla_mode full_logits block_size split_mode kernel offload bits_per_weight file_gib draft_model_gib "
    "kv_depth cpu_threads backend image_size frames steps text_encoder_format vae_slicing compile devices_summed"
).split()
_RENAMED_INFERENCE = {
    "framework_version": "engine_version",
    "offloaded_layers": "gpu_layers",
    "attn_impl": "attention_impl",
    "gpu_mem_util": "gpu_memory_utilization",
    "max_num_batched_tokens": "max_batched_tokens",
    "resolution": "image_size",
}


def workload_of(case: Mapping[str, Any]) -> Workload:
    """The workload of one case; raises `CaseError` where a field has the wrong type or the kind is unknown."""
    kind = case.get("kind")
    training = kind in ("train_memory", "train_speed") or (kind == "verdict" and case.get("task") == "training")
    if not training and kind not in ("infer_memory", "infer_speed", "verdict"):
        raise CaseError(f"kind: {kind!r} is not one of train_memory, train_speed, infer_memory, infer_speed, verdict")
    fields: dict[str, Any] = {
        "model": {
            "name": case.get("model"),
            "params_b": case.get("params_b"),
            "active_params_b": case.get("active_params_b"),
        },
        "hardware": _hardware(case),
        "domain": case.get("domain"),
    }
    month = _month(case.get("source"))
    if month is not None:
        fields["software_month"] = {"value": month, "origin": "assumed", "reason": "month_of_the_report"}
    same, renamed = (_SAME_TRAINING, _RENAMED_TRAINING) if training else (_SAME_INFERENCE, _RENAMED_INFERENCE)
    for key, target in (*((k, k) for k in same), *renamed.items()):
        value = case.get(key)
        if value is not None and target not in fields:
            fields[target] = {"value": tuple(value) if isinstance(value, list) else value}
    try:
        if not training:
            fields.setdefault("engine", _given(case.get("framework")))
            fields.setdefault("host_cpu", _given(_host_cpu(case.get("gpu"))))
            _cuda_graphs(case, fields)
            return read(InferenceWorkload, fields)
        _training_words(case, fields)
        return read(TrainingWorkload, fields)
    except WireError as exc:
        raise CaseError(str(exc)) from exc


def _given(value: Any) -> dict[str, Any] | None:
    return None if value is None else {"value": value}


def _host_cpu(machine: Any) -> str | None:
    """The CPU in "RTX 4090 + 2x Xeon Gold 6454S"."""
    return machine.partition(" + ")[2] or None if isinstance(machine, str) else None


def _month(source: Any) -> str | None:
    """The month in which a report was seen, which dates its software where no version is given."""
    seen = source.get("seen") if isinstance(source, Mapping) else None
    found = re.search(r"\b(20[12]\d)-(0[1-9]|1[0-2])\b", seen) if isinstance(seen, str) else None
    return found.group(0) if found else None


def _hardware(case: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    if case.get("gpu") is None and case.get("gpu_mem_gib") is None and case.get("n_gpus") in (None, 1):
        return ()
    return ({"name": case.get("gpu") or "", "count": _count(case), "memory_gib": case.get("gpu_mem_gib")},)


def _count(case: Mapping[str, Any]) -> Any:
    count = case.get("n_gpus")
    return 1 if count is None or count == 0 else count


def _cuda_graphs(case: Mapping[str, Any], fields: dict[str, Any]) -> None:
    if case.get("enforce_eager") is not None and "cuda_graphs" not in fields:
        fields["cuda_graphs"] = {"value": not case["enforce_eager"]}


def _training_words(case: Mapping[str, Any], fields: dict[str, Any]) -> None:
    """Folds the boolean and older spellings of a training case into the workload's words."""
    recompute, checkpointing = case.get("recompute"), case.get("gradient_checkpointing")
    if recompute is not None:
        fields["checkpointing"] = {"value": str(recompute)}
    elif checkpointing is not None:
        fields["checkpointing"] = {"value": "full" if checkpointing else "none"}
    targets = case.get("lora_targets")
    if targets is not None:
        fields["lora_targets"] = {"value": tuple(targets) if isinstance(targets, list) else str(targets)}
    if case.get("attn_impl") is not None:
        fields["attention"] = {"value": case["attn_impl"]}
    elif case.get("flash_attention") is not None:
        fields["attention"] = {"value": "flash" if case["flash_attention"] else "eager"}
    millions = case.get("trainable_params_m")
    if millions is not None:
        fields["trainable_params"] = {"value": millions * 1e6 if isinstance(millions, (int, float)) else millions}
