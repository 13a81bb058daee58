"""Builds the model that a trace runs, with shapes and no memory: from a configuration or from the user's own module.

Everything is made on torch's `meta` device: transformers, peft and bitsandbytes run their own construction code, so the
modules, adapters and quantised layers are the real ones. `catalogue_row` describes the built model in the columns of
the catalogue, with the parameters counted on the modules, so that the memory law can be asked about the same model.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bench_agent.cuda_behaviour import CudaBehaviour
from bench_agent.exact_memory import TraceRefused, TraceRequest

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_LORA_ALPHA_PER_RANK = 2  # scales values, takes no memory

# Function modes are off while autograd runs, so the recomputation enters its own.
_CHECKPOINTING = {
    "use_reentrant": False,
    "preserve_rng_state": False,
    "context_fn": lambda: (contextlib.nullcontext(), CudaBehaviour()),
}
_LEARNED_POSITIONS = ("gpt2", "bert")  # a longer sequence has no position to look up


@dataclass(frozen=True, slots=True)
class Built:
    """A model and its batch on the meta device; `row` is None for a user's own module."""

    model: nn.Module
    batch: Mapping[str, torch.Tensor] | tuple[Any, ...]
    row: Mapping[str, Any] | None


def build(request: TraceRequest) -> Built:
    """The model of `request`, adapted for its method; raises `TraceRefused` for what cannot be built."""
    if request.own_module:
        model, batch, row = *_own_module(request.own_module), None
    else:
        model = _from_config(request)
        batch = _batch(model, request)
        row = catalogue_row(model, request.name)
    if request.checkpointing and not hasattr(model, "gradient_checkpointing_enable"):
        raise TraceRefused("checkpointing: the module has no gradient_checkpointing_enable method")
    if request.method == "full" and request.mixed_precision and any(p.dim() == 3 for p in model.parameters()):
        raise TraceRefused("mixed precision: torch's grouped multiplication of fused experts runs in bf16 only")
    if request.method == "qlora":
        _quantise(model, request)
    if request.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=_CHECKPOINTING)
    if request.method in ("lora", "qlora"):
        model = _with_adapters(model, request)
    model.train()
    return Built(model, batch, row)


def _from_config(request: TraceRequest) -> nn.Module:
    import transformers

    fields = dict(request.config or {})
    model_type = fields.pop("model_type", None)
    if not model_type:
        raise TraceRefused("config: no model_type")
    try:
        config = transformers.AutoConfig.for_model(model_type, **fields)
    except (ValueError, TypeError) as exc:
        raise TraceRefused(f"config: {exc}") from exc
    config.use_cache = False
    named = (fields.get("architectures") or [None])[0]
    kind = getattr(transformers, named, None) if named else None
    if kind is None or not hasattr(kind, "_from_config"):
        kind = transformers.AutoModelForCausalLM._model_mapping.get(type(config))
    if kind is None or isinstance(kind, (list, tuple)):
        raise TraceRefused(f"config: transformers {transformers.__version__} has no causal model for {model_type!r}")
    dtype = DTYPES[request.loaded_dtype]
    try:
        with torch.device("meta"):
            return kind._from_config(config, dtype=dtype, attn_implementation=request.attention)
    except (ValueError, ImportError) as exc:
        raise TraceRefused(str(exc).splitlines()[0]) from exc


def _own_module(path: str) -> tuple[nn.Module, Any]:
    module_name, _, attribute = path.partition(":")
    if not attribute:
        raise TraceRefused(f"own module: {path!r} is not module:callable")
    try:
        make = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError) as exc:
        raise TraceRefused(f"own module: {exc}") from exc
    with torch.device("meta"):
        made = make()
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module)):
        raise TraceRefused(f"own module: {path} must return (module, batch)")
    model, batch = made
    if not isinstance(batch, (Mapping, tuple)):
        batch = (batch,)
    return model, batch


def _batch(model: nn.Module, request: TraceRequest) -> dict[str, torch.Tensor]:
    shape = (request.micro_batch, request.seq_len)
    config = model.config.get_text_config()
    limit = getattr(config, "max_position_embeddings", None)
    if limit and config.model_type in _LEARNED_POSITIONS and request.seq_len > limit:
        raise TraceRefused(f"seq_len: {request.seq_len} is over the model's {limit} learned positions")
    classifier = type(model).__name__.endswith("ForSequenceClassification")
    return {
        "input_ids": torch.empty(shape, dtype=torch.int64, device="meta"),
        "labels": torch.empty(shape[:1] if classifier else shape, dtype=torch.int64, device="meta"),
    }


