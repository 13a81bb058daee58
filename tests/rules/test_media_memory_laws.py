"""Laws that hold for every workload of the media models, and what happens with nonsense."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.catalog.catalogue import Catalogue
from rules.catalog.models import ModelSpec
from rules.memory.errors import UnsupportedWorkload
from rules.memory.footprint import Footprint
from rules.memory.media import inference_footprint, training_footprint
from rules.workload import Given, Hardware, InferenceWorkload, ModelRef, TrainingWorkload

MODELS: tuple[ModelSpec, ...] = tuple(m for m in Catalogue.load().models if m.domain != "llm")
IMAGE_DOMAINS = ("vision", "dual-encoder", "diffusion")
HARDWARE = st.sampled_from([(), (Hardware(name="cpu: EPYC"),), (Hardware(name="A100", count=8),)])
ENGINES = st.sampled_from(
    [None, "transformers", "faster-whisper", "whisper.cpp", "onnxruntime", "ctranslate2", "diffusers + torchao", "?"]
)
FORMATS = st.sampled_from([None, "fp32", "fp16", "bf16", "int8", "int8-wo", "fp8-dyn", "nf4", "int4-wo", "gguf:Q8_0"])
OFFLOAD = st.sampled_from([None, "none", "model_cpu", "sequential_cpu", "group"])


def wrapped(**values: object) -> dict[str, Any]:
    return {key: Given(value) for key, value in values.items() if value is not None}


def needed(model: ModelSpec, hardware: tuple[Hardware, ...] = (), **values: object) -> Footprint:
    workload = InferenceWorkload(model=ModelRef(name=model.hf_id), hardware=hardware, **wrapped(**values))
    return inference_footprint(workload, model, None)


def is_sound(found: Footprint) -> None:
    assert sum(part.bytes for part in found.parts) == pytest.approx(found.allocated.expected, rel=1e-9)
    for figure in (found.allocated, found.reserved, found.device):
        assert 0 < figure.low <= figure.expected <= figure.high
    assert found.allocated.expected <= found.reserved.expected <= found.device.expected
    assert all(part.bytes > 0 for part in found.parts)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(MODELS), HARDWARE, ENGINES, FORMATS, OFFLOAD, st.integers(1, 64), st.booleans())
def test_every_model_gives_a_sound_footprint(
    model: ModelSpec,
    hardware: tuple[Hardware, ...],
    engine: str | None,
    weights: str | None,
    offload: str | None,
    batch: int,
    slicing: bool,
) -> None:
    """Parts add up to the allocated peak and the three figures are in order, whatever is combined."""
    is_sound(
        needed(
            model,
            hardware,
            engine=engine,
            weights_format=weights,
            offload=offload,
            batch=batch,
            vae_slicing=slicing,
        )
    )


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(MODELS), HARDWARE, ENGINES, st.integers(1, 32), st.integers(1, 8))
def test_more_at_once_never_needs_less(
    model: ModelSpec, hardware: tuple[Hardware, ...], engine: str | None, batch: int, more: int
) -> None:
    """Memory does not fall with the batch."""
    small = needed(model, hardware, engine=engine, batch=batch)
    large = needed(model, hardware, engine=engine, batch=batch + more)
    assert large.device.expected >= small.device.expected


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([m for m in MODELS if m.domain in IMAGE_DOMAINS]), st.integers(4, 64), st.integers(1, 32), OFFLOAD
)
def test_larger_pictures_never_need_less(model: ModelSpec, edge: int, more: int, offload: str | None) -> None:
    """Memory does not fall with the resolution (edges in steps of 32 pixels; videos keep their own proportions)."""
    if model.modality == "text->video":
        edge, more = 15, 8 if more % 2 else 0
    small = needed(model, image_size=32 * edge, offload=offload, batch=2)
    large = needed(model, image_size=32 * (edge + more), offload=offload, batch=2)
    assert large.device.expected >= small.device.expected


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([m for m in MODELS if m.domain in ("encoder", "seq2seq")]), st.integers(1, 4000), FORMATS)
def test_longer_texts_never_need_less(model: ModelSpec, length: int, weights: str | None) -> None:
    """Memory does not fall with the length of the texts."""
    short = needed(model, context=length, input_len=length, weights_format=weights)
    long = needed(model, context=2 * length, input_len=2 * length, weights_format=weights)
    assert long.device.expected >= short.device.expected


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([m for m in MODELS if m.domain == "diffusion"]),
    st.integers(1, 8),
    FORMATS,
    st.booleans(),
    st.sampled_from([256, 512, 1024, 2048]),
)
def test_levers_of_pipelines_never_raise(
    model: ModelSpec, batch: int, weights: str | None, slicing: bool, edge: int
) -> None:
    """Slicing, quantising and offload never raise the need."""
    plain = needed(model, batch=batch, weights_format="bf16")
    assert needed(model, batch=batch, weights_format="bf16", vae_slicing=True).device.expected <= plain.device.expected
    if weights not in (None, "fp32"):
        assert needed(model, batch=batch, weights_format=weights).device.expected <= plain.device.expected
    options = {"batch": batch, "weights_format": "bf16", "vae_slicing": slicing, "image_size": edge}
    staged = needed(model, offload="model_cpu", **options)
    whole = needed(model, **options)
    assert staged.device.expected <= whole.device.expected
    assert staged.phases["denoise"] <= whole.phases["denoise"]


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([m for m in MODELS if m.domain not in ("encoder", "seq2seq")]),
    st.sampled_from([None, "full", "lora", "qlora", "pretrain"]),
    FORMATS,
    st.sampled_from([None, "none", "full"]),
    st.integers(1, 64),
    st.sampled_from([None, "ddp", "zero2", "fsdp"]),
)
def test_training_is_sound_and_grows_with_the_batch(
    model: ModelSpec,
    method: str | None,
    weights: str | None,
    checkpointing: str | None,
    batch: int,
    sharding: str | None,
) -> None:
    """A training step's parts add up, and a larger micro-batch never needs less."""

    def step(micro_batch: int) -> Footprint:
        values = wrapped(
            method=method,
            weights_dtype=weights,
            checkpointing=checkpointing,
            micro_batch=micro_batch,
            sharding=sharding,
        )
        workload = TrainingWorkload(
            model=ModelRef(name=model.hf_id), hardware=(Hardware(name="A100", count=4),), **values
        )
        return training_footprint(workload, model, None)

    small, large = step(batch), step(batch + 1)
    is_sound(small)
    assert large.device.expected >= small.device.expected


ANYTHING = st.one_of(
    st.none(),
    st.integers(-3, 10**12),
    st.floats(),
    st.text(max_size=6),
    st.booleans(),
    st.tuples(st.text(max_size=3)),
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_nonsense_raises_nothing_but_unsupported(data: st.DataObject) -> None:
    """Any value in any field gives a footprint or `UnsupportedWorkload`, never another error."""
    model = data.draw(st.sampled_from(MODELS))
    kind = data.draw(st.sampled_from([InferenceWorkload, TrainingWorkload]))
    names = [f.name for f in fields(kind) if "Given" in str(f.type)]
    chosen = data.draw(st.lists(st.sampled_from(names), max_size=6, unique=True))
    values = {name: Given(data.draw(ANYTHING)) for name in chosen}
    workload = kind(model=ModelRef(name=model.hf_id), hardware=data.draw(HARDWARE), **values)
    law = inference_footprint if kind is InferenceWorkload else training_footprint
    with suppress(UnsupportedWorkload):
        is_sound(law(workload, model, None))
