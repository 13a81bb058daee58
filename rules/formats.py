"""Number formats: bits a weight or cached value takes, block scales and zeros included.

Bits of the ggml block types, the mixes of llama.cpp's quantiser, GPTQ/AWQ/NF4/FP8/MX checkpoints and KV caches live in
`data/formats.toml` with their sources. A format does not know a model: `rules.memory.inference.weights` applies it
tensor by tensor. What a checkpoint format leaves alone (embedding, head, norms) stays in 16 bits.

UnknownFormat   a name that no rule here can read
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import tomli

from rules.records import dataclass


class UnknownFormat(ValueError):
    """A number format that nobody here knows; the text is the name."""


@dataclass(frozen=True, slots=True)
class MixRule:
    """One rule of a GGUF mix: in `layers` (a selector of `formats.toml`), under `condition`, use `type`."""

    type: str
    layers: str = "all"
    condition: str = ""


@dataclass(frozen=True, slots=True)
class GgufMix:
    """What each tensor of a GGUF file is stored in; `scale` corrects mixes that follow another mix only roughly."""

    name: str
    base: str
    rules: Mapping[str, tuple[MixRule, ...]]
    experts: str | None = None
    moe_rest: str | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Bits a weight by place. `mix` is set for GGUF files and then rules over the other fields.

    `group` is the number of weights that share a scale (None where rows or tensors do).
    """

    name: str
    kind: Literal["gguf", "checkpoint"]
    linear_bits: float
    experts_bits: float
    embedding_bits: float = 16.0
    head_bits: float = 16.0
    rest_bits: float = 16.0
    attention_bits: float | None = None
    group: int | None = None
    mix: GgufMix | None = None

    @property
    def quantised(self) -> bool:
        """True where the linear layers or the experts take fewer than 16 bits."""
        return min(self.linear_bits, self.experts_bits) < 16


@dataclass(frozen=True, slots=True)
class KvFormat:
    """Bits of a cached key and value element."""

    name: str
    key_bits: float
    value_bits: float


@cache
def _data() -> dict[str, Any]:
    text = resources.files("rules").joinpath("data/formats.toml").read_text("utf-8")
    return tomli.loads(text)


def gguf_bits(type_name: str, row: int | None = None) -> float:
    """Bits a weight of a ggml type; `row` is the row length, which may force a narrower block (see the data file)."""
    data = _data()
    name = _gguf_type(type_name)
    if row and row % 256 and name in data["gguf_narrow"]:
        name = data["gguf_narrow"][name]
    return float(data["gguf_types"][name])


def _gguf_type(name: str) -> str:
    types = _data()["gguf_types"]
    upper = re.sub(r"_R(4|8|16)$", "", name.upper())
    if upper not in types:
        raise UnknownFormat(name)
    return upper


@lru_cache(maxsize=256)
def weight_format(name: str) -> WeightFormat:
    """Reads a weights format as people write it ("gguf:Q4_K_M", "gptq-4bit-g32-act", "exl2:4.65", "nf4", "bf16").

    Raises `UnknownFormat`.
    """
    text = name.strip().lower().replace(" ", "-")
    body = re.sub(r"^gg(uf|ml)[:\-_]?|-custom$", "", text)
    if text.startswith("gg") or _is_gguf(body):
        return _gguf(body.upper().replace("-", "_").replace("UD_", "UD-") or "Q4_K_M")
    for reader in (_bits_named, _plain, _grouped):
        found = reader(text)
        if found:
            return found
    raise UnknownFormat(name)


def published_format(text: str, model_type: str | None, layers: int | None) -> str:
    """The format that a model's published checkpoint really has where its name says `text` (else `text` itself)."""
    for row in _data()["published"]:
        if row["format"] == text and row["model_type"] == model_type and row.get("layers", layers) == layers:
            return str(row["as"])
    return text


def gguf_for(fmt: WeightFormat) -> WeightFormat:
    """The GGUF mix that stands for a checkpoint format under llama.cpp; a format without one stays itself."""
    if fmt.kind == "gguf":
        return fmt
    data = _data()
    key = data["same_as"].get(fmt.name, fmt.name)
    mix = data["gguf_for"].get(key)
    return weight_format(f"gguf:{mix}") if mix else fmt


def _is_gguf(text: str) -> bool:
    if re.match(r"q\df(16|32)", text):  # MLC's names
        return False
    plain = text.replace("-", "_")
    return bool(re.match(r"(ud_)?(i?q\d|tq\d|mxfp4_moe)", plain)) and "_" in plain


def _gguf(name: str) -> WeightFormat:
    mix = gguf_mix(name)
    bits = gguf_bits(mix.base) * mix.scale
    experts = gguf_bits(mix.experts) if mix.experts else bits
    return WeightFormat(f"gguf:{name}", "gguf", bits, experts, bits, bits, 32.0, mix=mix)


