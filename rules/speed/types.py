"""What the laws of speed return: rates and times with ranges, and a statement of what binds.

Times are seconds, rates are a second, for the whole set of devices unless the name says otherwise. None = this law
gives no such figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from rules.memory.footprint import Note
from rules.records import dataclass

Binds = Literal["compute", "bandwidth", "capacity", "interconnect", "host", "overhead"]
Source = Literal["fitted", "formula", "measured"]


@dataclass(frozen=True, slots=True)
class Figure:
    """An expected value between a low and a high one that eight of ten published runs keep to."""

    low: float
    expected: float
    high: float

    @classmethod
    def about(cls, expected: float, spread: float) -> Figure:
        """The value with a factor of `1 + spread` either way (`spread` from the residuals of the fit)."""
        return cls(expected / (1 + spread), expected, expected * (1 + spread))


@dataclass(frozen=True, slots=True)
class Roofline:
    """Which limit decides and the seconds that each would take alone, for one named `step` ("decode", "prefill", …)."""

    step: str
    binds: Binds
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceSpeed:
    """Serving speed at a stated number of sequences at once.

    `decode_tok_s` and `tpot_s` are of one stream at `concurrency`; `total_tok_s` is generated tokens of all streams
    with the prefill of new requests interleaved; `ttft_s` is of users who come each by themselves,
    `ttft_burst_s` of prompts that come together. `samples_s` are inputs of an encoder,
    images of a vision or diffusion model; `realtime_factor` is seconds of audio in a second of work and
    `encoder_s` the time of an encoder that a decoder follows.
    """

    concurrency: int = 1
    decode_tok_s: Figure | None = None
    prefill_tok_s: Figure | None = None
    total_tok_s: Figure | None = None
    ttft_s: Figure | None = None
    ttft_burst_s: Figure | None = None
    tpot_s: Figure | None = None
    requests_s: Figure | None = None
    latency_s: Figure | None = None
    samples_s: Figure | None = None
    steps_s: Figure | None = None
    realtime_factor: Figure | None = None
    encoder_s: Figure | None = None
    roofline: tuple[Roofline, ...] = ()
    source: Source = "fitted"
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSpeed:
    """Training speed of the whole run. `tokens_per_s_per_device` counts real (unpadded) tokens."""

    devices: int
    tokens_per_s_per_device: Figure
    step_s: Figure | None = None
    samples_per_s: Figure | None = None
    mfu: Figure | None = None
    epoch_s: Figure | None = None
    total_s: Figure | None = None
    host_tokens_per_s: float | None = None
    roofline: tuple[Roofline, ...] = ()
    source: Source = "fitted"
    notes: tuple[Note, ...] = ()


Speed = InferenceSpeed | TrainingSpeed
