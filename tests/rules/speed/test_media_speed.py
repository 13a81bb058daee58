"""The laws of a media model's speed: order by size, steps and machine, and what a CPU serves."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalog.catalogue import Catalogue
from rules.memory.errors import UnsupportedWorkload
from rules.memory.media.classical import classical_spec
from rules.speed.media.law import cpu_requests_per_s, media_speed
from rules.speed.types import Figure, InferenceSpeed
from rules.workload import Given, InferenceWorkload, ModelRef

CATALOGUE = Catalogue.load()
BERT, SDXL, FLUX, WHISPER, RESNET = "bert-base", "sdxl", "flux.1 dev", "openai/whisper-large-v3", "resnet-50"
CPU = CATALOGUE.find_cpu("Core i7-12700H")


def _workload(name: str, **fields: Any) -> InferenceWorkload:
    return InferenceWorkload(model=ModelRef(name=name), **{k: Given(v) for k, v in fields.items()})


def _speed(name: str, card: str = "RTX 4090", count: int = 1, **fields: Any) -> InferenceSpeed:
    model = CATALOGUE.find_model(name).spec
    return media_speed(_workload(name, **fields), model, CATALOGUE.find_accelerator(card), count)


def _of(figure: Figure | None) -> float:
    assert figure is not None
    assert 0 < figure.low < figure.expected < figure.high
    return figure.expected


@pytest.mark.parametrize("name", [SDXL, FLUX, RESNET])
def test_a_bigger_image_is_never_faster(name: str) -> None:
    """Latency does not fall as the edge of the image grows."""
    found = [_of(_speed(name, image_size=edge).latency_s) for edge in (256, 512, 768, 1024, 2048)]
    assert found == sorted(found)
    assert found[-1] > found[0]


@pytest.mark.parametrize("name", [SDXL, FLUX])
def test_more_steps_are_slower(name: str) -> None:
    """A picture of more steps takes longer, by about the seconds of the steps."""
    few, many = _speed(name, steps=10), _speed(name, steps=30)
    assert _of(many.latency_s) - _of(few.latency_s) == pytest.approx(20 / _of(many.steps_s), rel=1e-6)


@pytest.mark.parametrize("name", [BERT, SDXL, FLUX, WHISPER, RESNET])
def test_a_better_card_is_never_slower(name: str) -> None:
    """A card that is better in arithmetic and in bandwidth is at least as fast."""
    found = [_of(_speed(name, card).latency_s) for card in ("T4", "RTX 3090", "A100 80GB SXM4", "H100 80GB SXM5")]
    assert found == sorted(found, reverse=True)


def test_a_longer_text_and_a_larger_batch_take_longer() -> None:
    """Latency of an encoder does not fall with tokens nor with sequences at once."""
    lengths = [_of(_speed(BERT, input_len=n, batch=64).latency_s) for n in (32, 128, 512)]
    batches = [_of(_speed(BERT, input_len=128, batch=n).latency_s) for n in (1, 8, 256)]
    assert lengths == sorted(lengths)
    assert batches == sorted(batches)


def test_fewer_threads_serve_fewer_requests() -> None:
    """A CPU's rate falls with its threads, and a small classifier on few cores serves some requests a second."""
    model = CATALOGUE.find_model(BERT).spec
    few = _of(cpu_requests_per_s(_workload(BERT, input_len=128, cpu_threads=4), model, CPU))
    many = _of(cpu_requests_per_s(_workload(BERT, input_len=128), model, CPU))
    assert 1 < few < many < 200


def test_a_classical_model_answers_in_milliseconds_anywhere() -> None:
    """A tree or a regression takes under ten milliseconds on a CPU."""
    found = media_speed(_workload("random forest"), classical_spec("random forest"), CPU, 1)
    assert found.source == "formula"
    assert found.latency_s is not None
    assert found.latency_s.high < 0.01


def test_unknown_shapes_are_refused() -> None:
    """A vision model whose operations nobody knows gets no guess."""
    with pytest.raises(UnsupportedWorkload):
        _speed("facebook/sam-vit-huge")
