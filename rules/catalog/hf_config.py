"""From a Hugging Face `config.json` to a catalogue row: sizes read under the names that model families give them.

The parameter count is exact where `rules.catalog.recount` covers the model type; else it is the total of the weight
files, if given, or a count of Llama-like blocks, and the row's `note` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.catalog.errors import CatalogError
from rules.catalog.hf_config_layers import experts_of, latent_attention_of, layer_kinds_of
from rules.catalog.models import ModelSpec
from rules.catalog.recount import recount, traits_of

Config = Mapping[str, Any]

_NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "decoder_layers": ("num_decoder_layers", "decoder_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels", "d_kv"),
    "intermediate": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "encoder_ffn_dim", "d_ff"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "max_position": (
        "max_position_embeddings",
        "n_positions",
        "n_ctx",
        "seq_length",
        "max_seq_len",
        "model_max_length",
    ),
}
_ENCODERS = frozenset(
    "bert roberta xlm-roberta distilbert mpnet deberta-v2 modernbert nomic_bert electra albert".split()
)
_SEQ2SEQ = frozenset("t5 mt5 umt5 bart mbart m2m_100 marian whisper pegasus".split())
_SSM = frozenset("mamba falcon_mamba mamba2".split())
_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def spec_from_config(config: Config, hf_id: str, safetensors_params: int | None = None) -> ModelSpec:
    """The spec of a `config.json`; raises `CatalogError` naming what is missing or wrong."""
    return ModelSpec.from_row(row_from_config(config, hf_id, safetensors_params), origin="config")


def row_from_config(config: Config, hf_id: str, safetensors_params: int | None = None) -> dict[str, Any]:
    """The catalogue row of a `config.json`, as it is written to an override file.

    `safetensors_params` is the parameter total of the weight files; it decides between a tied and an untied head where
    the config is silent. Raises `CatalogError` naming what is missing or wrong.
    """
    if not isinstance(config, Mapping):
        raise CatalogError("config_not_an_object", row=hf_id, detail=type(config).__name__)
    try:
        return _row(config, hf_id, safetensors_params)
    except CatalogError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError) as exc:
        raise CatalogError("config_field_invalid", row=hf_id, detail=str(exc)) from exc


def _row(config: Config, hf_id: str, safetensors_params: int | None) -> dict[str, Any]:
    text = _text_config(config)
    kind = str(text.get("model_type") or config.get("model_type") or "")
    row: dict[str, Any] = {
        "hf_id": hf_id,
        "aliases": [],
        "family": hf_id.rpartition("/")[2],
        "arch_type": _arch_type(kind, text),
        "modality": "audio" if kind == "whisper" else "text",
        "hf_class": next(iter(config.get("architectures") or []), None),
        "hf_model_type": kind or None,
    }
    row |= _sizes(text, kind, hf_id, row["arch_type"])
    row |= layer_kinds_of(text, kind, row)
    if row["arch_type"] == "decoder" and row["layer_kinds"].keys() & {"linear", "mamba", "mamba2", "conv"}:
        row["arch_type"] = "hybrid-decoder"
    if mla := latent_attention_of(text):
        row |= {"mla": mla, "kv_heads": None, "head_dim": mla["qk_nope"] + mla["qk_rope"]}
    if moe := experts_of(text, row):
        row["moe"] = moe
    if traits := _traits(text, kind):
        row["traits"] = traits
    if isinstance(config.get("vision_config"), Mapping):
        row |= {"modality": "text+image", "vision_params": _vision_params(config["vision_config"])}
    row["native_dtype"] = _DTYPES.get(
        str(config.get("torch_dtype") or config.get("dtype") or text.get("torch_dtype")), "bf16"
    )
    row["native_quant"] = (config.get("quantization_config") or {}).get("quant_method")
    row |= _counts(row, text, safetensors_params)
    row["source"] = "config.json"
    return row


def _text_config(config: Config) -> Config:
    for key in ("text_config", "llm_config", "language_config", "thinker_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping):
            return {**{k: v for k, v in config.items() if k not in ("model_type", key)}, **inner}
    return config


def _arch_type(kind: str, text: Config) -> str:
    if kind in _SEQ2SEQ or text.get("is_encoder_decoder"):
        return "encoder-decoder"
    if kind in _ENCODERS:
        return "encoder"
    return "ssm" if kind in _SSM else "decoder"


def _sizes(text: Config, kind: str, hf_id: str, arch_type: str) -> dict[str, Any]:
    found: dict[str, Any] = {field: _first(text, keys, field, hf_id) for field, keys in _NAMES.items()}
    needed = ["layers", "hidden", "vocab"] + ([] if arch_type == "ssm" else ["heads"])
    missing = [field for field in needed if not found[field]]
    if missing:
        raise CatalogError("config_field_missing", row=hf_id, detail=", ".join(missing))
    hidden, heads = found["hidden"], found["heads"]
    if text.get("multi_query") or (
        kind == "falcon" and text.get("multi_query", True) and not text.get("new_decoder_architecture")
    ):
        found["kv_heads"] = 1
    if text.get("multi_query_attention") is False:
        found["kv_heads"] = heads
    if arch_type != "ssm":
        if not found["head_dim"] and hidden % heads:
            raise CatalogError("config_heads_do_not_divide", row=hf_id, detail=f"hidden={hidden}, heads={heads}")
        found["head_dim"] = found["head_dim"] or hidden // heads
        found["kv_heads"] = found["kv_heads"] or heads
    if not found["intermediate"]:
        found["intermediate"] = 2 * hidden if arch_type == "ssm" else 4 * hidden
    tie = text.get("tie_word_embeddings")
    extra: dict[str, Any] = {"tie_embeddings": True if tie is None else bool(tie)}
    if arch_type == "ssm":
        extra["ssm"] = {"state": text.get("state_size", 16), "conv": text.get("conv_kernel", 4)}
    if arch_type == "encoder-decoder":
        extra["decoder_layers"] = found["decoder_layers"] or found["layers"]
        extra["gated_mlp"] = "gated" in str(text.get("feed_forward_proj", "")) if kind.endswith("t5") else False
        extra["n_mels"] = text.get("num_mel_bins")
    found.pop("decoder_layers")
    return found | extra


def _first(text: Config, keys: tuple[str, ...], field: str, hf_id: str) -> int | None:
    for key in keys:
        value = text.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**9:
            if isinstance(value, int) and not isinstance(value, bool) and field == "max_position":
                continue
            raise CatalogError("config_field_invalid", row=hf_id, detail=f"{key}={value!r}")
        return value
    return None


def _traits(text: Config, kind: str) -> dict[str, Any]:
    """What the config says of biases and norms where it differs from the model type's usual block."""
    usual = traits_of(kind)
    if usual is None:
        return {}
    said: dict[str, Any] = {}
    bias = text.get("attention_bias", text.get("qkv_bias"))
    if isinstance(bias, bool) and bias != usual.qkv_bias:
        said["qkv_bias"] = bias
        if kind in ("llama", "qwen3", "qwen3_moe", "granite"):
            said["out_bias"] = bias
    if isinstance(text.get("mlp_bias"), bool) and text["mlp_bias"] != usual.mlp_bias:
        said["mlp_bias"] = text["mlp_bias"]
    if kind == "cohere" and text.get("use_qk_norm"):
        said["qk_norm"] = "full"
    if kind == "glm4_moe" and text.get("use_qk_norm"):
        said["qk_norm"] = "head"
    if kind == "falcon" and not text.get("new_decoder_architecture"):
        said["norms"] = 1
    return said


