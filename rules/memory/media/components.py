"""Bytes of a diffusion pipeline's components in the formats asked for: denoiser, text encoders, VAE.

Quantisers touch the denoiser and, where asked, the large text encoders. Text encoders below a billion parameters and
the VAE stay in 16 bits; so do a T5's tables and, depending on the quantiser, its output projections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.memory.footprint import Part
from rules.memory.media.asked import Asked, read_format
from rules.memory.media.facts import matching
from rules.memory.media.phases import kept
from rules.memory.media.pipeline import Pipeline
from rules.records import dataclass

_AS_DENOISER = ("quantised", "quantized", "same")
_ABSENT = ("none", "precomputed", "cached", "dropped")
_SMALL_PARAMS = 10**9


@dataclass(frozen=True, slots=True)
class ComponentBytes:
    """Weight bytes of each component; `largest_text` is the largest of the text encoders."""

    denoiser: float
    text_encoders: float
    vae: float
    largest_text: float

    @property
    def total(self) -> float:
        """All weights."""
        return self.denoiser + self.text_encoders + self.vae

    def parts(self) -> list[Part]:
        """One line of the breakdown for each component."""
        return kept([component_part(name, getattr(self, name)) for name in ("denoiser", "text_encoders", "vae")])


def component_part(name: str, size: float) -> Part:
    """The line of one component."""
    return Part(f"weights_{name}", size, "media_weights_component")


def quantiser(name: str) -> Mapping[str, Any] | None:
    """Facts of the quantiser that a format's name belongs to, None for plain formats."""
    if read_format(name).linear_bits >= 16:
        return None
    return matching("quantiser", name)[1] or None


def component_bytes(pipeline: Pipeline, weights: str | None, text_format: str | None, asked: Asked) -> ComponentBytes:
    """Sizes for `weights` (of the denoiser) and `text_format`; text encoders are not quantised unless asked for."""
    weights = weights or ("fp32" if asked.cpu else "bf16")
    bits = _bits(weights)
    rest_bits = max(16.0, bits)
    later = asked.engine.quantises_after_loading
    if text_format is None:
        with_text = later and bool(pipeline.facts.get("torchao_quantises_text"))
        text_format = weights if with_text or bits >= 16 else "bf16"
    elif text_format in _AS_DENOISER:
        text_format = weights
    texts = [0.0]
    if text_format not in _ABSENT:
        texts += [_text_bytes(n, p, text_format, rest_bits, later) for n, p in pipeline.text_encoders.items()]
    return ComponentBytes(pipeline.denoiser * bits / 8, sum(texts), pipeline.vae_params * rest_bits / 8, max(texts))


def _bits(name: str) -> float:
    facts = quantiser(name) or {"bits": {}}
    return next((float(b) for word, b in facts["bits"].items() if word in name), read_format(name).linear_bits)


def _text_bytes(name: str, params: int, text_format: str, rest_bits: float, everything: bool) -> float:
    """One text encoder; `everything` is true where the quantiser takes each linear layer it finds."""
    bits = _bits(text_format)
    if bits >= 16:
        return params * bits / 8
    if params < _SMALL_PARAMS:
        return params * rest_bits / 8
    row = matching("text_encoder", name)[1]
    tables_params = min(params, int(row["tables"]))
    spared = 0 if everything else min(params - tables_params, int(row["kept"]))
    facts = quantiser(text_format) or {"kept_bytes": 2}
    return (params - tables_params - spared) * bits / 8 + tables_params * 2.0 + spared * float(facts["kept_bytes"])