def block_linears(model: nn.Module) -> list[str]:
    """Names of the linear layers inside the blocks: all but the output head and classifiers."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    from transformers.pytorch_utils import Conv1D

    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, Conv1D)) and module is not head and "." in name and "pooler" not in name
    ]


def _quantise(model: nn.Module, request: TraceRequest) -> None:
    """Replaces the blocks' linear layers by bitsandbytes 4-bit layers, as transformers does at load time."""
    import bitsandbytes as bnb
    from peft import prepare_model_for_kbit_training

    linears = [name for name in block_linears(model) if isinstance(model.get_submodule(name), nn.Linear)]
    if not linears:
        raise TraceRefused("qlora: the model has no nn.Linear layers inside its blocks")
    if any(parameter.dim() == 3 for parameter in model.parameters()):
        raise TraceRefused("qlora: bitsandbytes leaves fused expert weights in 16 bits, so 4-bit MoE is not traced")
    for name in linears:
        parent, _, leaf = name.rpartition(".")
        old = model.get_submodule(name)
        new = bnb.nn.Linear4bit(
            old.in_features,
            old.out_features,
            old.bias is not None,
            compute_dtype=DTYPES[request.compute_dtype],
            compress_statistics=False,
            quant_type="nf4",
            device="meta",
        )
        if old.bias is not None:
            new.bias = nn.Parameter(new.bias.to(DTYPES[request.loaded_dtype]), requires_grad=False)
        setattr(model.get_submodule(parent), leaf, new)
    model.is_loaded_in_4bit = True
    if request.kbit_prepared:
        prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)


def _with_adapters(model: nn.Module, request: TraceRequest) -> nn.Module:
    from peft import LoraConfig, get_peft_model

    names = block_linears(model)
    if request.lora_targets != "all_linear":
        wanted = tuple(request.lora_targets.split(","))
        names = [name for name in names if name.rpartition(".")[2] in wanted]
    if not names:
        raise TraceRefused(f"lora_targets: no layer of the model matches {request.lora_targets!r}")
    config = LoraConfig(r=request.lora_rank, lora_alpha=_LORA_ALPHA_PER_RANK * request.lora_rank, target_modules=names)
    return get_peft_model(model, config)


def catalogue_row(model: nn.Module, name: str) -> dict[str, Any]:
    """The built model in the columns of the model catalogue; counts are of distinct parameters."""
    config = model.config.get_text_config()
    total = sum(p.numel() for p in model.parameters())
    heads = config.num_attention_heads
    encoder = config.model_type == "bert"
    experts = getattr(config, "num_local_experts", None)
    width = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * config.hidden_size
    kinds: dict[str, int] = {}
    for kind in getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers:
        short = "sliding" if kind.startswith("sliding") else "full"
        kinds[short] = kinds.get(short, 0) + 1
    row: dict[str, Any] = {
        "hf_id": f"trace/{name}",
        "arch_type": "encoder" if encoder else "decoder",
        "modality": "text",
        "hf_model_type": config.model_type,
        "params_total": total,
        "params_active": total,
        "params_embedding": model.get_input_embeddings().weight.numel(),
        "layers": config.num_hidden_layers,
        "hidden": config.hidden_size,
        "intermediate": width,
        "heads": heads,
        "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "vocab": config.vocab_size,
        "tie_embeddings": None if encoder else bool(config.tie_word_embeddings),
        "max_position": config.max_position_embeddings,
        "layer_kinds": kinds,
        "sliding_window": config.sliding_window if "sliding" in kinds else None,
    }
    if experts:
        active, layers = config.num_experts_per_tok, config.num_hidden_layers
        row["moe"] = {
            "experts": experts,
            "active": active,
            "shared": 0,
            "expert_intermediate": width,
            "shared_intermediate": 0,
            "moe_layers": layers,
        }
        row["params_active"] = total - layers * (experts - active) * 3 * config.hidden_size * width
    return row