def _vision_params(vision: Config) -> int:
    """Weights of a ViT-like tower: four projections and two MLP matrices a block."""
    hidden = vision.get("hidden_size") or vision.get("embed_dim") or vision.get("width") or 0
    layers = vision.get("num_hidden_layers") or vision.get("depth") or vision.get("layers") or 0
    width = vision.get("intermediate_size") or 4 * hidden
    return int(layers * (4 * hidden * hidden + 2 * hidden * width))


def _counts(row: dict[str, Any], text: Config, safetensors_params: int | None) -> dict[str, Any]:
    table = row["vocab"] * row["hidden"]
    counted, note, tie = _count(row), None, row["tie_embeddings"]
    silent = text.get("tie_word_embeddings") is None
    if safetensors_params and counted and silent and row["arch_type"] == "decoder":
        other = _count({**row, "tie_embeddings": not tie})
        if other is not None and abs(other - safetensors_params) < abs(counted - safetensors_params):
            counted, tie = other, not tie
    total = counted
    vision = row.get("vision_params")
    if total is None:
        total = safetensors_params or _llama_like(row)
        note = "counted_from_files" if safetensors_params else "counted_as_llama_like"
    elif vision and safetensors_params and safetensors_params > total - vision:
        vision, total, note = safetensors_params - (total - vision), safetensors_params, "vision_from_files"
    elif vision:
        note = "vision_estimated"
    elif safetensors_params and not row["native_quant"] and abs(safetensors_params / total - 1) > 0.01:
        note = "files_disagree"
    moe = row.get("moe")
    spare = (
        moe["moe_layers"] * (moe["experts"] - moe["active"]) * 3 * row["hidden"] * moe["expert_intermediate"]
        if moe
        else 0
    )
    found = {
        "params_total": int(total),
        "params_active": max(1, int(total - spare)),
        "params_published": safetensors_params,
        "params_embedding": table,
        "tie_embeddings": tie,
    }
    return found | ({"vision_params": int(vision)} if vision else {}) | ({"note": note} if note else {})


def _count(row: Mapping[str, Any]) -> int | None:
    try:
        return recount(row)
    except (KeyError, TypeError):
        return None


def _llama_like(row: Mapping[str, Any]) -> int:
    stand_in = {**row, "hf_model_type": "llama", "arch_type": "decoder", "layer_kinds": {}, "traits": {}}
    if not stand_in.get("heads"):
        return int(row["vocab"] * row["hidden"] + row["layers"] * 6 * row["hidden"] ** 2)
    stand_in["kv_heads"] = stand_in.get("kv_heads") or stand_in["heads"]
    return int(recount(stand_in) or 0)
