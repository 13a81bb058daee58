"""Bytes a value of the number formats that weights, gradients and states come in."""

from __future__ import annotations

from functools import cache

from rules.records import dataclass


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """`bytes` a stored weight; `quantised` where a 16-bit copy is made for each product; `double` adds by constants."""

    name: str
    bytes: float
    quantised: bool

    @property
    def prepared_fp32(self) -> bool:
        """Whether PEFT's k-bit preparation casts the rest of the model to fp32: bitsandbytes, not GPTQ or AWQ."""
        return self.name in _BITSANDBYTES


_BITSANDBYTES = frozenset(("nf4", "fp4", "4bit", "bnb", "int8", "8bit", "llm.int8"))
_PLAIN = {
    "fp32": 4.0, "float32": 4.0, "float": 4.0, "tf32": 4.0, "fp64": 8.0, "bf16": 2.0, "bfloat16": 2.0, "fp16": 2.0,
    "float16": 2.0, "half": 2.0, "16bit": 2.0,
}  # fmt: skip

# bitsandbytes: blocks of 64 with one fp32 constant; gptq, awq: groups of 128 with 16-bit scale and 4-bit zero;
# nvfp4: blocks of 16 with an 8-bit scale; mxfp4: blocks of 32.
_QUANTISED = {
    "nf4": 0.5 + 4 / 64, "fp4": 0.5 + 4 / 64, "int4": 0.5 + 2 / 32, "4bit": 0.5 + 4 / 64, "bnb": 0.5 + 4 / 64,
    "gptq-4bit": 0.5 + 2.5 / 128, "gptq": 0.5 + 2.5 / 128, "awq": 0.5 + 2.5 / 128, "gptq-8bit": 1 + 2.5 / 128,
    "gptq-3bit": 0.375 + 2.5 / 128, "gptq-2bit": 0.25 + 2.5 / 128, "hqq": 0.5 + 2 / 64,
    "int8": 1.0, "8bit": 1.0, "llm.int8": 1.0, "fp8": 1.0, "float8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32, "2bit": 0.25 + 2 / 64,
}  # fmt: skip
# Double quantisation keeps the constants in 8 bits, with one fp32 constant for 256 of them.
DOUBLE_QUANT_SAVING = 4 / 64 - (1 / 64 + 4 / (64 * 256))


@cache
def weight_format(name: str) -> WeightFormat | None:
    """The format of that name, None where it is not known."""
    key = name.strip().lower().replace("torch.", "").replace("_", "-")
    for table, quantised in ((_PLAIN, False), (_QUANTISED, True)):
        if key in table:
            return WeightFormat(key, table[key], quantised)
    for stem in ("nf4", "fp4", "gptq", "awq", "int8", "fp8", "int4", "mxfp4", "8bit", "4bit", "bf16", "fp16", "fp32"):
        if stem in key:
            known = weight_format(stem)
            return known and WeightFormat(key, known.bytes, known.quantised)
    return None


@cache
def value_bytes(name: str | None, default: float) -> float:
    """Bytes of one value of a plain or 8-bit or 4-bit type; the default where the name says nothing."""
    known = weight_format(name) if name else None
    return known.bytes if known else default