@lru_cache(maxsize=256)
def gguf_mix(name: str) -> GgufMix:
    """The mix of a GGUF quantisation name; raises `UnknownFormat`."""
    data = _data()
    if name in data["gguf_like"]:
        entry = data["gguf_like"][name]
        like = gguf_mix(entry["like"])
        return GgufMix(name, like.base, like.rules, like.experts, like.moe_rest, float(entry["scale"]))
    plain = re.sub(r"_R(4|8|16)$", "", name)
    plain = {"F16": "F16", "FP16": "F16", "FP32": "F32", "MXFP4": "MXFP4_MOE", "Q4": "Q4_0", "Q8": "Q8_0"}.get(
        plain, plain
    )
    row = data["gguf_mixes"].get(plain)
    if row is None:
        base = _gguf_type(plain)
        own = data["gguf_own"]
        tables = {"output": (MixRule(own["dense_output"]),), "token_embd": (MixRule(own["token_embd"]),)}
        return GgufMix(name, base, tables, moe_rest=own["moe_rest"])
    rules = {key: tuple(_rule(text) for text in value) for key, value in row.items() if isinstance(value, list)}
    rules.setdefault("output", (MixRule("Q6_K"),))
    return GgufMix(name, row["base"], rules, row.get("experts"))


def _rule(text: str) -> MixRule:
    *heads, kind = text.split(":")
    condition = next((h for h in heads if h.startswith("gqa")), "")
    layers = next((h for h in heads if not h.startswith("gqa")), "all")
    return MixRule(kind, layers, condition)


def _bits_named(text: str) -> WeightFormat | None:
    """EXL2/EXL3: the name is the bits a weight of the blocks, the head has its own."""
    match = re.match(r"(?:exl[23])[:\-_]?(\d+(?:\.\d+)?)?", text) or re.match(r"(\d+(?:\.\d+)?)[\-_]?bpw", text)
    if not match:
        return None
    bits = float(match.group(1) or 4.0)
    head = re.search(r"h(\d)", text[match.end() :])
    head_bits = float(head.group(1) if head else _data()["exl2"]["head_bits"])
    return WeightFormat(text, "checkpoint", bits, bits, head_bits=head_bits)


def _plain(text: str) -> WeightFormat | None:
    key = re.sub(r"[_:]", "-", text)
    key = _data()["same_as"].get(key, key)
    rows = _data()["checkpoint"]
    if key not in rows:
        key = re.sub(r"^(fp8|int8|bf16|fp16|nf4|nvfp4|mxfp4|mxfp8)-.*$", r"\1", key)
    row = rows.get(key)
    if row is None:
        return None
    linear = float(row["linear"])
    rest = float(row.get("rest", 16.0))
    return WeightFormat(
        text,
        "checkpoint",
        linear,
        float(row.get("experts", linear)),
        rest,
        rest,
        rest,
        attention_bits=row.get("attention"),
    )


def _grouped(text: str) -> WeightFormat | None:
    """Grouped integers: GPTQ, AWQ, HQQ, torchao, MLX, Marlin; `{bits}` and `g{group}` are read from the name."""
    key = re.sub(r"[_:]", "-", text)
    key = re.sub(r"^(w4a16|w4a8)", "gptq", key)
    key = {"4bit": "int4", "4-bit": "int4"}.get(key, key)
    mlc = re.fullmatch(r"q(\d)f(16|32)(-\d)?", key)
    if mlc:  # MLC: groups of 32 with one 16-bit scale, tables too
        bits_mlc = int(mlc.group(1)) + 0.5
        return WeightFormat(text, "checkpoint", bits_mlc, bits_mlc, bits_mlc, bits_mlc, group=32)
    family = next((f for f in ("gptq", "awq", "marlin", "hqq", "mlx") if f in key), None)
    integer = re.search(r"u?int(\d)", key)
    if family is None and integer is None:
        return None
    data = _data()
    stated = re.search(r"(\d)-?bit", key) or integer or re.search(r"q(\d)", key)
    bits = int(stated.group(1)) if stated else 4
    sized = re.search(r"g(\d+)", key)
    group = int(sized.group(1)) if sized else int(data["groups"].get(family or key, data["groups"]["int4"]))
    if not 1 <= bits <= 8 or group < 8:
        raise UnknownFormat(text)
    overhead = float(data["group_overhead"][family or "int4"])
    if family in ("gptq", "awq"):
        overhead += bits - 4  # zeros are packed in as many bits as the weights
    linear = bits + overhead / group
    table = linear if family == "mlx" else 16.0
    return WeightFormat(text, "checkpoint", linear, linear, table, table, group=group)


@lru_cache(maxsize=128)
def kv_format(name: str) -> KvFormat:
    """Reads a cache format: one name for both ("q8_0", "fp8"), or "K iq4_nl, V fp16". Raises `UnknownFormat`."""
    text = name.strip().lower()
    pair = re.match(r"k[ =:]+([\w.]+)[,;/ ]+v[ =:]+([\w.]+)$", text) or re.match(r"([\w.]+)/([\w.]+)$", text)
    key, value = pair.groups() if pair else (text, text)
    return KvFormat(name, _kv_bits(key), _kv_bits(value))


def _kv_bits(name: str) -> float:
    table = _data()["kv"]
    plain = name.replace("-", "_").removeprefix("torch.")
    plain = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8": "fp8"}.get(plain, plain)
    bits = table.get(plain)
    if bits is None and plain.startswith("fp8"):
        bits = table["fp8"]
    if bits is None and plain.startswith("turboquant"):
        bits = table["turboquant"]
    if bits is None:
        raise UnknownFormat(name)
    return float(bits)
